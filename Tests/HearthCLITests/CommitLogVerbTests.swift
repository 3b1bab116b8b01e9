import Foundation
import Glibc
import Testing
import TestSupport

/// The verbs that open the files of a data directory see the commits in the log of a database: while a server writes, and
/// after it was killed.
@Suite(.needs(.hearth)) struct CommitLogVerbTests {
  private static let documents = 40
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var data: String { directory.file("d") }

  private func run(_ words: [String]) throws -> String {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "hearth \(words.joined(separator: " ")): \(result.output)")
    return result.output
  }

  private func fail(_ words: [String], with text: String) throws {
    let result = try HearthBinary.run(words)
    #expect(
      result.exit == .code(1) && result.output.contains(text),
      "hearth \(words.joined(separator: " ")): \(result.output)")
  }

  private func serve(_ data: String, hasLog: Bool) throws -> HearthProcess {
    try HearthProcess(arguments: ["--emulator", "--data", data, "--project", "demo"], hasLog: hasLog)
  }

  private static func put(_ client: TestHTTPClient, _ number: Int) throws {
    let reply = try client.send(
      "PATCH", "/v1/projects/demo/databases/(default)/documents/c/d\(number)",
      headers: [("Authorization", "Bearer owner")],
      body: Array(#"{"fields": {"n": {"integerValue": "\#(number)"}}}"#.utf8))
    try #require(reply.status == 200)
  }

  /// The numbers of the documents in an export.
  private func exported(_ data: String) throws -> [Int] {
    let text = try run(["export", "c", "--data", data, "--project", "demo", "--format", "ndjson"])
    return text.matches(of: /"n": ?(\d+)/).compactMap { Int($0.1) }.sorted()
  }

  // MARK: Beside a server

  /// Writes documents with rising numbers until it is stopped.
  private final class Writer: Sendable {
    private let state = Observed((written: 0, isStopped: false, hasEnded: false))

    init(port: UInt16) {
      Thread { [state] in
        let client = TestHTTPClient(port: port)
        while !state.value.isStopped {
          let next = state.value.written
          guard (try? CommitLogVerbTests.put(client, next)) != nil else { break }
          state.update { $0.written = next + 1 }
        }
        state.update { $0.hasEnded = true }
      }.start()
    }

    /// The number of documents that the server has acknowledged.
    var written: Int { state.value.written }

    func stop() {
      state.update { $0.isStopped = true }
      _ = OtherProcess.eventually { state.value.hasEnded }
    }
  }

  @Test(.timeLimit(.minutes(5)), arguments: [true, false]) func verbsSeeEveryCommitOfAServer(hasLog: Bool) throws {
    let server = try serve(data, hasLog: hasLog)
    defer { server.process.stop() }
    let writer = Writer(port: server.port)
    defer { writer.stop() }
    try #require(OtherProcess.eventually { writer.written >= Self.documents })
    let names = try FileManager.default.contentsOfDirectory(atPath: "\(data)/databases/demo/(default)")
    #expect(names.contains("data.mdb-log") == hasLog)
    let local = ["--data", data, "--project", "demo"]
    func expectWhole(_ numbers: [Int], after acknowledged: Int, _ what: String) {
      #expect(numbers.count >= acknowledged && numbers == Array(0..<numbers.count), "\(what): \(numbers.count)")
    }

    var before = writer.written
    expectWhole(try exported(data), after: before, "export")
    before = writer.written
    let stats = try run(["stats", "--data", data, "--json"]).firstMatch(of: /"documents": ?(\d+)/)
    #expect(stats.flatMap { Int($0.1) } ?? 0 >= before)
    before = writer.written
    let collections = try run(["stats", "--collections", "--data", data, "--json"]).firstMatch(
      of: /"documents": ?(\d+)/)
    #expect(collections.flatMap { Int($0.1) } ?? 0 >= before)
    before = writer.written
    let check = try run(["check", data]).firstMatch(of: /ok, ([\d,]+) documents/)
    #expect(check.flatMap { Int($0.1.filter(\.isNumber)) } ?? 0 >= before)
    before = writer.written
    let copy = directory.file("copy")
    _ = try run(["backup", copy, "--data", data])
    _ = try run(["check", copy])
    expectWhole(try exported(copy), after: before, "backup")
    let place = directory.file("places")
    _ = try run(["backups", "create", place, "--data", data])
    before = writer.written
    let second = try run(["backups", "create", place, "--data", data, "--incremental"])
    #expect(second.contains("incremental"), "\(second)")
    _ = try run(["backups", "restore", place, directory.file("restored")])
    _ = try run(["check", directory.file("restored")])
    expectWhole(try exported(directory.file("restored")), after: before, "incremental backup")
    _ = try run(["export", directory.file("firebase"), "--format", "firebase", "--only", "firestore"] + local)

    // These call the server.
    before = writer.written
    #expect(try run(["get", "c/d\(before - 1)"] + local).contains("\"n\": \(before - 1)"))
    #expect(try run(["query", "c", "--where", "n == \(before - 1)"] + local).contains("d\(before - 1)"))
    let tree = try directory.write("t.json", #"{"$collections": ["x"], "x": {"1": {"a": 1}}}"#)
    #expect(try run(["import", tree] + local) == "imported 1 document\n")
    let moment = try run(["get", "x/1", "--json"] + local).firstMatch(of: /"updateTime": ?"([^"]+)"/)?.1
    _ = try run(["set", "x/1", #"{"a": 2}"#] + local)
    _ = try run(["restore", "x/1", "--at", String(try #require(moment)), "--yes"] + local)
    #expect(try run(["get", "x/1"] + local).contains(#""a": 1"#))
    _ = try run(["backups", "restore", place, "--only", "c/d0", "--yes"] + local)
    #expect(try run(["doctor", "--data", data]).contains("(default) uses"))

    // These need the directory for themselves.
    try fail(["compact", "--data", data], with: "is in use by")
    try fail(["check", data, "--give-up-damaged-log"], with: "is in use by")
    try fail(["backups", "restore", place, data, "--database", "(default)"], with: "is in use by")
  }

  // MARK: After a crash

  /// Leaves a data directory as a killed server leaves it.
  private func kill(hasLog: Bool) throws {
    let server = try serve(data, hasLog: hasLog)
    let client = TestHTTPClient(port: server.port)
    for number in 0..<Self.documents { try Self.put(client, number) }
    server.process.send(signal: SIGKILL)
    _ = server.process.waitForExit(timeoutSeconds: 30)
    // Sockets cannot be copied.
    try FileManager.default.removeItem(atPath: "\(data)/run")
  }

  /// Returns a copy of the directory that was left.
  private func copy(_ name: String) throws -> String {
    try FileManager.default.copyItem(atPath: data, toPath: directory.file(name))
    return directory.file(name)
  }

  @Test(arguments: [true, false]) func verbsReadWhatAKilledServerLeft(hasLog: Bool) throws {
    try kill(hasLog: hasLog)
    let all = Array(0..<Self.documents)
    let folder = "databases/demo/(default)"
    let segments = try? FileManager.default.contentsOfDirectory(atPath: "\(data)/\(folder)/data.mdb-log")
    #expect((segments?.isEmpty ?? true) == !hasLog)
    let before = try Data(contentsOf: URL(fileURLWithPath: directory.dataFile("d")))

    // These change nothing.
    #expect(try run(["check", data]).contains("ok, 40 documents"))
    #expect(try run(["stats", "--data", data, "--json"]).contains(/"documents": ?40,/))
    #expect(try exported(data) == all)
    _ = try run(["doctor", "--data", data])
    _ = try run(["backup", directory.file("backup"), "--data", data])
    let place = directory.file("places")
    _ = try run(["backups", "create", place, "--data", data])
    #expect(try Data(contentsOf: URL(fileURLWithPath: directory.dataFile("d"))) == before)
    #expect(try exported(directory.file("backup")) == all)
    _ = try run(["check", directory.file("backup")])
    _ = try run(["backups", "restore", place, directory.file("restored")])
    #expect(try exported(directory.file("restored")) == all)

    // These move the log to the file, or replace both.
    let tree = try directory.write("t.json", #"{"$collections": ["c"], "c": {"d40": {"n": 40}}}"#)
    let imported = try copy("imported")
    _ = try run(["import", tree, "--data", imported, "--project", "demo"])
    #expect(try exported(imported) == all + [40])
    let compacted = try copy("compacted")
    _ = try run(["compact", "--data", compacted])
    #expect(try exported(compacted) == all)
    let replaced = try copy("replaced")
    _ = try run(["set", "c/d0", #"{"n": 7}"#, "--data", replaced, "--project", "demo"])
    _ = try run(["backups", "restore", place, replaced, "--database", "(default)"])
    #expect(try exported(replaced) == all)
    let changed = try copy("changed")
    _ = try run(["set", "c/d40", #"{"n": 40}"#, "--data", changed, "--project", "demo"])
    #expect(try exported(changed) == all + [40])
    for name in ["imported", "compacted", "replaced", "changed"] {
      _ = try run(["check", directory.file(name)])
      let left = try? FileManager.default.contentsOfDirectory(atPath: directory.file("\(name)/\(folder)/data.mdb-log"))
      #expect(left?.isEmpty ?? true, "\(name)")
    }

    // Servers with and without a log continue.
    for opensLog in [true, false] {
      let served = try copy("served\(opensLog)")
      let server = try serve(served, hasLog: opensLog)
      try Self.put(TestHTTPClient(port: server.port), 40)
      server.process.stop()
      #expect(try exported(served) == all + [40])
    }
  }

  @Test func aDamagedLogIsReportedAndCanBeGivenUp() throws {
    try kill(hasLog: true)
    let folder = "\(data)/databases/demo/(default)/data.mdb-log"
    let segment = URL(fileURLWithPath: "\(folder)/0000000000000001.log")
    var content = try Data(contentsOf: segment)
    let text = try #require(content.firstRange(of: Data("d20".utf8)))
    content[text.lowerBound] ^= 1
    try content.write(to: segment)
    let check = try HearthBinary.run(["check", data])
    #expect(check.exit == .code(1) && check.output.contains("its commit log \(folder): segment 1 is not readable"))
    #expect(check.output.contains("hearth check --give-up-damaged-log \(data)"), "\(check.output)")
    try fail(["export", "--data", data, "--project", "demo"], with: "run `hearth check` on the data directory")
    try fail(["backup", directory.file("b"), "--data", data], with: "\(folder) is damaged")
    let server = try HearthBinary.run(["get", "c/d1", "--data", data, "--project", "demo"])
    #expect(server.exit != .code(0))
    let given = try run(["check", data, "--give-up-damaged-log"])
    #expect(given.contains("the log is now \(folder)-damaged-") && given.contains("ok, "), "\(given)")
    let left = try exported(data)
    #expect(left == Array(0..<left.count) && (1...20).contains(left.count), "\(left)")
    #expect(try run(["get", "c/d1", "--data", data, "--project", "demo"]).contains("1"))
  }
}
