import DocumentModel
import Foundation
import Testing
import TestSupport
import WireFormat
@testable import HearthCLI

/// `hearth restore`, and `hearth backups restore --only`.
@Suite(.needs(.hearth)) struct RestoreTests {
  private let directory: TemporaryDirectory
  private let place: [String]

  init() throws {
    directory = try TemporaryDirectory()
    place = ["--data", try directory.makeDataDirectory("d"), "--project", "demo"]
  }

  private func run(_ words: String...) throws -> String {
    let (exit, output) = try HearthBinary.run(words + place)
    #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
    return output
  }

  private func fail(_ words: String...) throws -> String {
    let (exit, output) = try HearthBinary.run(words + place)
    #expect(exit == .code(1) || exit == .code(64), "hearth \(words.joined(separator: " ")): \(output)")
    return output
  }

  /// Returns the time of a write, from its output.
  private func time(_ output: String) throws -> String {
    let start = try #require(output.firstRange(of: "(updated "))
    return String(output[start.upperBound...].prefix { $0 != ")" })
  }

  private func serve() throws -> ServerProcess {
    let process = try HearthBinary.start(["serve", "--port", "0"] + place)
    _ = try process.waitForLine(prefix: "hearth: listening on ", timeoutSeconds: 30)
    return process
  }

  /// Writes documents, and changes, deletes and adds some of them. Returns the moment before the changes.
  private func change() throws -> String {
    _ = try run("set", "users/ann", #"{"n": 1}"#)
    _ = try run("set", "users/bob", #"{"n": 1}"#)
    // This document has no parent.
    _ = try run("set", "users/cy/notes/1", #"{"text": "first"}"#)
    _ = try run("set", "other/1", #"{"n": 1}"#)
    let moment = try time(run("set", "users/ann/notes/1", #"{"text": "first"}"#))
    _ = try run("update", "users/ann", "n=2")
    _ = try run("set", "other/1", #"{"n": 2}"#)
    _ = try run("set", "users/new", #"{"n": 3}"#)
    _ = try run("delete", "users/ann/notes/1")
    _ = try run("delete", "users/cy/notes/1")
    return moment
  }

  @Test(arguments: [true, false]) func aCollectionGoesBackToAMoment(isServed: Bool) throws {
    let server = isServed ? try serve() : nil
    defer { server?.stop() }
    let moment = try change()
    let planned = "2 documents created, 1 changed back, 1 unchanged; 1 newer document kept"
    #expect(try run("restore", "users", "--at", moment, "--dry-run").contains("would change: \(planned)"))
    let asked = try fail("restore", "users", "--at", moment)
    #expect(asked.contains("nothing was changed; \(planned)") && asked.contains("--yes"), "\(asked)")
    #expect(try run("get", "users/ann").contains(#""n": 2"#))

    #expect(
      try run("restore", "users", "--at", moment, "--yes").contains("restored users as it was at \(moment): \(planned)")
    )
    #expect(try run("get", "users/ann").contains(#""n": 1"#))
    #expect(try run("get", "users/ann/notes/1").contains("first"))
    #expect(try run("get", "users/cy/notes/1").contains("first"))
    #expect(try run("get", "users/new").contains(#""n": 3"#))
    // Documents outside of the path stay as they are.
    #expect(try run("get", "other/1").contains(#""n": 2"#))
    // A repetition changes nothing.
    #expect(try run("restore", "users", "--at", moment, "--yes").contains("users is as it was at \(moment); 1 newer"))

    let all = try run("restore", "--at", moment, "--yes", "--delete-newer")
    #expect(all.contains("1 changed back, 1 deleted, 4 unchanged"), "\(all)")
    #expect(try fail("get", "users/new").contains("does not exist"))
    #expect(try run("get", "other/1").contains(#""n": 1"#))
  }

  @Test func aDocumentGoesToAnotherPath() throws {
    let moment = try change()
    let restored = try run("restore", "users/ann", "--at", moment, "--to", "old/ann", "--yes")
    #expect(
      restored.contains("restored old/ann as it was at \(moment): 2 documents created, 0 unchanged"), "\(restored)")
    #expect(try run("get", "old/ann").contains(#""n": 1"#))
    #expect(try run("get", "old/ann/notes/1").contains("first"))
    #expect(try run("get", "users/ann").contains(#""n": 2"#))
    #expect(try fail("restore", "users/ann", "--at", moment, "--to", "old", "--yes").contains("must name a document"))
    #expect(
      try fail("restore", "users/ann", "--at", moment, "--to", "users/ann/notes/x", "--yes").contains("above or below"))
    #expect(try fail("restore", "none", "--at", moment, "--yes").contains("no documents at or below none"))
  }

  @Test func momentsOutsideOfTheHistoryAreRefused() throws {
    let server = try serve()
    defer { server.stop() }
    let moment = try change()
    let early = try fail("restore", "users", "--at", "2020-01-01T00:00:00Z", "--yes")
    #expect(early.contains("the history of projects/demo/databases/(default) begins at 2"), "\(early)")
    #expect(early.contains("hearth backups restore PLACE --only PATH"))
    // The oldest time that the message names can be read.
    let start = try #require(early.firstRange(of: "begins at "))
    let oldest = String(early[start.upperBound...].prefix { $0 != "," })
    #expect(oldest < moment)
    #expect(try run("restore", "--at", oldest, "--dry-run").contains("is as it was at"))
    #expect(try fail("restore", "users", "--at", "10d", "--yes").contains("the history of"))
    #expect(try fail("restore", "users", "--at", "2100-01-01T00:00:00Z", "--yes").contains("is in the future"))
    #expect(try fail("restore", "users", "--yes").contains("name the moment with --at"))
    #expect(try fail("restore", "users", "--at", "yesterday", "--yes").contains("must be a time such as"))
  }

  @Test func aPartOfABackupReplacesThePresent() throws {
    let server = try serve()
    defer { server.stop() }
    _ = try run("set", "users/ann", #"{"n": 1}"#)
    _ = try run("set", "users/ann/notes/1", #"{"text": "first"}"#)
    let store = try HearthProcess.inMemory()
    defer { store.process.stop() }
    let url = "http://127.0.0.1:\(store.port)"
    let bucket = try TestHTTPClient(port: store.port).send(
      "POST", "/storage/v1/b?project=store", headers: [("Authorization", "Bearer owner")],
      body: Array(#"{"name": "backups"}"#.utf8))
    try #require(bucket.status == 200)
    for place in [[directory.file("b")], ["gs://backups/shop", "--endpoint", url]] {
      let data = ["--data", directory.file("d")]
      #expect(try HearthBinary.run(["backups", "create"] + place + data).exit == .code(0))
      _ = try run("delete", "users", "--recursive", "--yes")
      _ = try run("set", "users/new", #"{"n": 3}"#)
      let restore = ["backups", "restore"] + place + ["--only", "users/ann"] + data
      let (exit, output) = try HearthBinary.run(restore + ["--yes"])
      #expect(exit == .code(0) && output.contains("2 documents created, 0 unchanged"), "\(output)")
      #expect(try run("get", "users/ann/notes/1").contains("first"))
      let whole = try HearthBinary.run(["backups", "restore"] + place + ["--only", "/"] + data + ["--dry-run"])
      #expect(whole.exit == .code(0) && whole.output.contains("; 1 newer document kept"), "\(whole.output)")
      _ = try run("delete", "users/new")
    }
    let both = try HearthBinary.run(["backups", "restore", directory.file("b"), directory.file("x"), "--only", "users"])
    #expect(both.exit == .code(64) && both.output.contains("leave out the directory"), "\(both.output)")
    let neither = try HearthBinary.run(["backups", "restore", directory.file("b")])
    #expect(neither.exit == .code(64) && neither.output.contains("--only"), "\(neither.output)")
  }

  /// A past with one document, during whose comparison another client writes.
  private struct DisturbedPast: Subtree {
    var documents: [ServerClient.Found]
    let disturb: () throws -> Void

    mutating func next() throws -> ServerClient.Found? {
      guard !documents.isEmpty else {
        try disturb()
        return nil
      }
      return documents.removeFirst()
    }
  }

  @Test func documentsThatChangeMeanwhileAreNotOverwritten() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let words = ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo", "--yes", "--at", "1m"]
    let arguments = try Arguments(["users"] + words, for: .restore)
    let client = try ServerClient(arguments)
    func fields(_ number: Int64) -> EncodedFields { EncodedFields(MapValue([("n", .integer(number))])) }
    func key(_ id: String) throws -> DocumentKey { try #require(DocumentKey(try ResourcePath("users/\(id)"))) }
    for id in ["ann", "bob", "cy"] { _ = try client.set(try key(id), fields(2)) }
    var past = DisturbedPast(
      documents: try ["ann", "bob", "cy", "dan"].map { ServerClient.Found(key: try key($0), fields: fields(1)) },
      disturb: {
        _ = try client.set(try key("bob"), fields(3))
        _ = try client.set(try key("dan"), fields(3))
      })
    let restore = try SubtreeRestore(try ResourcePath("users"), in: client, as: "then", arguments)
    do {
      _ = try restore.run(&past)
      Issue.record("the restore reports no conflict")
    } catch let failure as CommandFailure {
      #expect(failure.message.hasPrefix("2 documents changed during the restore"), "\(failure.message)")
    }
    for (id, number) in [("ann", 1), ("bob", 3), ("cy", 1), ("dan", 3)] as [(String, Int64)] {
      #expect(try client.get(try key(id))?.fields.bytes == fields(number).bytes, "\(id)")
    }
  }

  @Test func batchesAreLimitedByDocumentsAndBytes() throws {
    struct Documents: Subtree {
      var documents: [ServerClient.Found]
      mutating func next() -> ServerClient.Found? { documents.isEmpty ? nil : documents.removeFirst() }
    }
    func document(_ number: Int, _ bytes: Int) throws -> ServerClient.Found {
      let id = String(String(number + 100_000).dropFirst())
      let path = try ResourcePath("c/\(id)")
      let key = DocumentKey(uncheckedPath: path)
      let text = String(repeating: "x", count: bytes)
      return ServerClient.Found(key: key, fields: EncodedFields(MapValue([("t", .string(text))])))
    }
    for (count, bytes, expected) in [(0, 1, []), (1, 1, [1]), (1201, 1, [500, 500, 201]), (5, 900_000, [2, 2, 1])] {
      let plan = try RestorePlan()
      var past = Documents(documents: try (0..<count).map { try document($0, bytes) })
      var present = Documents(documents: [])
      try plan.compare(&past, with: &present, deletesNewer: false, place: { $0 }, { _ in })
      #expect(plan.counts.created == count)
      var sizes: [Int] = []
      var keys: [String] = []
      try plan.forEachBatch { batch in
        sizes.append(batch.count)
        for change in batch {
          guard case .set(let key, let fields) = change.change else { continue }
          keys.append(key.path.text)
          #expect(fields.bytes.count > bytes && change.condition == .missing)
        }
      }
      #expect(sizes == expected)
      #expect(keys == keys.sorted() && keys.count == count)
    }
  }
}
