import DatabaseService
import DocumentModel
import DocumentStore
import FixtureTree
import Glibc
import HearthServer
import KeyValue

extension Command {
  /// Runs the server until it is told to stop.
  static let serve = Command(
    name: "serve", summary: "Runs the server.",
    options: [
      .value("host", "ADDRESS", "the address to listen on (default: 127.0.0.1)"),
      .value("port", "PORT", "the port; 0 picks a free one (default: 8080)"),
      .value("tls-cert", "FILE", "speak TLS, with this certificate chain in PEM form"),
      .value("tls-key", "FILE", "the certificate's private key, in PEM form"),
      .value("data", "DIR", "the data directory, made where it is missing (default: ./hearth-data)"),
      .flag("in-memory", "keep nothing on disk (default with --emulator)"),
      .value("project", "ID", "the project to serve; with --emulator only the default of tools"),
      .flag("emulator", "for development and tests: unsigned tokens count, without rules everybody is admin"),
      .flag("allow-remote-emulator", "let --emulator listen beyond loopback"),
      .repeated("import", "FILE", "load documents before listening; several go in one after the other"),
      .repeated("enterprise-database", "NAME", "a database of the enterprise edition; NAME* names all that begin so"),
      .value("map-size", "BYTES", "the size a database may grow to (default: 64G, in memory 8G)"),
      .repeated("rules", "FILE", "security rules; DATABASE=FILE for a database with its own (default: none)"),
      .value("compat", "emulator", "authorise queries as the official emulator does, unsoundly; for old test suites"),
      .value("storage-rules", "FILE", "security rules for files; without them only administrators reach files"),
      .repeated("indexes", "FILE", "firestore.indexes.json; DATABASE=FILE for a named database (default: as they are)"),
      .flag("require-indexes", "refuse queries that production would refuse for want of an index"),
      .flag("no-anonymous", "let nobody in as a guest"),
      .flag("no-password-sign-in", "let nobody sign in with a password"),
      .flag("no-sign-up", "accounts are made by administrators only"),
      .value("mail-command", "COMMAND", "sends a mail, which it reads from standard input, such as 'sendmail -t'"),
      .value("mail-from", "ADDRESS", "who mails are from (default: noreply@localhost)"),
      .value("action-url", "URL", "the page of the app that links in mails lead to"),
      .repeated(
        "identity-provider", "SPEC", "lets google.com=CLIENT,KEYS_FILE sign in; or apple.com, oidc.NAME=…,ISSUER"),
      .repeated("trust-issuer", "ISSUER=FILE", "tokens of this issuer count; FILE holds its keys (JWKS)"),
      .value("metrics-address", "HOST:PORT", "answer /metrics, /healthz and /readyz there, without credentials"),
      .value("log", "FORMAT", "how standard error is written: plain, text or json (default: plain)"),
      .value("log-level", "LEVEL", "what is logged: error, warn, info or debug (default: info)"),
      .value("log-requests", "N", "log one request of N; 1 is all (default: none)"),
      .value("stop-grace", "SECONDS", "how long a stop waits for requests under way (default: 10)"),
      .flag("quiet", "print the address and errors only"),
      .value("config", "FILE", "read options from this file (default: hearth.json and firebase.json, where they are)")
        .onCommandLineOnly,
      .flag("print-config", "print the options that would be in force, as a configuration file, and end")
        .onCommandLineOnly,
    ],
    details: """
      When it is ready it prints one line to standard output: hearth: listening on http://127.0.0.1:8080
      SIGTERM and SIGINT stop it: requests under way are finished first. SIGHUP has it read the rules, the certificate
      and the key again; rules are also read again when their file changes. Rules that do not compile end the start with
      exit code 65; later they leave those in force that were read before. With TLS the line says https. HTTP/1.1 and
      HTTP/2 are spoken on the one port, with TLS or without.
      Options may also stand in hearth.json in the working directory, under the same names; the command line wins. What
      neither says is taken from firebase.json: rules, indexes, and with --emulator the port and host.
      """,
    examples: [
      ("hearth serve --emulator", "in memory, for development"),
      ("hearth serve --emulator --import fixtures/journeys.json", "with documents"),
      ("hearth serve --emulator --data ./data --port 9090", "kept on disk, durable"),
      ("hearth serve --emulator --tls-cert cert.pem --tls-key key.pem", "with TLS"),
      ("hearth serve --emulator --rules firestore.rules", "guarded by security rules"),
      ("hearth serve --emulator --indexes firestore.indexes.json", "with composite indexes"),
    ],
    run: { arguments in try serve(arguments) })

  private static func serve(_ arguments: Arguments) throws -> Int32 {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
    // Every thread that starts from here on leaves these signals to the wait below.
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
        LogEvent(.warn, "configuration.ignored", "--host and --port are ignored: a socket was handed over (LISTEN_FDS)"))
    }
    let server = try makeServer(arguments, configuration)
    let url = try server.start()
    if arguments.value("log") ?? "plain" != "plain" {
      let fields: [LogEvent.Field] = [("url", .text(url)), ("version", .text(Version.current))]
      configuration.log?.write(LogEvent(.info, "server.listening", "", fields))
    }
    // Whoever waits for the line below may look for what was said before.
    configuration.log?.flush()
    Terminal.output.write("hearth: listening on \(url)\n")
    supervisor.tell("READY=1\nSTATUS=Listening on \(url)")
    waitForEnd(of: server, signals: signals, configuration, supervisor)
    supervisor.tell("STOPPING=1\nSTATUS=Finishing requests")
    // A second signal ends it at once.
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    server.stop()
    return 0
  }

  /// Opens a server and loads what it is to hold; it does not listen yet.
  static func makeServer(_ arguments: Arguments, _ configuration: HearthConfiguration) throws -> Server {
    let imports = try imports(arguments, configuration)
    if let imports, case .directory(let path) = configuration.storage {
      try report(
        DirectoryImport(
          directory: path, mapBytes: configuration.mapBytes,
          indexes: try configuration.indexes.first { $0.database == imports.database.database }
            .map { try IndexFile.read(file: $0.path) }
        ).run(imports, isQuiet: isQuiet(arguments)),
        configuration)
    }
    allowManyFiles()
    let server = try Server(configuration)
    if let imports, configuration.storage == .inMemory {
      guard let database = try server.service.databases.database(imports.database) else {
        throw CommandFailure.failed("\(imports.database) is not served")
      }
      var progress = Progress(isQuiet: isQuiet(arguments))
      defer { progress.clear() }
      try report(database.load(imports) { progress.show($0, "documents imported") }, configuration)
    }
    return server
  }

  /// Waits for the signal that ends the server; a hang-up only does so where a terminal may be what hung up, and there
  /// is nothing to read again.
  private static func waitForEnd(
    of server: Server, signals: sigset_t, _ configuration: HearthConfiguration, _ supervisor: Supervisor
  ) {
    let isReloadable =
      configuration.tls != nil || !configuration.rules.isEmpty || configuration.storageRules != nil
      || !configuration.trustedIssuers.isEmpty
    let endsOnHangUp = !isReloadable && !supervisor.isThere && hasTerminal
    while true {
      let isAlive = { server.isResponsive(withinMilliseconds: 2000) }
      guard let signal = supervisor.wait(for: signals, isAlive: isAlive) else {
        continue
      }
      guard signal == SIGHUP, !endsOnHangUp else { return }
      supervisor.tellReloading()
      server.reload()
      supervisor.tell("READY=1")
    }
  }

  /// Whether the program runs at a terminal, whose end is told by a hang-up.
  private static var hasTerminal: Bool {
    let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard terminal >= 0 else { return false }
    close(terminal)
    return true
  }

  /// Every connection and every open database takes descriptors; shells allow 1,024 where the system allows far more.
  private static func allowManyFiles() {
    var limit = rlimit()
    let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(files, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(files, &limit)
  }

  private static func isQuiet(_ arguments: Arguments) -> Bool { arguments.has("quiet") }

  private static func report(_ outcome: ImportOutcome, _ configuration: HearthConfiguration) {
    configuration.log?.write(LogEvent(.info, "import.done", ImportText.summary(outcome)))
  }

  /// What the options of `hearth serve` ask for.
  static func configuration(_ arguments: Arguments, isEmulator: Bool) throws -> HearthConfiguration {
    try arguments.exclude("data", "in-memory")
    var storage = HearthConfiguration.Storage.directory("./hearth-data")
    if arguments.has("in-memory") || isEmulator { storage = .inMemory }
    if let directory = arguments.value("data") { storage = .directory(directory) }
    var configuration = HearthConfiguration(storage: storage)
    configuration.mode = isEmulator ? .emulator : .production
    configuration.host = arguments.value("host") ?? configuration.host
    configuration.port = try arguments.integer("port", in: 0...65535) ?? configuration.port
    configuration.tls = try tlsFiles(arguments)
    configuration.project = DatabaseChoice.project(arguments)
    if arguments.has("enterprise-database") {
      configuration.enterpriseDatabases = arguments.values("enterprise-database")
    }
    configuration.allowsRemoteEmulator = arguments.has("allow-remote-emulator")
    // Address space is finite: a test suite may use thousands of databases in memory.
    if storage == .inMemory { configuration.mapBytes = 8 << 30 }
    configuration.mapBytes = try arguments.bytes("map-size", in: 1 << 20...1 << 46) ?? configuration.mapBytes
    configuration.requiresIndexes = arguments.has("require-indexes")
    configuration.indexes = arguments.values("indexes").map(databaseFile)
    configuration.rules = arguments.values("rules").map { text in
      let file = databaseFile(text)
      return HearthConfiguration.RulesFile(file.path, database: file.path == text ? nil : file.database)
    }
    if let other = arguments.value("compat") {
      guard other == "emulator" else { throw arguments.refusal(of: "compat", other, "must be emulator") }
      configuration.isEmulatorCompatible = true
    }
    configuration.accounts = try accounts(arguments)
    configuration.trustedIssuers = try arguments.values("trust-issuer").map { try issuerFile($0, arguments) }
    configuration.storageRules = arguments.value("storage-rules")
    configuration.log = try log(arguments)
    configuration.requestLogInterval = try arguments.integer("log-requests", in: 1...1_000_000_000)
    configuration.metricsAddress = try metricsAddress(arguments)
    configuration.stopGraceSeconds =
      try arguments.integer("stop-grace", in: 0...3600) ?? configuration.stopGraceSeconds
    if let project = configuration.project, DatabaseID(project: project) == nil {
      throw arguments.refusal(of: "project", project, "cannot name a project")
    }
    return configuration
  }

  /// The options that a configuration settles where nobody said them.
  private static func computed(_ configuration: HearthConfiguration) -> [String: [String]] {
    var values = [
      "host": [configuration.host], "port": [String(configuration.port)],
      "map-size": [String(configuration.mapBytes)], "mail-from": [configuration.accounts.mailSender],
      "stop-grace": [String(configuration.stopGraceSeconds)],
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
    accounts.identityProviders = try arguments.values("identity-provider").map { text in
      let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
      let rest = parts.count == 2 ? parts[1].split(separator: ",", maxSplits: 2).map(String.init) : []
      guard rest.count >= 2, rest.count == 3 || ["google.com", "apple.com"].contains(parts[0]) else {
        throw arguments.refusal(
          of: "identity-provider", text,
          "is no identity provider; write google.com=CLIENT,KEYS_FILE or oidc.NAME=CLIENT,KEYS_FILE,ISSUER")
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

  private static func metricsAddress(_ arguments: Arguments) throws -> HearthConfiguration.Address? {
    guard let text = arguments.value("metrics-address") else { return nil }
    guard let colon = text.lastIndex(of: ":"), colon != text.startIndex,
      let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port)
    else { throw arguments.refusal(of: "metrics-address", text, "must read HOST:PORT, such as 127.0.0.1:9090") }
    var host = String(text[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    return HearthConfiguration.Address(host: host, port: port)
  }

  private static func tlsFiles(_ arguments: Arguments) throws -> HearthConfiguration.TLSFiles? {
    try arguments.requireBoth("tls-cert", "tls-key")
    guard let certificate = arguments.value("tls-cert"), let key = arguments.value("tls-key") else { return nil }
    return HearthConfiguration.TLSFiles(certificate: certificate, key: key)
  }

  /// `ISSUER=FILE`, or `ISSUER,AUDIENCE=FILE`; the audience of a Firebase project's issuer is the project.
  private static func issuerFile(_ text: String, _ arguments: Arguments) throws -> HearthConfiguration.IssuerFile {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    let names = (parts.first ?? "").split(separator: ",", maxSplits: 1).map(String.init)
    guard parts.count == 2, let issuer = names.first else {
      throw arguments.refusal(of: "trust-issuer", text, "must read ISSUER=FILE or ISSUER,AUDIENCE=FILE")
    }
    let firebase = "https://securetoken.google.com/"
    let known = issuer.hasPrefix(firebase) ? String(issuer.dropFirst(firebase.count)) : nil
    guard let audience = names.count == 2 ? names[1] : known else {
      throw arguments.refusal(
        of: "trust-issuer", text, "must say for whom its tokens are: write \(issuer),AUDIENCE=FILE")
    }
    return HearthConfiguration.IssuerFile(issuer: issuer, audience: audience, path: parts[1])
  }

  /// A file, or `DATABASE=FILE`.
  private static func databaseFile(_ text: String) -> HearthConfiguration.DatabaseFile {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, DatabaseID(project: "p", database: parts[0]) != nil else {
      return HearthConfiguration.DatabaseFile(text)
    }
    return HearthConfiguration.DatabaseFile(parts[1], database: parts[0])
  }

  private static func imports(_ arguments: Arguments, _ configuration: HearthConfiguration) throws -> ImportFiles? {
    let files = arguments.values("import")
    guard !files.isEmpty else { return nil }
    if configuration.mode == .production, configuration.project == nil {
      throw arguments.refusal(of: ["import"], "needs a project, which says whose documents they are; add one")
    }
    return ImportFiles(files, database: try DatabaseChoice.database(arguments))
  }
}
