import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

@testable import HearthClient

/// Listeners: their snapshots, and how they resume after a lost connection.
@Suite(.timeLimit(.minutes(10))) struct SnapshotsTests {
  struct Note: Codable, Equatable, Sendable {
    var n: Int
  }

  /// A transport whose streams a test can break. It records the requests for streams.
  final class CuttableTransport: HearthTransport {
    private struct Cut: Error {}
    private let inner: URLSessionTransport
    private let state = Mutex(
      (streams: [AsyncThrowingStream<Data, any Error>.Continuation](), requests: [HearthRequest]()))

    init(_ url: URL) { inner = URLSessionTransport(url: url) }

    var requests: [HearthRequest] { state.withLock { $0.requests } }

    func cut() {
      for stream in state.withLock({ $0.streams }) { stream.finish(throwing: HearthClientError(.network, "cut")) }
    }

    func send(_ request: HearthRequest) async throws -> HearthResponse { try await inner.send(request) }

    func open(_ request: HearthRequest) async throws -> HearthStream {
      var stream = try await inner.open(request)
      let body = stream.body
      stream.body = AsyncThrowingStream { pieces in
        state.withLock {
          $0.streams.append(pieces)
          $0.requests.append(request)
        }
        let task = Task {
          do {
            for try await piece in body { pieces.yield(piece) }
            pieces.finish()
          } catch { pieces.finish(throwing: error) }
        }
        pieces.onTermination = { _ in task.cancel() }
      }
      return stream
    }
  }

  private func summary(_ snapshot: QuerySnapshot<Note>?) -> String {
    guard let snapshot else { return "end" }
    let documents = snapshot.documents.map { "\($0.id)=\($0.data?.n ?? -1)" }.joined(separator: " ")
    let changes = snapshot.changes.map { change in
      (change.kind == .added ? "+" : change.kind == .modified ? "~" : "-") + change.document.id
    }
    return "\(documents) | \(changes.joined(separator: " "))"
  }

  @Test func followsAQuery() async throws {
    let hearth = try TestHearth()
    let notes = try hearth.client().collection("notes")
    for (id, n) in [("a", 3), ("b", 1), ("c", 2)] { try await notes.document(id).set(Note(n: n)) }
    let query = notes.where("n", .lessThan, 10).order(by: "n", descending: true)
    var snapshots = query.snapshots(as: Note.self).makeAsyncIterator()
    #expect(summary(try await snapshots.next()) == "a=3 c=2 b=1 | +a +c +b")
    try await notes.document("b").set(Note(n: 4))
    #expect(summary(try await snapshots.next()) == "b=4 a=3 c=2 | ~b")
    try await notes.document("c").delete()
    #expect(summary(try await snapshots.next()) == "b=4 a=3 | -c")
    try await notes.document("a").set(Note(n: 10))
    let last = try await snapshots.next()
    #expect(summary(last) == "b=4 | -a")
    #expect(last?.isComplete == true && last?.readTime != nil && last?.resumeToken != nil)
    // The window moves to other documents if one is deleted.
    var window = notes.order(by: "n").limit(toLast: 1).snapshots(as: Note.self).makeAsyncIterator()
    #expect(summary(try await window.next()) == "a=10 | +a")
    try await notes.document("a").delete()
    #expect(summary(try await window.next()) == "b=4 | -a +b")
  }

  @Test func followsADocument() async throws {
    let hearth = try TestHearth()
    let note = try hearth.client().document("notes/a b")
    var snapshots = note.snapshots(as: Note.self).makeAsyncIterator()
    #expect(try await snapshots.next()?.exists == false)
    try await note.set(Note(n: 1))
    #expect(try await snapshots.next()?.data == Note(n: 1))
    try await note.delete()
    #expect(try await snapshots.next()?.exists == false)
  }

  @Test func aSlowReaderGetsTheNewestResults() async throws {
    let hearth = try TestHearth()
    let notes = try hearth.client().collection("notes")
    var snapshots = notes.snapshots(as: Note.self).makeAsyncIterator()
    #expect(summary(try await snapshots.next()) == " | ")
    var watch = notes.document("last").snapshots(as: Note.self).makeAsyncIterator()
    #expect(try await watch.next()?.exists == false)
    try await notes.document("a").set(Note(n: 0))
    for n in 1...20 { try await notes.document("a").set(Note(n: n)) }
    try await notes.document("b").set(Note(n: 0))
    try await notes.document("b").delete()
    try await notes.document("last").set(Note(n: 1))
    var summaries: [String] = []
    while let snapshot = try await snapshots.next() {
      summaries.append(summary(snapshot))
      if snapshot.documents.contains(where: { $0.id == "last" }) { break }
    }
    // Some snapshots may be skipped, but the changes of each lead to its results.
    #expect(summaries.count <= 24 && summaries.last?.hasPrefix("a=20 last=1 | ") == true, "\(summaries)")
    #expect(summaries.filter { $0.contains("+a") }.count == 1, "\(summaries)")
  }

  @Test func resumesAfterABrokenConnection() async throws {
    let hearth = try TestHearth()
    let transport = CuttableTransport(try #require(URL(string: hearth.url)))
    let notes = Hearth(transport: transport, project: "demo").collection("notes")
    for n in 0..<5 { try await notes.document("n\(n)").set(Note(n: n)) }
    var snapshots = notes.snapshots(as: Note.self).makeAsyncIterator()
    #expect(try await snapshots.next()?.documents.count == 5)
    for round in 1...3 {
      transport.cut()
      try await notes.document("n1").set(Note(n: 100 * round))
      #expect(summary(try await snapshots.next()) == "n0=0 n1=\(100 * round) n2=2 n3=3 n4=4 | ~n1")
    }
    #expect(transport.requests.count == 4)
    let tokens = transport.requests.map { request in
      (try? request.body.map { try JSON(parsing: $0)["resumeToken"]?.text }) ?? nil
    }
    #expect(tokens[0] == nil && tokens.dropFirst().allSatisfy { $0 != nil })
  }

  @Test func resumesAfterARestartOfTheServer() async throws {
    let directory = try TemporaryDirectory()
    // Use an address on which no other test can take the port meanwhile.
    var hearth: TestHearth? = try TestHearth {
      $0.storage = .directory(directory.path)
      $0.host = "127.0.0.2"
    }
    let port = try #require(hearth?.port)
    let client = try #require(try hearth?.client())
    let notes = client.collection("notes")
    for n in 0..<5 { try await notes.document("n\(n)").set(Note(n: n)) }
    var snapshots = notes.snapshots(as: Note.self).makeAsyncIterator()
    let first = try await snapshots.next()
    #expect(first?.documents.count == 5)
    hearth?.server.stop()
    hearth = nil
    let again = try TestHearth {
      $0.storage = .directory(directory.path)
      $0.host = "127.0.0.2"
      $0.port = port
    }
    let other = try again.client()
    try await other.document("notes/n1").set(Note(n: 7))
    try await other.document("notes/n2").delete()
    var snapshot = try await snapshots.next()
    if snapshot?.documents.count == 5 { snapshot = try await snapshots.next() }
    #expect(
      snapshot?.documents.map(\.id) == ["n0", "n1", "n3", "n4"] && snapshot?.documents[1].data == Note(n: 7))

    // A process that stored the results itself resumes from its token, and receives only the changes.
    try await other.document("notes/n9").set(Note(n: 9))
    var resumed = other.collection("notes").snapshots(as: Note.self, resumingFrom: first?.resumeToken)
      .makeAsyncIterator()
    let since = try await resumed.next()
    #expect(since?.isComplete == false)
    let changes = since?.changes.map { "\($0.kind) \($0.document.id)" } ?? []
    #expect(Set(changes) == ["added n1", "added n9", "removed n2"])
    try await other.document("notes/n9").delete()
    #expect(try await resumed.next()?.changes.map { "\($0.kind) \($0.document.id)" } == ["removed n9"])
  }

  @Test func anUnknownTokenStartsOver() async throws {
    let hearth = try TestHearth()
    let notes = try hearth.client().collection("notes")
    try await notes.document("a").set(Note(n: 1))
    var snapshots = notes.snapshots(as: Note.self, resumingFrom: ResumeToken(text: "AAAA")).makeAsyncIterator()
    let first = try await snapshots.next()
    #expect(first?.isComplete == true && first?.documents.map(\.id) == ["a"])
  }

  @Test func denialsEndAListener() async throws {
    let hearth = try TestHearth(
      rules: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{db}/documents {
            match /open/{id} { allow read, write; }
            match /gated/{id} { allow write; allow read: if get(/databases/$(db)/documents/open/gate).data.isOpen; }
          }
        }
        """)
    let client = try hearth.client()
    func isDenied(_ error: any Error) -> Bool { (error as? HearthClientError)?.code == .permissionDenied }
    var closed = client.collection("closed").snapshots().makeAsyncIterator()
    await #expect { try await closed.next() } throws: { isDenied($0) }
    // A denial that starts later also ends the listener.
    try await client.document("open/gate").set(["isOpen": true])
    var gated = client.document("gated/a").snapshots().makeAsyncIterator()
    #expect(try await gated.next()?.exists == false)
    try await client.document("open/gate").set(["isOpen": false])
    await #expect { while try await gated.next() != nil {} } throws: { isDenied($0) }
  }

  @Test func cancellationEndsAListener() async throws {
    let hearth = try TestHearth()
    let notes = try hearth.client().collection("notes")
    let (received, continuation) = AsyncStream<Int>.makeStream()
    let task = Task {
      for try await snapshot in notes.snapshots(as: Note.self) { continuation.yield(snapshot.documents.count) }
      continuation.finish()
    }
    var counts = received.makeAsyncIterator()
    #expect(await counts.next() == 0)
    task.cancel()
    #expect(await counts.next() == nil)
    try await task.value
  }

  struct Row: Codable { var v: Value }

  @Test func listenersSortLikeTheServer() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    let rows = client.collection("rows")
    let values: [Value] = [
      nil, false, true, .double(.nan), .double(-.infinity), -1, .double(-0.5), 0, .integer(1 << 53 + 1),
      .double(0x1p53),
      .integer(.max), .double(0x1p63), .timestamp(Timestamp(microseconds: 5)), "", "a", "\u{FFFF}", "🎈",
      .bytes(Data([1])),
      .bytes(Data([1, 0])), .reference(client.document("a/b")), .reference(client.document("a/__id7__")),
      .reference(client.document("a/b/c/d")), .geoPoint(GeoPoint(latitude: 1, longitude: 2)), [1], [1, 2], ["b"],
      .vector([9]), .vector([1, 2]), ["a": 1], ["a": 1, "b": 0], ["b": 0], [:],
    ]
    var batch = client.batch()
    for value in values { try batch.set(rows.document(), Row(v: value)) }
    try await batch.commit()
    for query in [rows.order(by: "v"), rows.order(by: "v", descending: true)] {
      let sorted = try await query.get().documents.map(\.id)
      var snapshots = query.snapshots().makeAsyncIterator()
      #expect(try await snapshots.next()?.documents.map(\.id) == sorted)
    }
  }
}
