import DocumentStore
import Foundation
import HearthServer
import Testing
import TestSupport

/// Listeners see the deletion of expired documents, also after jumps of the clock.
@Suite struct ExpiryListenTests {
  @Test func listenersSeeExpiryAfterJumpsOfTheClock() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.indexes.json"
    try """
    {"indexes": [], "fieldOverrides": [
      {"collectionGroup": "c", "fieldPath": "end", "ttl": true,
       "indexes": [{"order": "ASCENDING", "queryScope": "COLLECTION"}]}]}
    """.write(toFile: file, atomically: true, encoding: .utf8)
    let time = SteppedTime()
    let server = try TestServer {
      $0.indexes = [HearthConfiguration.DatabaseFile(file)]
      $0.clock = Clock { time.now }
    }
    let start = time.now
    func set(_ name: String, endsIn seconds: Int) throws {
      let end = Date(timeIntervalSince1970: Double(time.now / 1_000_000 + Int64(seconds)))
      let text = ISO8601DateFormatter().string(from: end)
      let reply = try server.call("PATCH", "/c/\(name)", #"{"fields": {"end": {"timestampValue": "\#(text)"}}}"#)
      try #require(reply.status == 200, "\(reply.text)")
    }
    try set("soon", endsIn: 60)
    try set("late", endsIn: 2 * 365 * 86_400)
    _ = try server.call("PATCH", "/c/none", "{}")
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen")
    grpc.send(GRPCListenTests.query(2, "c"), on: stream)
    // A listener that begins after the deletion does not see it.
    try GRPCListenTests.events(grpc, stream)
    let feed = try FeedConnection(port: server.port, "GET", TestServer.root + "/c:listen")
    try feed.read(until: "CURRENT")
    /// Runs maintenance, and reads until both listeners have seen that a document was deleted.
    func deleted(_ name: String) throws {
      server.server.registry.maintain()
      try feed.read { $0.contains("documentDelete") && $0.contains("\"document\":\"\(TestServer.name)/c/\(name)\"") }
      while true {
        let message = try #require(try grpc.next(on: stream))
        if let change = Message.fields(4, of: message).first {
          #expect(Message.texts(1, of: change) == ["\(TestServer.name)/c/\(name)"])
          return
        }
      }
    }
    time.advance(seconds: 365 * 86_400)
    try deleted("soon")
    time.now = start - 86_400 * 1_000_000
    server.server.registry.maintain()
    try set("fresh", endsIn: 30)
    time.advance(seconds: 31)
    try deleted("fresh")
    let documents = try server.call("GET", "/c").json("documents", as: [[String: Any]].self)
    #expect(documents?.compactMap { ($0["name"] as? String)?.split(separator: "/").last } == ["late", "none"])
  }
}
