import Foundation
import Testing
import TestSupport

/// A server with an index file, run as a command.
@Suite(.needs(.hearth)) struct IndexServingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static let file = """
    {"indexes": [{"collectionGroup": "load", "fields": [
        {"fieldPath": "t", "arrayConfig": "CONTAINS"}, {"fieldPath": "n", "order": "DESCENDING"}]}],
     "fieldOverrides": [{"collectionGroup": "load", "fieldPath": "text", "indexes": []}]}
    """

  private func serve(_ arguments: String...) throws -> HearthProcess {
    try HearthProcess(arguments: ["--emulator", "--project", "demo", "--data", directory.file("d")] + arguments)
  }

  private func stats(_ server: HearthProcess) throws -> String {
    try HearthBinary.run(["stats", "--server", "http://127.0.0.1:\(server.port)"]).output
  }

  /// A server that is killed while it builds and removes indexes resumes after a restart, and completes both.
  @Test func anIndexBuildResumesAfterKills() throws {
    let lines = (0..<12_000).map {
      #"{"path": "load/\#($0)", "fields": {"n": \#($0), "t": ["a", "b\#($0 % 5)"], "text": "x"}}"#
    }
    let documents = try directory.write("load.ndjson", lines.joined(separator: "\n"))
    let indexes = try directory.write("i.json", Self.file)
    #expect(
      try HearthBinary.run(["import", documents, "--data", directory.file("d"), "--project", "demo"]).exit == .code(0))
    let kills = 3
    var log = ""
    for number in 0..<kills {
      let server = try serve("--indexes", indexes)
      let url = "http://127.0.0.1:\(server.port)"
      let set = try HearthBinary.run(
        ["set", "load/new\(number)", #"{"n": 1, "t": ["a"]}"#, "--server", url, "--project", "demo"])
      #expect(set.exit == .code(0), "\(set.output)")
      server.process.send(signal: SIGKILL)
      _ = server.process.waitForExit(timeoutSeconds: 20)
      log += server.process.output
      let check = try HearthBinary.run(["check", directory.file("d")])
      #expect(check.exit == .code(0), "\(check.output)")
    }
    let server = try serve("--indexes", indexes)
    var text = ""
    for _ in 0..<600 {
      text = try stats(server)
      if text.contains("n ascending): ready"), text.contains("not indexed: ready") { break }
    }
    #expect(text.contains("demo/(default): index load (t contains, n ascending): ready"), "\(text)")
    #expect(text.contains("demo/(default): index load, field text: not indexed: ready"), "\(text)")
    server.process.stop()
    #expect(log.contains("databases/(default): index load (t contains, n ascending): building, "), "\(log)")
    let check = try HearthBinary.run(["check", directory.file("d")])
    #expect(check.exit == .code(0), "\(check.output)")
    // One entry for each of n and t, and for each element of t one entry and one in the index.
    let entries = 12_000 * 6 + kills * 4
    #expect(check.output.contains("\(12_000 + kills) documents, \(entries) index entries"), "\(check.output)")
    // Without the option the indexes stay.
    let stats = try HearthBinary.run(["stats", "--data", directory.file("d")]).output
    #expect(stats.contains("n ascending): ready"), "\(stats)")
  }

  @Test func aMistakeInTheFileIsReportedWithItsPosition() throws {
    let indexes = try directory.write(
      "i.json", "{\"indexes\": [\n  {\"collectionGroup\": \"c\", \"fields\": [{\"fieldPath\": \"a\"}]}]}")
    let result = try HearthBinary.run(["serve", "--emulator", "--port", "0", "--indexes", indexes])
    #expect(result.exit == .code(65))
    #expect(result.output.contains(#"i.json:2:39: indexes[0].fields[0]: lacks "order""#), "\(result.output)")
    let missing = try HearthBinary.run([
      "serve", "--emulator", "--port", "0", "--indexes", "other=\(directory.file("none"))",
    ])
    #expect(missing.exit == .code(65))
    #expect(missing.output.contains("none: cannot open the file"), "\(missing.output)")
  }
}
