import Glibc
import HearthServer
import Testing

/// Replies that come in pieces, and what is left when servers go.
@Suite struct TestServerStreamTests {
  /// Opens a feed of the users and reads what is there.
  static func open(_ server: TestServer) async throws -> (TestServer.Response, String) {
    let request = TestServer.Request(
      "GET", "\(TestServerTests.documents)/users:listen", headers: [("accept", "text/event-stream")])
    let reply = try await server.respond(to: request, as: .admin)
    try #require(reply.status == 200)
    var text = ""
    for try await piece in reply.body {
      text += String(decoding: piece, as: UTF8.self)
      if text.contains("Ben") { break }
    }
    return (reply, text)
  }

  @Test func aFeedTellsOfCommitsAsTheyHappen() async throws {
    let db = try TestServerTests.base().fork()
    let (reply, text) = try await Self.open(db)
    #expect(text.contains("Ann"))
    #expect(try await TestServerTests.rename(db, "ann", as: .admin) == 200)
    var more = ""
    for try await piece in reply.body {
      more += String(decoding: piece, as: UTF8.self)
      if more.contains("Changed") { break }
    }
    #expect(more.contains("Changed"))
  }

  @Test func aFeedEndsWithTheLifeItBelongsTo() async throws {
    let db = try TestServerTests.base().fork()
    let (reply, _) = try await Self.open(db)
    async let rest = reply.text()
    try db.reset()
    // Whole, and not cut: whoever reads is told that it ended.
    _ = try await rest
    let (unread, _) = try await Self.open(db)
    try db.reset()
    _ = try? await unread.text()
    #expect(try await TestServerTests.get(db, "users/ann", as: .admin).status == 200)
  }

  @Test func aCancelledReaderLeaves() async throws {
    let db = try TestServerTests.base().fork()
    let (isOpen, opened) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      let (reply, _) = try await Self.open(db)
      opened.finish()
      return try await reply.text()
    }
    for await _ in isOpen {}
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
  }

  /// A message of protobuf in its frame; fields by number, all of them strings.
  @Test func grpcCallsHaveTheirTrailers() async throws {
    let db = try TestServerTests.base().fork()
    let name = Array("projects/demo/databases/(default)/documents/users/ann".utf8)
    let message = [0x0a, UInt8(name.count)] + name
    let frame: [UInt8] = [0, 0, 0, 0, UInt8(message.count)] + message
    let headers = [(name: "content-type", value: "application/grpc"), (name: "te", value: "trailers")]
    let reply = try await db.respond(
      to: .init("POST", "/google.firestore.v1.Firestore/GetDocument", headers: headers, body: frame), as: .user("ann"))
    let bytes = try await reply.bytes()
    #expect(String(decoding: bytes, as: UTF8.self).contains("Ann"))
    #expect(reply.body.trailers.contains { $0.name == "grpc-status" && $0.value == "0" }, "\(reply.body.trailers)")
  }

  @Test func largeBodiesAreRefusedAsBehindThePort() async throws {
    let db = try TestServerTests.base()
    let body = [UInt8](repeating: 0x20, count: 25 << 20)
    let reply = try await db.respond(to: .init("POST", "\(TestServerTests.documents):commit", body: body), as: .admin)
    #expect(reply.status == 413)
    let long = try await db.respond(
      to: .init("GET", "/v1/" + String(repeating: "a", count: 60 << 10)), as: .admin)
    #expect(long.status == 431)
  }

  /// In a process of its own, whose descriptors and maps are nobody else's.
  @Test func whatAServerHeldIsGivenBack() async {
    await #expect(processExitsWith: .success) {
      let base = try TestServerTests.base()
      func use(_ count: Int) async throws {
        for number in 0..<count {
          let db = try base.fork()
          _ = try await TestServerTests.rename(db, "ann", as: .admin)
          if number.isMultiple(of: 10) { try db.reset() }
          // Some go while somebody still listens.
          if number.isMultiple(of: 7) { _ = try await Self.open(db) }
        }
      }
      try await use(30)
      let before = Held()
      try await use(300)
      // What was cut ends a moment later, on its loop.
      var rounds = 0
      while Held() > before, rounds < 6000 {
        usleep(10_000)
        rounds += 1
      }
      let after = Held()
      precondition(!(after > before), "\(before) became \(after)")
    }
  }

  /// What a process holds of the system.
  struct Held: CustomStringConvertible {
    var descriptors = 0
    var maps = 0

    init() {
      if let directory = opendir("/proc/self/fd") {
        while readdir(directory) != nil { descriptors += 1 }
        closedir(directory)
      }
      if let file = fopen("/proc/self/maps", "r") {
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, 4096, file) != nil { maps += strstr(line, ".mdb") == nil ? 0 : 1 }
        fclose(file)
      }
    }

    // A few descriptors of the system's own come and go.
    static func > (a: Held, b: Held) -> Bool { a.descriptors > b.descriptors + 4 || a.maps > b.maps + 4 }

    var description: String { "\(descriptors) descriptors and \(maps) maps" }
  }
}
