import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// `hearth exec --record-cases FILE` and `hearth serve --emulator --record-cases FILE`, run as commands.
@Suite(.needs(.hearth)) struct RecordCasesTests {
  private let directory: TemporaryDirectory
  private let rules: String
  private let file: String

  /// Rules of which the suite below tests all but the second condition of `update`.
  private static let text = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents/rooms/{room} {
        allow read: if request.auth.uid in resource.data.members;
        allow update: if request.auth.uid == resource.data.owner && request.resource.data.name is string;
      }
    }
    """
  /// A test suite that uses the verbs of hearth as a client library.
  private static let suite = """
    "$0" set rooms/r1 '{"owner": "ann", "members": ["ann", "bob"]}'
    "$0" get rooms/r1 --token "$("$0" token bob)" > /dev/null || exit 1
    "$0" get rooms/r1 --token "$("$0" token eve)" > /dev/null 2>&1 && exit 1
    "$0" set rooms/r1 '{"owner": "ann", "members": []}'
    "$0" update rooms/r1 '{"name": "New"}' --token "$("$0" token ann)" || exit 1
    "$0" update rooms/r1 '{"name": "New"}' --token "$("$0" token eve)" 2> /dev/null && exit 1
    exit 0
    """

  init() throws {
    directory = try TemporaryDirectory()
    rules = try directory.write("chat.rules", Self.text)
    file = directory.file("cases.tests.json")
  }

  private func exec(_ options: [String], _ script: String = suite) throws -> (exit: ProcessExit?, output: String) {
    let path = try #require(HearthBinary.path)
    return try HearthBinary.run(["exec", "--record-cases", file] + options + ["--", "sh", "-c", script, path])
  }

  @Test func withoutCasesTheEarlierFileStays() throws {
    let none = try exec([], "true")
    #expect(none.output.contains("hearth: no cases recorded") && !none.output.contains("stays"), "\(none.output)")
    _ = try directory.write("cases.tests.json", "earlier")
    let again = try exec([], "true")
    #expect(again.exit == .code(0), "\(again.output)")
    #expect(again.output.contains("; \(file) of an earlier recording stays as it was\n"), "\(again.output)")
    #expect(try directory.text("cases.tests.json") == "earlier")
  }

  @Test func recordedCasesRunWithoutAServer() throws {
    let run = try exec(["--rules", rules])
    #expect(run.exit == .code(0), "\(run.output)")
    #expect(
      run.output.contains("hearth: 4 cases from 2 tests, 1 ruleset; run: hearth rules test \(file)\n"), "\(run.output)")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    #expect(text.contains(#""rules": "chat.rules""#) && !text.contains("\"time\""), "\(text)")
    let test = try HearthBinary.run(["rules", "test", file, "--mutate"])
    #expect(test.exit == .code(0), "\(test.output)")
    #expect(test.output.contains("cases.tests.json: 4 passed"), "\(test.output)")
    #expect(
      test.output.contains("1 not detected by any case")
        && test.output.contains(":5: without `&& request.resource.data.name is string`"), "\(test.output)")
    // A second recording writes the same bytes.
    #expect(try exec(["--rules", rules, "--project", "other"]).exit == .code(0))
    #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
    // Rules that decide otherwise fail the cases.
    _ = try directory.write("chat.rules", Self.text.replacing("data.owner", with: "data.name"))
    #expect(try HearthBinary.run(["rules", "test", file]).exit == .code(1))
  }

  @Test func uploadedRulesAreWrittenNextToTheCases() throws {
    let script = """
      for text in 'true' 'false'; do
        curl -s -o /dev/null -X PUT "$HEARTH_SERVER/emulator/v1/projects/$HEARTH_PROJECT:securityRules" -d \
          '{"rules": {"files": [{"name": "a", "content":
          "service cloud.firestore { match /databases/{d}/documents/{c}/{i} { allow read: if '$text'; } }"}]}}' || exit 1
        "$0" get rooms/r1 --token "$("$0" token ann)" > /dev/null 2>&1
      done
      exit 7
      """
    let run = try exec([], script)
    #expect(run.exit == .code(7), "\(run.output)")
    let second = directory.file("cases-2.tests.json")
    #expect(
      run.output.contains("2 cases from 2 tests, 2 rulesets; run: hearth rules test \(file) \(second)\n"),
      "\(run.output)")
    #expect(try String(contentsOfFile: file, encoding: .utf8).contains(#""rules": "cases.recorded.rules""#))
    let test = try HearthBinary.run(["rules", "test", file, second])
    #expect(test.exit == .code(0) && test.output.contains("2 cases, all passed"), "\(test.output)")
  }

  @Test func saysThatNothingWasRecorded() throws {
    let run = try exec([], "exit 0")
    #expect(run.exit == .code(0))
    #expect(run.output.contains("no cases recorded: no rules decided a request; pass --rules FILE"), "\(run.output)")
    #expect(!FileManager.default.fileExists(atPath: file))
  }

  @Test func refusesAFileThatCannotBeWrittenAndProduction() throws {
    let run = try HearthBinary.run(["exec", "--record-cases", directory.file("none/x.json"), "--", "true"])
    #expect(run.exit == .code(1) && run.output.contains("none/x.json cannot be written: No such file"), "\(run.output)")
    let serve = try HearthBinary.run(["serve", "--in-memory", "--project", "p", "--port", "0", "--record-cases", file])
    #expect(serve.exit == .code(64) && serve.output.contains("it needs --emulator"), "\(serve.output)")
  }

  @Test func aServerWritesItsCasesWhenItStops() throws {
    let server = try HearthProcess(
      arguments: ["--emulator", "--project", "demo", "--rules", rules, "--record-cases", file])
    defer { server.process.stop() }
    let url = "http://127.0.0.1:\(server.port)"
    let get = try HearthBinary.run(["get", "rooms/r1", "--server", url, "--token", Self.token("eve")])
    #expect(get.exit == .code(1), "\(get.output)")
    server.process.send(signal: SIGTERM)
    #expect(server.process.waitForExit(timeoutSeconds: 20) == .code(0))
    #expect(server.process.output.contains("1 case from 1 test, 1 ruleset"), "\(server.process.output)")
    #expect(try HearthBinary.run(["rules", "test", file]).exit == .code(0))
  }

  private static func token(_ uid: String) throws -> String {
    try HearthBinary.run(["token", uid]).output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  @Test func pathsAreRelativeToTheTestFile() {
    for (path, file, expected) in [
      ("a.rules", "x.json", "a.rules"), ("./a.rules", "tests/x.json", "../a.rules"),
      ("rules/a.rules", "rules/x.json", "a.rules"), ("/r/a.rules", "/t/u/x.json", "../../r/a.rules"),
      ("rules/../a.rules", "x.json", "a.rules"),
    ] {
      #expect(RecordedCaseFiles.relative(path, to: file) == expected)
    }
    for (file, second) in [("a.tests.json", "a-2.tests.json"), ("a.json", "a-2.json"), ("d/a", "d/a-2")] {
      #expect(RecordedCaseFiles.name(file, number: 1) == file && RecordedCaseFiles.name(file, number: 2) == second)
    }
  }
}
