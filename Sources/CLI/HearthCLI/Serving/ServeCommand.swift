import Accounts
import Basics
import DatabaseService
import DocumentModel
import FirebaseExport
import DocumentStore
import FixtureTree
import Glibc
import HearthServer
import KeyValue
import Synchronization
import Transport

extension Command {
  /// Runs the server until a signal stops it.
  static let serve = Command(
    name: "serve", summary: "Runs the server until it is stopped.",
    options: [
      .value("host", "ADDRESS", "the address to listen on (default: 127.0.0.1)"),
      .value("port", "PORT", "the port to listen on; 0 chooses a free one (default: 8080)"),
      .value(
        "public-url", "URL", "the URL at which clients on other machines reach the server; new keys contain it"),
      .value("tls-cert", "FILE", "use TLS with this certificate chain, in PEM format"),
      .value("tls-key", "FILE", "the private key of the certificate, in PEM format"),
      .value("data", "DIR", "the data directory, created if missing (default: ./hearth-data)"),
      .flag("in-memory", "keep all data in memory (default: with --emulator and without --data)"),
      .value("project", "ID", "the project, by which apps name it (default: $HEARTH_PROJECT, $GOOGLE_CLOUD_PROJECT)"),
      .repeated("databases", "NAME", "a database of the project to serve in production (default: (default))"),
      .value(
        "projects", "DIR", "serve each folder of DIR as a production project (default: projects beside hearth.json)"
      ),
      .flag("emulator", "for development and tests: accept unsigned tokens; without rules, admit every client"),
      .flag(
        "allow-remote-emulator", "let an emulator listen beyond this machine; every client can be an administrator"),
      .value("auth-port", "PORT", "with --emulator: listen here too, for apps that expect accounts (default: 9099)"),
      .value("storage-port", "PORT", "with --emulator: listen here too, for apps that expect files (default: 9199)"),
      .value("hub-port", "PORT", "with --emulator: listen here too, for tools that ask for the ports (default: 4400)"),
      .flag("one-port", "with --emulator: listen on --port only"),
      .repeated("import", "PATH", "load files of documents or Firebase exports before listening, in this order"),
      .repeated(
        "enterprise-database", "NAME",
        "an enterprise edition database; NAME* is a prefix (default: enterprise* with --emulator)"),
      .value("map-size", "BYTES", "the maximum size of a database, as address space (default: 64G; in memory, 8G)"),
      .value("history", "TIME", "keep past states of documents for this time, from 5m to 7d (default: 1h)"),
      .value(
        "commit-log", "on|off", "write commits to a log first and to the data file in batches, on disk (default: on)"
      ).with(choices: ["on", "off"]),
      .repeated("rules", "FILE", "security rules; DATABASE=FILE for the rules of one database (default: none)"),
      .value(
        "compat", "emulator",
        "with --emulator: allow queries as Firebase's does, which can return forbidden documents"
      ).with(choices: ["emulator"]),
      .value("storage-rules", "FILE", "storage rules; without them, only administrators can access files"),
      .repeated(
        "indexes", "FILE", "an index file; DATABASE=FILE for a named database (default: the indexes of the database)"),
      .value(
        "record-cases", "FILE", "with --emulator: write the requests and their decisions as a rules test at the end"
      )
      .onCommandLineOnly,
      .repeated(
        "hosting", "PATH",
        "serve this folder, or the web app of this firebase.json; HOST=PATH for one host name"),
      .value("web-sdk", "DIR", "serve /__/firebase/VERSION/ from DIR/VERSION (default: redirect to Google)"),
      .flag("no-console", "with --emulator: serve no console, and keep no log of requests for it"),
      .flag("require-indexes", "refuse queries that Firestore would refuse because an index is missing"),
      .flag("no-anonymous", "disable anonymous sign-in"),
      .flag("no-password-sign-in", "disable sign-in with a password"),
      .flag("no-sign-up", "let only administrators create accounts"),
      .value("mail-command", "COMMAND", "send mails with this command, which reads a mail from standard input"),
      .value("mail-from", "ADDRESS", "the sender of mails (default: noreply@localhost)"),
      .value("action-url", "URL", "the page of the app that the links in mails open"),
      .repeated(
        "authorized-domain", "DOMAIN",
        "let pages of this domain and its subdomains sign users in, and links in mails lead there"),
      .repeated(
        "identity-provider", "SPEC",
        "accept sign-in with google.com=CLIENT,KEYS_FILE, apple.com=… or oidc.NAME=…,ISSUER"),
      .value(
        "providers", "FILE",
        "open the sign-in pages of the providers in this file; hearth.json can contain the object"),
      .repeated(
        "trust-issuer", "ISSUER",
        "accept tokens of ISSUER (or ISSUER,AUDIENCE); ISSUER=FILE reads its keys from a file"),
    ] + ClusterOptions.options + ConsoleOptions.options + BackupSchedule.options + [
      .value("user-requests", "N", "requests that one signed-in user may make in a minute (default: any number)"),
      .value(
        "address-requests", "N",
        "requests that an address may make without sign-in in a minute (default: any number)"),
      .value("user-reads", "N", "documents that one signed-in user may read in a minute (default: any number)"),
      .value("user-writes", "N", "documents that one signed-in user may write in a minute (default: any number)"),
    ] + LimitOptions.quotas + [
      .repeated(
        "trusted-proxy", "ADDRESS",
        "a proxy on another machine, or its network, such as 10.0.0.0/8, that names the clients"),
      .value("metrics-address", "HOST:PORT", "serve /metrics, /healthz and /readyz there, without credentials"),
      .value("log", "FORMAT", "the format of the log on standard error: plain, text or json (default: plain)")
        .with(choices: ["plain", "text", "json"]),
      .value("log-level", "LEVEL", "the lowest level to log: error, warn, info or debug (default: info)")
        .with(choices: ["error", "warn", "info", "debug"]),
      .value("log-requests", "N", "log one of every N requests; 1 logs all (default: none)"),
      .value("stop-grace", "SECONDS", "the time that a stop waits for running requests (default: 10)"),
      .flag("quiet", "print only the address, warnings and errors"),
      .value("config", "FILE", "read options from this file only (default: hearth.json and firebase.json)")
        .onCommandLineOnly,
      .flag("print-config", "print the configuration in force as a configuration file, and exit")
        .onCommandLineOnly,
    ],
    details: """
      When the server is ready, it prints one line to standard output: `hearth: listening on http://127.0.0.1:8080`.
      With TLS, the URL begins with https. It accepts HTTP/1.1 and HTTP/2 on the same port. On a terminal, it also shows
      the mode, the project, the data directory, and the callers that rules admit; otherwise, with the log format plain, one
      line of JSON on standard error contains these facts, unless --quiet is given. Mistakes that would surprise you later
      are warnings, such as missing or expired rules, or plain HTTP on a public address.

      In production mode, the server needs a project. If neither an option nor a file names it, the server uses the only
      project of the data directory.

      SIGTERM and SIGINT stop the server: it finishes running requests first, for at most --stop-grace seconds. SIGHUP
      makes it reload the rules, the certificate with its key, the trusted keys, and the list and rules of web apps. At a
      terminal, SIGHUP stops the server if there is nothing to reload. The server also reloads rules when their file
      changes. If rules do not compile at the start, the server exits with code 65. If they do not compile later, it
      keeps the previous rules.

      hearth.json in the working directory can set the same options under the same names. The command line overrides
      it. Options that neither sets are read from firebase.json: rules, indexes and hosting, and with --emulator the
      host and the ports.

      A server in production serves several projects if there is a directory named projects beside hearth.json, or if
      --projects names one. Each folder in it is a project; its name is the project ID. SIGHUP makes the server serve
      new folders, and end those that were removed. --project then names the default project, if there is one. A
      project that is not valid is reported, and the others are served.

      One port serves everything. Apps for Firebase's Emulator Suite often contain the ports of its services, so
      --emulator also listens on 9099 (accounts), 9199 (files) and 4400 (the hub), or on the ports that firebase.json
      names for them. If one of the default ports is in use, the server starts without it and logs a warning. With
      --port 0, it opens further ports only for the options that you give.
      """,
    examples: [
      ("hearth serve --project my-app --data /var/lib/hearth/data --rules firestore.rules", "in production mode"),
      ("hearth serve --emulator", "in memory, for development"),
      ("hearth serve --emulator --import fixtures/journeys.json", "with documents"),
      ("hearth serve --emulator --project my-app --import ./firebase-export", "with a Firebase export"),
      ("hearth serve --emulator --data ./data --port 9090", "with data on disk"),
      ("hearth serve --emulator --tls-cert cert.pem --tls-key key.pem", "with TLS"),
      ("hearth serve --emulator --rules firestore.rules", "with security rules"),
      ("hearth serve --emulator --indexes firestore.indexes.json", "with composite indexes"),
    ],
    run: { arguments in try serve(arguments) })

  private static func serve(_ arguments: Arguments) throws -> Int32 {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
    // All threads that start later inherit this mask, so that only the wait below receives these signals.
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    var configuration = try configuration(arguments, isEmulator: arguments.has("emulator"))
    if arguments.has("print-config") {
      let effective = ConfigurationFile.effective(arguments, computed: computed(configuration))
      Terminal.output.write(effective + Array("\n".utf8))
      return 0
    }
    defer { configuration.log?.flush() }
    if let text = FirebaseFile.announcement(of: arguments) {
      configuration.log?.write(LogEvent(.info, "configuration.firebase", text))
    }
    let supervisor = Supervisor()
    configuration.listeningSocket = try supervisor.listeningSocket()
    if configuration.listeningSocket != nil, arguments.has("host") || arguments.has("port") {
      configuration.log?.write(
        LogEvent(
          .warn, "configuration.ignored", "--host and --port are ignored: the supervisor passed a socket (LISTEN_FDS)"))
    }
    try chooseProject(&configuration)
    let recorded = try RecordedCaseFiles(arguments, isEmulator: configuration.mode == .emulator)
    configuration.accessObserver = recorded?.recorder
    configuration.emulatorPorts = try EmulatorPortOptions.ports(arguments, configuration, hasDefaults: true)
    configuration.backups = arguments.has("backup-to") ? BackupOutcomes() : nil
    let backups = try BackupSchedule(arguments, configuration)
    let logSeconds = max(configuration.retention.changeLogSeconds, backups?.changeLogSeconds ?? 0)
    configuration.retention.changeLogSeconds = logSeconds
    configuration.shownConfiguration = ConsoleOptions.shown(
      ConfigurationFile.effective(arguments, computed: computed(configuration)))
    if let backups {
      configuration.listBackups = { BackupList.request(of: backups, $0) }
      configuration.createBackup = { backups.begin() }
    }
    let failure = Mutex<String?>(nil)
    configuration.fail = { text in
      failure.withLock { $0 = text }
      kill(getpid(), SIGTERM)
    }
    let (server, url) = try startServer(arguments, configuration)
    let remarks = try FirebaseFile.remarks(arguments)
    let hasOperators =
      configuration.loadProjects != nil || configuration.cluster != nil || !server.accounts.operators.all.isEmpty
    StartReport(
      configuration, url: url, consoleURL: server.consoleURL, now: Clock.system.now(), remarks: remarks,
      hasOperators: hasOperators
    ).show(arguments)
    // A program that waits for the line below may then read the earlier log lines.
    configuration.log?.flush()
    Terminal.output.write("hearth: listening on \(url)\n")
    supervisor.notify("READY=1\nSTATUS=Listening on \(url)")
    backups?.start()
    waitForEnd(of: server, signals: signals, configuration, supervisor)
    supervisor.notify("STOPPING=1\nSTATUS=Finishing requests")
    // A second signal ends the process immediately.
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    backups?.stop()
    server.stop()
    backups?.stopFollowing()
    try recorded?.write()
    if let text = failure.withLock({ $0 }) { throw CommandFailure.failed(text) }
    return 0
  }

  /// Sets the project of a production server that serves only one to the only project of its data directory, if the
  /// options name none.
  /// - Throws: ``CommandFailure`` with advice if no project is known.
  private static func chooseProject(_ configuration: inout HearthConfiguration) throws {
    guard configuration.mode == .production, configuration.project == nil, configuration.loadProjects == nil,
      configuration.cluster == nil
    else { return }
    var found: [String] = []
    if case .directory(let path) = configuration.storage { found = DataDirectory.projects(in: path) }
    guard found.count != 1 else { return configuration.project = found[0] }
    let choice = found.isEmpty ? "" : " (the data directory contains \(found.joined(separator: ", ")))"
    throw CommandFailure.usage(
      "a production server needs the ID of the project that it serves, as the configuration of your apps contains it: add "
        + "--project ID, or \"project\" in hearth.json\(choice); for development and tests, add --emulator instead")
  }

  /// Creates a server, imports what `--import` names, starts the server, and returns it with its URL.
  /// - Throws: ``CommandFailure``, `HearthError`, `StorageError` or `FixtureTreeError` if that fails.
  static func startServer(_ arguments: Arguments, _ configuration: HearthConfiguration) throws -> (Server, url: String)
  {
    let sources = try imports(arguments, configuration)
    let others = try sources.map { try OtherPartsImport(checking: $0, isQuiet: isQuiet(arguments)) }
    var summary = ExportSummary()
    if let sources, case .directory(let path) = configuration.storage {
      if !sources.documents.isEmpty {
        summary.documents = try sources.named {
          try DirectoryImport(
            directory: path, mapBytes: configuration.mapBytes,
            indexes: try configuration.indexes.first { $0.database == sources.documents.database.database }
              .map { try IndexFile.read(file: $0.path) }
          ).run(sources.documents, isQuiet: isQuiet(arguments))
        }
      }
    }
    allowManyFiles()
    FreedMemory.mapLargeBlocks()
    let server = try Server(configuration)
    if let sources, configuration.storage == .inMemory, !sources.documents.isEmpty {
      guard let database = try server.registry.database(sources.documents.database) else {
        throw CommandFailure.failed(
          "\(sources.documents.database) is not served; choose the served project with --project")
      }
      var progress = Progress(isQuiet: isQuiet(arguments))
      defer { progress.clear() }
      summary.documents = try sources.named {
        try database.load(sources.documents) {
          progress.show($0, "documents imported", fraction: sources.documents.fraction(after: $0))
        }
      }
    }
    let url = try server.start()
    if let others, !others.isEmpty {
      do { try send(others, to: server, url, arguments, configuration, &summary) } catch {
        server.stop()
        guard case .directory(let path) = configuration.storage, summary.documents != nil else { throw error }
        var failure = CommandFailure(error)
        failure.message += "\nthe documents are imported into \(path); start again, and the import continues"
        throw failure
      }
    }
    if let sources { report(summary, sources.notes + (others?.notes ?? []), configuration) }
    return (server, url)
  }

  /// Imports accounts and files into a server before its address is announced: through this address or, with TLS, through
  /// another one of this machine, because the certificate may not name this machine's address.
  private static func send(
    _ others: OtherPartsImport, to server: Server, _ url: String, _ arguments: Arguments,
    _ configuration: HearthConfiguration, _ summary: inout ExportSummary
  ) throws {
    let project = configuration.project ?? DatabaseChoice.defaultProject
    let token =
      configuration.mode == .emulator ? "owner" : server.accounts.serviceKeys.localAccessToken()
    func send(_ url: String) throws {
      try others.send(
        to: AdminServer(try ServerClient(url: url, token: token, arguments), project: project), &summary)
    }
    if configuration.tls == nil { try send(url) } else { try server.withPlainAddress(send) }
  }

  /// Waits for the signal that stops the server. SIGHUP stops it only at a terminal and if there is nothing to reload.
  private static func waitForEnd(
    of server: Server, signals: sigset_t, _ configuration: HearthConfiguration, _ supervisor: Supervisor
  ) {
    let isReloadable =
      configuration.tls != nil || configuration.loadProjects != nil || !configuration.rules.isEmpty
      || configuration.storageRules != nil || !configuration.trustedIssuers.isEmpty
      || !configuration.onlineIssuers.isEmpty || !configuration.hosting.isEmpty
    let endsOnHangUp = !isReloadable && !supervisor.isPresent && hasTerminal
    while true {
      let isAlive = { server.isResponsive(withinMilliseconds: 2000) }
      guard let signal = supervisor.wait(for: signals, isAlive: isAlive) else {
        continue
      }
      guard signal == SIGHUP, !endsOnHangUp else { return }
      supervisor.notifyReloading()
      server.reload()
      supervisor.notify("READY=1")
    }
  }

  /// Whether the program has a controlling terminal, which sends SIGHUP when it closes.
  private static var hasTerminal: Bool {
    let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard terminal >= 0 else { return false }
    close(terminal)
    return true
  }

  /// Raises the limit of file descriptors to the maximum. Every connection and every open database needs some, and
  /// shells allow only 1,024.
  static func allowManyFiles() {
    var limit = rlimit()
    let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(files, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(files, &limit)
  }

  private static func isQuiet(_ arguments: Arguments) -> Bool { arguments.has("quiet") }

  private static func report(
    _ summary: ExportSummary, _ notes: [String], _ configuration: HearthConfiguration
  ) {
    configuration.log?.write(LogEvent(.info, "import.done", summary.text("imported")))
    for note in summary.notes + notes { configuration.log?.write(LogEvent(.info, "import.note", note)) }
  }

  /// Returns the server's configuration for the options of `hearth serve`. `mayLackKey` is for commands that start no node; see
  /// ``ClusterOptions/apply(_:to:mayLackKey:)``.
  /// - Throws: ``CommandFailure`` if an option has an invalid value.
  static func configuration(
    _ arguments: Arguments, isEmulator: Bool, mayLackKey: Bool = false
  ) throws -> HearthConfiguration {
    try arguments.exclude("data", "in-memory")
    var storage = HearthConfiguration.Storage.directory("./hearth-data")
    if arguments.has("in-memory") || isEmulator { storage = .inMemory }
    if let directory = arguments.value("data") { storage = .directory(directory) }
    var configuration = HearthConfiguration(storage: storage)
    configuration.mode = isEmulator ? .emulator : .production
    configuration.host = arguments.value("host").map(withoutBrackets) ?? configuration.host
    configuration.port = try arguments.integer("port", in: 0...65535) ?? configuration.port
    configuration.tls = try tlsFiles(arguments)
    configuration.project = DatabaseChoice.project(arguments)
    configuration.usesCommitLog = try usesCommitLog(arguments) ?? true
    if arguments.has("databases") { configuration.databases = try databases(arguments) }
    if !isEmulator, let directory = projectsDirectory(arguments) {
      configuration.loadProjects = { () throws(HearthError) in
        try ProjectFolder.all(in: directory).map { $0.source() }
      }
    }
    if arguments.has("enterprise-database") {
      configuration.enterpriseDatabases = arguments.values("enterprise-database")
    }
    configuration.allowsRemoteEmulator = arguments.has("allow-remote-emulator")
    // Address space is finite: a test suite may use thousands of databases in memory.
    if storage == .inMemory { configuration.mapBytes = 8 << 30 }
    configuration.mapBytes = try arguments.bytes("map-size", in: 1 << 20...1 << 46) ?? configuration.mapBytes
    if let seconds = try arguments.seconds("history") {
      guard Retention.historySecondsRange.contains(seconds) else {
        throw arguments.refusal(of: "history", arguments.value("history") ?? "", "must be a time from 5m to 7d")
      }
      configuration.retention = Retention(historySeconds: seconds)
    }
    configuration.requiresIndexes = arguments.has("require-indexes")
    configuration.hasConsole = !arguments.has("no-console")
    configuration.indexes = arguments.values("indexes").map(databaseFile)
    configuration.rules = arguments.values("rules").map { text in
      let file = databaseFile(text)
      return HearthConfiguration.RulesFile(file.path, database: file.path == text ? nil : file.database)
    }
    if let other = arguments.value("compat") {
      guard other == "emulator" else { throw arguments.refusal(of: "compat", other, "must be 'emulator'") }
      configuration.isEmulatorCompatible = true
    }
    configuration.accounts = try accounts(arguments)
    for text in arguments.values("trust-issuer") { try trust(text, arguments, &configuration) }
    if !configuration.onlineIssuers.isEmpty {
      let authorities = DatabaseChoice.environment("HEARTH_CACERT")
      configuration.fetchDocument = { try DocumentFetch.get($0, authoritiesFile: authorities) }
    }
    try SignInOptions.apply(arguments, to: &configuration)
    configuration.storageRules = arguments.value("storage-rules")
    try LimitOptions.apply(arguments, to: &configuration)
    configuration.hosting = try HostingOptions.sites(arguments)
    // The options of a project's own file are read again with its folder.
    if arguments.accepts("config") {
      configuration.loadHosting = { () throws(HearthError) in try HostingOptions.reloadedSites(arguments) }
      configuration.loadQuotas = { () throws(HearthError) in try LimitOptions.reloadedQuotas(arguments) }
    }
    configuration.webSDK = arguments.value("web-sdk")
    configuration.log = try log(arguments)
    configuration.requestLogInterval = try arguments.integer("log-requests", in: 1...1_000_000_000)
    configuration.metricsAddress = try address(arguments, "metrics-address", example: "127.0.0.1:9090")
    try ConsoleOptions.apply(arguments, to: &configuration)
    try ClusterOptions.apply(arguments, to: &configuration, mayLackKey: mayLackKey)
    configuration.stopGraceSeconds =
      try arguments.integer("stop-grace", in: 0...3600) ?? configuration.stopGraceSeconds
    if let project = configuration.project, DatabaseID(project: project) == nil {
      throw arguments.refusal(of: "project", project, "is not a valid project ID")
    }
    return configuration
  }

  /// Returns the IDs of the databases to serve.
  /// - Throws: ``CommandFailure`` if one is not valid.
  private static func databases(_ arguments: Arguments) throws -> [String] {
    let names = arguments.values("databases")
    for name in names where DatabaseID(project: "p", database: name) == nil {
      throw arguments.refusal(of: "databases", name, "is not a valid database ID")
    }
    return names
  }

  /// Returns whether databases have a commit log, or `nil` if nothing says so. Tests say so in the environment.
  private static func usesCommitLog(_ arguments: Arguments) throws -> Bool? {
    guard let choice = arguments.value("commit-log") else {
      return DatabaseChoice.environment("HEARTH_COMMIT_LOG").map { $0 == "1" }
    }
    guard choice == "on" || choice == "off" else {
      throw arguments.refusal(of: "commit-log", choice, "must be 'on' or 'off'")
    }
    return choice == "on"
  }

  /// Returns the directory of project folders, or `nil` if the server has only one project: the option, or `projects`
  /// beside the configuration file if both exist.
  private static func projectsDirectory(_ arguments: Arguments) -> String? {
    if let directory = arguments.value("projects") { return directory }
    // The options of a project's own file do not name projects.
    guard arguments.accepts("projects") else { return nil }
    let file = arguments.value("config") ?? ConfigurationFile.name
    let directory = file.contains("/") ? LocalPath.folder(of: file) + "/projects" : "projects"
    var status = stat()
    guard access(file, F_OK) == 0, stat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return nil }
    return directory
  }

  /// Returns the values of options that the configuration determines, defaults included.
  private static func computed(_ configuration: HearthConfiguration) -> [String: [String]] {
    var values = [
      "host": [configuration.host], "port": [String(configuration.port)],
      "map-size": [String(configuration.mapBytes)], "mail-from": [configuration.accounts.mailSender],
      "stop-grace": [String(configuration.stopGraceSeconds)],
      "history": ["\(configuration.retention.historySeconds)s"],
      "commit-log": [configuration.usesCommitLog ? "on" : "off"],
    ]
    switch configuration.storage {
    case .inMemory: values["in-memory"] = [""]
    case .directory(let path): values["data"] = [path]
    }
    if let project = configuration.project { values["project"] = [project] }
    return values
  }

  private static func accounts(_ arguments: Arguments) throws -> AccountsConfiguration {
    var accounts = AccountsConfiguration()
    accounts.allowsAnonymous = !arguments.has("no-anonymous")
    accounts.allowsPassword = !arguments.has("no-password-sign-in")
    accounts.allowsSignUp = !arguments.has("no-sign-up")
    accounts.mailCommand = arguments.value("mail-command")
    accounts.mailSender = arguments.value("mail-from") ?? accounts.mailSender
    accounts.actionURL = arguments.value("action-url")
    accounts.authorizedDomains = arguments.values("authorized-domain")
    accounts.identityProviders = try arguments.values("identity-provider").map { text in
      let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
      let rest = parts.count == 2 ? parts[1].split(separator: ",", maxSplits: 2).map(String.init) : []
      guard rest.count >= 2, rest.count == 3 || ["google.com", "apple.com"].contains(parts[0]) else {
        throw arguments.refusal(
          of: "identity-provider", text,
          "must have the form google.com=CLIENT,KEYS_FILE or oidc.NAME=CLIENT,KEYS_FILE,ISSUER")
      }
      return AccountsConfiguration.IdentityProvider(
        id: parts[0], clientID: rest[0], keysPath: rest[1], issuer: rest.count == 3 ? rest[2] : nil)
    }
    return accounts
  }

  private static func log(_ arguments: Arguments) throws -> LogWriter {
    func choice<Choice>(
      _ option: String, _ standard: Choice, _ all: [(name: String, choice: Choice)]
    ) throws -> Choice {
      guard let text = arguments.value(option) else { return standard }
      guard let found = all.first(where: { $0.name == text }) else {
        throw arguments.refusal(of: option, text, "must be one of \(all.map(\.name).joined(separator: ", "))")
      }
      return found.choice
    }
    try arguments.exclude("quiet", "log-level")
    let standard = arguments.has("quiet") ? LogEvent.Level.warn : .info
    return LogWriter(
      format: try choice("log", LogFormat.plain, LogFormat.allCases.map { ($0.rawValue, $0) }),
      levelMin: try choice("log-level", standard, LogEvent.Level.allCases.map { ("\($0)", $0) }))
  }

  /// Returns the address in an option, or `nil` if the option is not given.
  /// - Throws: ``CommandFailure`` if it is not valid.
  static func address(
    _ arguments: Arguments, _ option: String, example: String
  ) throws -> HearthConfiguration.Address? {
    guard let text = arguments.value(option) else { return nil }
    guard let colon = text.lastIndex(of: ":"), colon != text.startIndex,
      let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port)
    else { throw arguments.refusal(of: option, text, "must be HOST:PORT, such as \(example)") }
    return HearthConfiguration.Address(host: withoutBrackets(String(text[..<colon])), port: port)
  }

  /// Returns the address of a host as URLs contain it: IPv6 addresses are in brackets there.
  private static func withoutBrackets(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  private static func tlsFiles(_ arguments: Arguments) throws -> HearthConfiguration.TLSFiles? {
    try arguments.requireBoth("tls-cert", "tls-key")
    guard let certificate = arguments.value("tls-cert"), let key = arguments.value("tls-key") else { return nil }
    return HearthConfiguration.TLSFiles(certificate: certificate, key: key)
  }

  /// Parses `ISSUER`, `ISSUER=FILE` or `ISSUER=URL`, or the same with `ISSUER,AUDIENCE`. For the issuer of a Firebase
  /// project, the audience is the project.
  private static func trust(
    _ text: String, _ arguments: Arguments, _ configuration: inout HearthConfiguration
  ) throws {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    let names = (parts.first ?? "").split(separator: ",", maxSplits: 1).map(String.init)
    guard let issuer = names.first, parts.count == 2 || issuer.hasPrefix("https://") else {
      throw arguments.refusal(
        of: "trust-issuer", text,
        "must have the form ISSUER, ISSUER=FILE or ISSUER,AUDIENCE=FILE; an ISSUER without a "
          + "FILE is an https URL")
    }
    let firebase = "https://securetoken.google.com/"
    let known = issuer.hasPrefix(firebase) ? String(issuer.dropFirst(firebase.count)) : nil
    guard let audience = names.count == 2 ? names[1] : known else {
      throw arguments.refusal(
        of: "trust-issuer", text, "must name the audience of its tokens: write \(issuer),AUDIENCE=FILE")
    }
    let place = parts.count == 2 ? parts[1] : nil
    if let place, !place.contains("://") {
      configuration.trustedIssuers.append(.init(issuer: issuer, audience: audience, path: place))
      return
    }
    guard place.map(DocumentFetch.isSafe) ?? true else {
      throw arguments.refusal(of: "trust-issuer", text, "must name an https URL for the keys")
    }
    configuration.onlineIssuers.append(.init(issuer: issuer, audience: audience, keysURL: place))
  }

  /// Parses `FILE` or `DATABASE=FILE`.
  private static func databaseFile(_ text: String) -> HearthConfiguration.DatabaseFile {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, DatabaseID(project: "p", database: parts[0]) != nil else {
      return HearthConfiguration.DatabaseFile(text)
    }
    return HearthConfiguration.DatabaseFile(parts[1], database: parts[0])
  }

  private static func imports(_ arguments: Arguments, _ configuration: HearthConfiguration) throws -> ImportSources? {
    let files = arguments.values("import")
    guard !files.isEmpty else { return nil }
    if configuration.loadProjects != nil {
      throw arguments.refusal(of: ["import"], "needs a server with one project; use `hearth import` while it runs")
    }
    return try ImportSources(
      files, database: try DatabaseChoice.database(arguments, project: configuration.project), parts: .all)
  }
}
