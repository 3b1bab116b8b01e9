import Glibc
import HearthServer

extension Command {
  /// Runs a command with a server that exists only as long as the command.
  static let exec = Command(
    name: "exec", summary: "Runs a command, such as a test suite, with its own server.",
    operands: "-- COMMAND [ARGUMENT] …", operandCount: 1...Int.max,
    options: serve.options.filter { !servingOnly.contains($0.name) }.map { option in
      switch option.name {
      case "port": option.withHelp("the port (default: a free port)")
      case "data": option.withHelp("keep the data in this directory, which is created if missing")
      case "in-memory": option.withHelp("keep all data in memory (default)")
      case "record-cases": option.withHelp("write the requests and their decisions as a rules test to this file")
      case "auth-port": option.withHelp("listen here too, for tests that expect accounts there")
      case "storage-port": option.withHelp("listen here too, for tests that expect files there")
      case "hub-port": option.withHelp("listen here too, for tools that ask for the ports there")
      case "project": option.withHelp("the project (default: $HEARTH_PROJECT, $GOOGLE_CLOUD_PROJECT or demo)")
      default: option
      }
    },
    details: """
      The server runs in emulator mode on 127.0.0.1, and stops when the command ends. Unless options say otherwise, it
      uses a free port and keeps its data in memory.

      The command finds the server in FIRESTORE_EMULATOR_HOST, FIREBASE_AUTH_EMULATOR_HOST,
      FIREBASE_STORAGE_EMULATOR_HOST, STORAGE_EMULATOR_HOST and FIREBASE_EMULATOR_HUB, and the project in
      GCLOUD_PROJECT and GOOGLE_CLOUD_PROJECT. Verbs of hearth that it runs use the same server (HEARTH_SERVER,
      HEARTH_PROJECT). For a command that contains the ports 8080, 9099 and 9199 itself, give them: --port 8080
      --auth-port 9099 --storage-port 9199.

      --record-cases FILE turns the tests into a rules test: it records each request that rules decided, with the
      documents that they read and the decision. `hearth rules test FILE` then repeats all decisions in milliseconds.

      The exit code is that of the command: 128 plus the number of the signal if a signal ended it, 127 if the command
      is not found, 126 if it cannot be run.
      """,
    examples: [
      ("hearth exec --project demo -- pytest", "runs the tests of an app"),
      ("hearth exec --import fixtures/journeys.json -- npm test", "starts with documents"),
      ("hearth exec --record-cases cases.tests.json -- npm test", "also records the tests as cases"),
      ("hearth exec --project my-app --import ./firebase-export -- npm test", "starts with a Firebase export"),
    ],
    run: { arguments in try exec(arguments) })

  /// The options of `hearth serve` that only make sense for a permanent server.
  private static let servingOnly: Set = [
    "host", "emulator", "allow-remote-emulator", "tls-cert", "tls-key", "config", "print-config",
    "metrics-address", "stop-grace", "one-port", "databases", "projects",
  ]

  private static func exec(_ arguments: Arguments) throws -> Int32 {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGCHLD] { sigaddset(&signals, signal) }
    // All threads that start later inherit this mask, so that only the wait below receives these signals.
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    var configuration = try configuration(arguments, isEmulator: true)
    if !arguments.has("port") { configuration.port = 0 }
    let project = configuration.project ?? DatabaseChoice.defaultProject
    configuration.project = project
    configuration.emulatorPorts = try EmulatorPortOptions.ports(arguments, configuration, hasDefaults: false)
    defer { configuration.log?.flush() }
    let recorded = try RecordedCaseFiles(arguments, isEmulator: true)
    configuration.accessObserver = recorded?.recorder
    let (server, url) = try startServer(arguments, configuration)
    defer { server.stop() }
    let address = String(url.drop { $0 != "/" }.dropFirst(2))
    let command = try ChildCommand(
      arguments.operands,
      environment: [
        ("FIRESTORE_EMULATOR_HOST", address), ("FIREBASE_AUTH_EMULATOR_HOST", address),
        ("FIREBASE_STORAGE_EMULATOR_HOST", address), ("STORAGE_EMULATOR_HOST", "http://" + address),
        ("FIREBASE_EMULATOR_HUB", address),
        ("GCLOUD_PROJECT", project),
        ("GOOGLE_CLOUD_PROJECT", project), ("HEARTH_SERVER", url), ("HEARTH_PROJECT", project),
      ])
    let code = command.wait(forwarding: &signals)
    do { try recorded?.write() } catch {
      // The status of the command matters more.
      guard code != 0 else { throw error }
      Terminal.error.write("hearth: \(TerminalText.lines(CommandFailure(error).message))\n")
    }
    return code
  }
}

/// The command that `hearth exec` runs, on this process's terminal and with additional environment variables.
private struct ChildCommand {
  private let processID: pid_t

  /// Starts the command.
  /// - Throws: ``CommandFailure`` with exit code 127 if the program does not exist, and 126 if it cannot be run.
  init(_ words: [String], environment: [(name: String, value: String)]) throws {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The command must not inherit the blocked signals.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    for (name, value) in environment { setenv(name, value, 1) }
    var argv = words.map { strdup($0) } + [nil]
    defer { for word in argv { free(word) } }
    var processID: pid_t = 0
    guard let name = argv[0] else { throw CommandFailure.failed("out of memory") }
    let code = posix_spawnp(&processID, name, nil, &attributes, &argv, environ)
    guard code == 0 else {
      throw CommandFailure(
        code == ENOENT ? 127 : 126, "cannot run '\(words[0])': \(String(cString: strerror(code)))")
    }
    self.processID = processID
  }

  /// Waits for the end of the command and returns its status as shells do. Forwards signals that were sent to this
  /// process only.
  func wait(forwarding signals: inout sigset_t) -> Int32 {
    while true {
      var information = siginfo_t()
      let signal = sigwaitinfo(&signals, &information)
      if signal == SIGCHLD {
        var status: Int32 = 0
        guard waitpid(processID, &status, WNOHANG) == processID else { continue }
        let ending = status & 0x7F
        return ending == 0 ? status >> 8 & 0xFF : 128 + ending
      }
      // The terminal also sends its signals to the command.
      if signal > 0, information.si_code == SI_USER { kill(processID, signal) }
    }
  }
}
