import HearthServer
import Testing
import TestSupport

@testable import HearthCLI

/// The further ports of an emulator, by options and by `firebase.json`.
@Suite struct EmulatorPortTests {
  /// Returns the ports as text: `auth 9099?` is a port that may be in use.
  private func ports(
    _ words: String, firebase: [String: String] = [:], hasDefaults: Bool = true
  ) throws -> [String] {
    var arguments = try Arguments(words.split(separator: " ").map(String.init), for: .serve)
    arguments.adopt(firebase.mapValues { Arguments.Setting(values: [$0], origin: FirebaseFile.name) })
    let configuration = try Command.configuration(arguments, isEmulator: arguments.has("emulator"))
    return try EmulatorPortOptions.ports(arguments, configuration, hasDefaults: hasDefaults)
      .map { "\($0.service) \($0.port)\($0.isRequired ? "" : "?")" }
  }

  @Test(
    arguments: [
      ("--emulator", ["auth 9099?", "storage 9199?", "hub 4400?"]),
      ("--emulator --port 9000 --auth-port 1", ["auth 1", "storage 9199?", "hub 4400?"]),
      ("--emulator --one-port", []), ("", []),
      // Servers that choose free ports, such as those of tests, must not meet on a fixed one.
      ("--emulator --port 0", []), ("--emulator --port 0 --hub-port 0", ["hub 0"]),
    ] as [(String, [String])])
  func defaultsBelongToAFixedMainPort(words: String, expected: [String]) throws {
    #expect(try ports(words) == expected)
  }

  @Test func theAdviceForAPortInUseDependsOnItsSource() throws {
    let arguments = try Arguments(["--emulator", "--auth-port", "1"], for: .serve)
    var firebase = arguments
    firebase.adopt(["hub-port": Arguments.Setting(values: ["2"], origin: FirebaseFile.name)])
    let configuration = try Command.configuration(firebase, isEmulator: true)
    let ports = try EmulatorPortOptions.ports(firebase, configuration, hasDefaults: false)
    #expect(ports.map(\.isOfFirebaseFile) == [false, true])
  }

  @Test func aSocketOfASupervisorOpensNoOtherPorts() throws {
    var arguments = try Arguments(["--emulator", "--hub-port", "0"], for: .serve)
    arguments.adopt(["auth-port": Arguments.Setting(values: ["1"], origin: FirebaseFile.name)])
    var configuration = try Command.configuration(arguments, isEmulator: true)
    configuration.listeningSocket = 3
    let ports = try EmulatorPortOptions.ports(arguments, configuration, hasDefaults: true)
    #expect(ports == [.init(.hub, port: 0)])
  }

  @Test func execHasOnlyTheNamedPorts() throws {
    #expect(try ports("--emulator --port 8080 --auth-port 9099", hasDefaults: false) == ["auth 9099"])
  }

  @Test func portsOfFirebaseFilesMustBeFree() throws {
    let firebase = ["auth-port": "1", "hub-port": "2"]
    #expect(try ports("--emulator", firebase: firebase) == ["auth 1", "storage 9199?", "hub 2"])
    #expect(try ports("--emulator --auth-port 3", firebase: firebase) == ["auth 3", "storage 9199?", "hub 2"])
  }

  @Test(
    arguments: [
      ("--auth-port 1", "'--auth-port' needs --emulator"),
      ("--emulator --one-port --hub-port 1", "'--one-port' and '--hub-port' exclude each other"),
      ("--emulator --storage-port 65536", "must be a whole number from 0 to 65535"),
    ])
  func contradictionsAreRefused(words: String, message: String) {
    let failure = #expect(throws: CommandFailure.self) { try ports(words) }
    #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
  }

  @Test(
    arguments: [
      ("{}", []), (#"{"functions": {}, "hosting": [], "extensions": {}, "emulators": {"ui": {"enabled": false}}}"#, []),
      (
        #"{"functions": [{"source": "f"}], "emulators": {"ui": {"enabled": true}, "functions": {"port": 5001}}}"#,
        ["firebase.json configures services that hearth does not have: functions, ui"]
      ),
      (
        #"{"emulators": {"auth": {"host": "0.0.0.0"}, "hub": {"host": "localhost"}}} // theirs"#,
        ["firebase.json: emulators.auth.host is ignored: all ports listen on 127.0.0.1 (--host)"]
      ),
      (#"{"unknown": 1, "emulators": {"singleProjectMode": true, "new": {"port": 1}}}"#, []),
    ] as [(String, [String])])
  func partsWithoutEffectAreNamed(text: String, lines: [String]) throws {
    #expect(try FirebaseFile.remarks(Array(text.utf8), host: nil) == lines)
  }

  @Test func ipv6HostsMayHaveBrackets() throws {
    let arguments = try Arguments(["--host", "[::1]"], for: .serve)
    #expect(try Command.configuration(arguments, isEmulator: true).host == "::1")
  }
}

/// The further ports of a running emulator.
@Suite(.needs(.hearth)) struct EmulatorPortServingTests {
  @Test func aFreePortServesAccounts() throws {
    let directory = try TemporaryDirectory()
    _ = try directory.write("firebase.json", #"{"hosting": {"public": "x"}, "emulators": {"auth": {"port": 1}}}"#)
    let binary = try #require(HearthBinary.path)
    // With a free main port, the server ignores the port of the file, which is reserved for the system.
    let process = try ServerProcess(
      executable: "/bin/sh",
      arguments: ["-c", "cd '\(directory.path)' && exec '\(binary)' serve --emulator --port 0 --storage-port 0"])
    defer { process.stop() }
    _ = try process.waitForLine(prefix: "hearth: listening on http://127.0.0.1:", timeoutSeconds: 30)
    #expect(process.output.contains("hosting.public names x, which does not exist, so the web app is not served"))
    #expect(process.output.contains(/further ports: \d+ \(storage\)\n/), "\(process.output)")
  }

  @Test func execAdvisesItsOwnOptionsForAPortInUse() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let run = try HearthBinary.run(["exec", "--auth-port", "\(server.port)", "--", "true"])
    #expect(run.exit == .code(1), "\(run.output)")
    #expect(
      run.output.contains("choose another port with --auth-port, or leave that option out")
        && !run.output.contains("--one-port"), "\(run.output)")
  }

  @Test func execListsItsPortsInTheHub() throws {
    let script = """
      test "$FIREBASE_EMULATOR_HUB" = "$FIRESTORE_EMULATOR_HOST" || exit 3
      exec 3<>"/dev/tcp/${FIREBASE_EMULATOR_HUB%:*}/${FIREBASE_EMULATOR_HUB#*:}"
      printf 'GET /emulators HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3
      cat <&3
      """
    let run = try HearthBinary.run(["exec", "--quiet", "--", "bash", "-c", script])
    #expect(run.exit == .code(0), "\(run.output)")
    #expect(run.output.contains(#""firestore":{"listen":[{"address":"127.0.0.1""#), "\(run.output)")
  }
}
