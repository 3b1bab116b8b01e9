import Glibc
import HearthServer
import Testing
import TestSupport

/// Streaming responses of test servers, and the release of their resources.
@Suite struct TestServerStreamTests {
  /// Opens a feed of the users and reads the initial documents.
  static func open(_ server: TestServer) async throws -> (TestServer.Response, String) {
    let request = TestServer.Request(
      "GET", "\(TestServerTests.documents)/users:listen", headers: [("accept", "text/event-stream")])
    let response = try await server.respond(to: request, as: .admin)
    try #require(response.status == 200)
    var text = ""
    for try await piece in response.body {
      text += String(decoding: piece, as: UTF8.self)
      if text.contains("Ben") { break }
    }
    return (response, text)
  }

  @Test func feedReportsCommits() async throws {
    let db = try TestServerTests.base().fork()
    let (response, text) = try await Self.open(db)
    #expect(text.contains("Ann"))
    #expect(try await TestServerTests.rename(db, "ann", as: .admin) == 200)
    var more = ""
    for try await piece in response.body {
      more += String(decoding: piece, as: UTF8.self)
      if more.contains("Changed") { break }
    }
    #expect(more.contains("Changed"))
  }

  @Test func resetEndsFeeds() async throws {
    let db = try TestServerTests.base().fork()
    let (response, _) = try await Self.open(db)
    async let rest = response.text()
    try db.reset()
    // The stream ends normally, so the reader gets no error.
    _ = try await rest
    let (unread, _) = try await Self.open(db)
    try db.reset()
    _ = try? await unread.text()
    #expect(try await TestServerTests.get(db, "users/ann", as: .admin).status == 200)
  }

  @Test func cancelledReaderStops() async throws {
    let db = try TestServerTests.base().fork()
    let (isOpen, opened) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      let (response, _) = try await Self.open(db)
      opened.finish()
      return try await response.text()
    }
    for await _ in isOpen {}
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
  }

  /// The request is a framed protobuf message with one string field.
  @Test func grpcResponsesHaveTrailers() async throws {
    let db = try TestServerTests.base().fork()
    let name = Array("projects/demo/databases/(default)/documents/users/ann".utf8)
    let message = [0x0a, UInt8(name.count)] + name
    let frame: [UInt8] = [0, 0, 0, 0, UInt8(message.count)] + message
    let headers = [(name: "content-type", value: "application/grpc"), (name: "te", value: "trailers")]
    let response = try await db.respond(
      to: .init("POST", "/google.firestore.v1.Firestore/GetDocument", headers: headers, body: frame), as: .user("ann"))
    let bytes = try await response.bytes()
    #expect(String(decoding: bytes, as: UTF8.self).contains("Ann"))
    #expect(
      response.body.trailers.contains { $0.name == "grpc-status" && $0.value == "0" }, "\(response.body.trailers)")
  }

  @Test func refusesLargeRequests() async throws {
    let db = try TestServerTests.base()
    let body = [UInt8](repeating: 0x20, count: 25 << 20)
    let response = try await db.respond(
      to: .init("POST", "\(TestServerTests.documents):commit", body: body), as: .admin)
    #expect(response.status == 413)
    let long = try await db.respond(
      to: .init("GET", "/v1/" + String(repeating: "a", count: 60 << 10)), as: .admin)
    #expect(long.status == 431)
  }

  /// Runs in a process of its own, so that it alone owns the descriptors and maps.
  @Test func serversReleaseTheirResources() async {
    await #expect(processExitsWith: .success) {
      let base = try TestServerTests.base()
      func use(_ count: Int) async throws {
        for number in 0..<count {
          let db = try base.fork()
          _ = try await TestServerTests.rename(db, "ann", as: .admin)
          if number.isMultiple(of: 10) { try db.reset() }
          // Some servers are released while a client still listens.
          if number.isMultiple(of: 7) { _ = try await Self.open(db) }
        }
      }
      try await use(30)
      let before = Held()
      try await use(300)
      // Closed streams end a moment later, on their event loop.
      let isReleased = OtherProcess.eventually { !(Held() > before) }
      precondition(isReleased, "\(before) became \(Held())")
    }
  }

  /// The system resources that a process holds.
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

    // The system opens and closes a few descriptors of its own.
    static func > (a: Held, b: Held) -> Bool { a.descriptors > b.descriptors + 4 || a.maps > b.maps + 4 }

    var description: String { "\(descriptors) descriptors and \(maps) maps" }
  }
}
