import Glibc
import HearthServer

extension Command {
  /// Runs a command beside a server of its own.
  static let exec = Command(
    name: "exec", summary: "Runs a command, such as a test suite, with a server of its own.",
    operands: "-- COMMAND [ARGUMENT] …", operandCount: 1...Int.max,
    options: serve.options.filter { !servingOnly.contains($0.name) }.map { option in
      switch option.name {
      case "port": option.saying("the port (default: a free one)")
      case "data": option.saying("keep the documents in this directory, made where it is missing")
      case "in-memory": option.saying("keep nothing on disk (default)")
      case "project": option.saying("the project (default: $HEARTH_PROJECT, $GOOGLE_CLOUD_PROJECT or demo)")
      default: option
      }
    },
    details: """
      Serves in emulator mode and in memory, on a free port of 127.0.0.1 unless told otherwise, for as long as the
      command runs. The command finds the server by FIRESTORE_EMULATOR_HOST, FIREBASE_AUTH_EMULATOR_HOST,
      FIREBASE_STORAGE_EMULATOR_HOST and STORAGE_EMULATOR_HOST, the project by GCLOUD_PROJECT and GOOGLE_CLOUD_PROJECT;
      verbs of hearth that it runs talk to that server too. The exit status is the command's: 128 and the signal's
      number where a signal ended it, 127 where it is not found. Nothing is left behind, unless --data keeps the
      documents.
      """,
    examples: [
      ("hearth exec --project demo -- pytest", "tests of a client"),
      ("hearth exec --import fixtures/journeys.json -- npm test", "with documents"),
    ],
    run: { arguments in try exec(arguments) })

  /// Options of a server that stays.
  private static let servingOnly: Set = [
    "host", "emulator", "allow-remote-emulator", "tls-cert", "tls-key", "config", "print-config",
    "metrics-address", "stop-grace",
  ]

  private static func exec(_ arguments: Arguments) throws -> Int32 {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGCHLD] { sigaddset(&signals, signal) }
    // Every thread that starts from here on leaves these signals to the wait below.
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    var configuration = try configuration(arguments, isEmulator: true)
    if !arguments.has("port") { configuration.port = 0 }
    let project = configuration.project ?? DatabaseChoice.defaultProject
    configuration.project = project
    defer { configuration.log?.flush() }
    let server = try makeServer(arguments, configuration)
    let url = try server.start()
    defer { server.stop() }
    let address = String(url.drop { $0 != "/" }.dropFirst(2))
    let command = try ChildCommand(
      arguments.operands,
      environment: [
        ("FIRESTORE_EMULATOR_HOST", address), ("FIREBASE_AUTH_EMULATOR_HOST", address),
        ("FIREBASE_STORAGE_EMULATOR_HOST", address), ("STORAGE_EMULATOR_HOST", "http://" + address),
        ("GCLOUD_PROJECT", project),
        ("GOOGLE_CLOUD_PROJECT", project), ("HEARTH_SERVER", url), ("HEARTH_PROJECT", project),
      ])
    return command.wait(forwarding: &signals)
  }
}

/// The command that `hearth exec` runs: on this process's terminal, with a few more variables.
private struct ChildCommand {
  private let processID: pid_t

  /// Starts it.
  /// - Throws: ``CommandFailure`` with 127 where there is no such program, 126 where it cannot be run.
  init(_ words: [String], environment: [(name: String, value: String)]) throws {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The command starts with the signals a shell would give it, not with those blocked here.
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

  /// Waits for its end and returns its status as shells count it. Signals meant for it alone are passed on.
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
      // What the terminal sends reaches the command by itself.
      if signal > 0, information.si_code == SI_USER { kill(processID, signal) }
    }
  }
}
