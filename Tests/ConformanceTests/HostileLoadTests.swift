import Foundation
import Testing
import TestSupport

/// Clients that request large responses and read nothing. The server's memory stays small, it answers health checks
/// meanwhile, and gives the memory back afterwards.
@Suite(.serialized, .needs(.hearth))
struct HostileLoadTests {
  /// The shapes of the load. Each makes the server produce more than a gigabyte if nothing stops it.
  enum Load: CaseIterable { case closedWindows, smallWindows, unreadLists, unreadFeeds }

  private static let documentBytes = 900_000
  private static let documents = 20
  private static let probeSeconds = 3.0
  /// Private memory of the process. Without limits, each load takes more than a gigabyte.
  private static let mebibytesMax = 512

  @Test(.timeLimit(.minutes(5)), arguments: Load.allCases)
  func unreadResponsesTakeLimitedMemory(load: Load) async throws {
    let seen = try await onDedicatedThread { try Self.run(load) }
    print(
      "hostile load \(load): \(seen.calm) MiB before, \(seen.peak) at most, \(seen.left) after; "
        + "slowest health check \(Int(seen.slowest * 1000)) ms")
    #expect(seen.peak < Self.mebibytesMax, "the process took \(seen.peak) MiB")
    #expect(seen.left < seen.calm + 64, "the process keeps \(seen.left) MiB, and had \(seen.calm) MiB")
    #expect(seen.slowest < 5, "a health check took \(seen.slowest) seconds")
    #expect(seen.reads, "another client was not served")
  }

  private struct Seen {
    var calm = 0
    var peak = 0
    var left = 0
    var slowest = 0.0
    var reads = false
  }

  private static func run(_ load: Load) throws -> Seen {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let session = RESTSession(port: server.port, database: TestDatabase(project: "p"), timeoutSeconds: 60)
    let text = String(repeating: "x", count: documentBytes)
    for index in 0..<documents { _ = try session.set("c/\(index)", ["text": ["stringValue": .string(text)]]) }
    var seen = Seen(calm: privateMebibytes(server))
    let clients = try send(load, to: server.port)
    // Health checks on new connections, for some seconds.
    _ = try OtherProcess.eventually(secondsMax: probeSeconds) {
      let start = ContinuousClock.now
      let probe = try LoopbackSocket(port: server.port, readSeconds: 60)
      probe.send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      _ = probe.receive()
      seen.slowest = max(seen.slowest, Double((ContinuousClock.now - start) / .milliseconds(1)) / 1000)
      seen.peak = max(seen.peak, privateMebibytes(server))
      return false
    }
    seen.reads = try session.get("c/1").status == 200
    for client in clients { client.close() }
    _ = OtherProcess.eventually {
      seen.left = privateMebibytes(server)
      return seen.left < seen.calm + 64
    }
    return seen
  }

  private static func send(_ load: Load, to port: UInt16) throws -> [LoopbackSocket] {
    let root = "/v1/projects/p/databases/(default)/documents"
    let query = #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#
    let fields = "Host: x\r\nAuthorization: Bearer owner\r\nContent-Type: application/json\r\n"
    let head = [
      (":method", "POST"), (":scheme", "http"), (":path", "\(root):runQuery"), (":authority", "x"),
      ("authorization", "Bearer owner"), ("content-type", "application/json"),
    ]
    switch load {
    case .closedWindows, .smallWindows:
      var bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
      bytes += HTTP2Frame.settings([(4, load == .closedWindows ? 0 : 1)]).bytes
      for index in 0..<200 as Range<UInt32> {
        bytes += HTTP2Frame.headers(index * 2 + 1, head, end: false).bytes
        bytes += HTTP2Frame.data(index * 2 + 1, Array(query.utf8), end: true).bytes
      }
      return try clients(8, port, bytes)
    case .unreadLists:
      return try clients(200, port, Array("GET \(root)/c HTTP/1.1\r\n\(fields)\r\n".utf8))
    case .unreadFeeds:
      let request = "POST \(root):listen HTTP/1.1\r\n\(fields)Content-Length: \(query.utf8.count)\r\n\r\n\(query)"
      return try clients(800, port, Array(request.utf8))
    }
  }

  private static func clients(_ count: Int, _ port: UInt16, _ bytes: [UInt8]) throws -> [LoopbackSocket] {
    let clients = try (0..<count).map { _ in try LoopbackSocket(port: port) }
    for client in clients { client.send(bytes) }
    return clients
  }

  /// The resident memory of a server without files and shared memory, such as the database.
  private static func privateMebibytes(_ server: HearthProcess) -> Int {
    let status = try? String(contentsOfFile: "/proc/\(server.process.processID)/status", encoding: .utf8)
    let line = status?.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
    return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 / 1024 } ?? 0
  }
}
