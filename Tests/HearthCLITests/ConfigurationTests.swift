import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// `hearth.json` with every option of `hearth serve`, and `firebase.json` of the Firebase tools.
@Suite struct ConfigurationTests {
  /// The file can set every option, with each type of value that the option accepts.
  @Test(arguments: Command.serve.options.map(\.name))
  func theFileAcceptsEveryOption(name: String) throws {
    let option = try #require(Command.serve.options.first { $0.name == name })
    let value = option.value == nil ? "true" : option.isRepeated ? #"["a", "b"]"# : #""a""#
    let text = Array("{\"\(name)\": \(value)}".utf8)
    guard option.isAllowedInFile else {
      let failure = #expect(throws: CommandFailure.self) { try ConfigurationFile.parse(text) }
      #expect(failure?.message == "hearth.json: \"\(name)\" can only be set on the command line")
      return
    }
    let expected = option.value == nil ? [""] : option.isRepeated ? ["a", "b"] : ["a"]
    #expect(try ConfigurationFile.parse(text) == [name: expected])
    // The printed configuration parses to the same values.
    var arguments = try Arguments([], for: .serve)
    arguments.adopt([name: Arguments.Setting(values: expected, origin: "x")])
    let printed = ConfigurationFile.effective(arguments, computed: [:])
    #expect(try ConfigurationFile.parse(printed) == [name: expected])
  }

  @Test func onlyOptionsForOneRunAreExcluded() {
    #expect(
      Command.serve.options.filter { !$0.isAllowedInFile }.map(\.name) == ["record-cases", "config", "print-config"])
  }

  @Test(
    arguments: [
      (
        #"{"firestore": {"rules": "f.rules", "indexes": "i.json"}, "hosting": {"public": "dist"}}"#,
        ["rules": ["f.rules"], "indexes": ["i.json"]]
      ),
      (
        #"{"firestore": [{"database": "(default)", "rules": "f.rules"}, {"database": "eu", "rules": "e.rules"}]}"#,
        ["rules": ["f.rules", "eu=e.rules"]]
      ),
      (#"{"storage": {"rules": "s.rules"}} // theirs"#, ["storage-rules": ["s.rules"]]),
      (
        #"{"storage": [{"bucket": "a", "rules": "s.rules"}, {"target": "b", "rules": "s.rules"}]}"#,
        ["storage-rules": ["s.rules"]]
      ),
      (#"{/* "firestore": {"rules": "x"}, */ "firestore": {"rules": "a=b//c"}}"#, ["rules": ["./a=b//c"]]),
      (
        #"{"emulators": {"firestore": {"port": 9999, "host": "127.0.0.1"}, "auth": {"port": 9099}}}"#,
        ["port": ["9999"], "host": ["127.0.0.1"], "auth-port": ["9099"]]
      ),
      (
        #"{"emulators": {"storage": {"port": 1}, "hub": {"port": 2}, "auth": {}}}"#,
        ["storage-port": ["1"], "hub-port": ["2"]]
      ),
      ("{}", [:]),
    ] as [(String, [String: [String]])])
  func readsFirebaseFiles(text: String, values: [String: [String]]) throws {
    #expect(try FirebaseFile.parse(Array(text.utf8), isEmulator: true) == values)
    let production = try FirebaseFile.parse(Array(text.utf8), isEmulator: false)
    #expect(production == values.filter { !$0.key.hasSuffix("port") && $0.key != "host" })
  }

  @Test(arguments: [
    (#"[]"#, "must be a JSON object"),
    (#"{"firestore": {"rules": 1}}"#, #""firestore.rules" must be a string"#),
    (#"{"firestore": {"indexes": ""}}"#, #""firestore.indexes" must be a string"#),
    (#"{"emulators": {"firestore": {"port": "x"}}}"#, #""emulators.firestore.port" must be a whole number"#),
    (#"{"emulators": {"hub": {"port": "x"}}}"#, #""emulators.hub.port" must be a whole number"#),
    (#"{"storage": [{"rules": "a"}, {"rules": "b"}]}"#, #""storage" names several rules files"#),
    (#"{"a": "#, "JSON"),
  ])
  func refusesFirebaseFiles(text: String, message: String) {
    let failure = #expect(throws: CommandFailure.self) {
      try FirebaseFile.parse(Array(text.utf8), isEmulator: true)
    }
    #expect(failure?.exitCode == 65)
    #expect(failure?.message.hasPrefix("firebase.json: ") == true)
    #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
  }
}

/// Configuration files read by the program, in its own working directory.
@Suite(.needs(.hearth)) struct ConfigurationServingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Runs `hearth WORDS` in the directory.
  private func run(_ words: String) throws -> (exit: ProcessExit?, output: String) {
    let binary = try #require(HearthBinary.path)
    let shell = try ServerProcess(
      executable: "/bin/sh",
      arguments: [
        "-c",
        "cd '\(directory.path)' && unset HEARTH_PROJECT GOOGLE_CLOUD_PROJECT && exec '\(binary)' \(words)",
      ])
    let exit = shell.waitForExit(timeoutSeconds: 30)
    if exit == nil { shell.stop() }
    return (exit, shell.output)
  }

  private func printed(_ words: String) throws -> [String: [String]] {
    let run = try run("serve --print-config \(words)")
    #expect(run.exit == .code(0), "\(run.output)")
    return try ConfigurationFile.parse(Array(run.output.utf8))
  }

  @Test func printsTheConfigurationInForce() throws {
    #expect(
      try printed("") == [
        "host": ["127.0.0.1"], "port": ["8080"], "data": ["./hearth-data"], "map-size": [String(64 << 30)],
        "mail-from": ["noreply@localhost"], "stop-grace": ["10"], "history": ["3600s"], "commit-log": ["on"],
      ])
    _ = try directory.write("hearth.json", #"{"port": 1, "emulator": true, "data": "d", "rules": ["x"]}"#)
    _ = try directory.write("firebase.json", #"{"firestore": {"rules": "f.rules", "indexes": "i.json"}}"#)
    _ = try directory.write("i.json", "{}")
    _ = try directory.write("f.rules", "")
    var found = try printed("--port 2")
    #expect(found["port"] == ["2"])
    #expect(found["data"] == ["d"])
    // hearth.json overrides firebase.json.
    #expect(found["rules"] == ["x"])
    #expect(found["indexes"] == ["i.json"])
    let more = #"{"port": 1, "emulator": true, "data": "d", "rules": ["x"], "log-level": "info"}"#
    _ = try directory.write("hearth.json", more)
    found = try printed("--in-memory --quiet")
    #expect(found["in-memory"] == [""])
    #expect(found["quiet"] == [""] && found["log-level"] == nil)
    #expect(found["data"] == nil)
    // Another file replaces both.
    _ = try directory.write("other.json", #"{"port": 3}"#)
    found = try printed("--config other.json")
    #expect(found["port"] == ["3"])
    #expect(found["indexes"] == nil && found["rules"] == nil && found["emulator"] == nil)
  }

  @Test(arguments: [
    ("hearth.json", #"{"port": 99999}"#, "", #"hearth.json: "port": '99999' must be a whole number"#),
    ("hearth.json", #"{"map-size": "x"}"#, "", #"hearth.json: "map-size": 'x' must be a size"#),
    ("hearth.json", #"{"compat": "x"}"#, "", #"hearth.json: "compat": 'x' must be 'emulator'"#),
    ("other.json", #"{"port": []}"#, "--config other.json", #"other.json: "port" must be"#),
    (
      "hearth.json", #"{"data": "d", "in-memory": true}"#, "",
      #"hearth.json: "data" and "in-memory" exclude each other"#
    ),
    (
      "hearth.json", #"{"tls-cert": "c.pem"}"#, "", #"hearth.json: "tls-cert" and "tls-key" belong together; give both"#
    ),
    (
      "other.json", #"{"tls-key": "k.pem"}"#, "--config other.json",
      #"other.json: "tls-cert" and "tls-key" belong together"#
    ),
    ("hearth.json", #"{"quiet": true, "log-level": "info"}"#, "", #"hearth.json: "quiet" and "log-level" exclude"#),
    ("x", "", "--config missing.json", "missing.json: cannot be opened: No such file"),
    ("firebase.json", #"{"firestore": {"rules": "gone"}}"#, "", #"firebase.json: "firestore.rules" names gone"#),
  ])
  func mistakesAreReportedWithTheirFile(file: String, text: String, words: String, message: String) throws {
    _ = try directory.write(file, text)
    let run = try run("serve --port 0 \(words)".replacing("--port 0", with: text.contains("port") ? "" : "--port 0"))
    #expect(run.exit == .code(65), "\(run.output)")
    #expect(run.output.contains(message), "\(run.output)")
  }

  @Test func rulesOfFirebaseFilesAreInForce() throws {
    _ = try directory.write(
      "firebase.json", #"{"firestore": {"rules": "f.rules"}, "emulators": {"firestore": {"port": 0}}}"#)
    _ = try directory.write("f.rules", "service cloud.firestore {")
    let run = try run("serve --emulator")
    #expect(run.exit == .code(65))
    #expect(run.output.contains("taken from firebase.json: --port 0 --rules f.rules"), "\(run.output)")
    #expect(run.output.contains("f.rules:1:"), "\(run.output)")
  }
}
