import Basics
import Testing
import TestSupport

@testable import Transport

/// Large bodies while the memory for received bytes is short. Bodies wait until others have ended, and requests that wait
/// for too long are refused with `RESOURCE_EXHAUSTED`. No connection is cut.
@Suite struct MemoryLineTests {
  private static let bufferedBytes = 400_000

  private static func server() throws -> TestServer { try TestServer { $0.bufferedBytesMax = bufferedBytes } }

  private static func head(_ bodyBytes: Int) -> String {
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(bodyBytes)\r\n\r\n"
  }

  private static func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x61, count: count) }

  /// Sends parts of bodies until they take all memory that bodies may have before they wait.
  private static func holdMemory(_ server: TestServer) throws -> [RawClient] {
    let clients = try (0..<2).map { _ in try server.connect() }
    for client in clients {
      client.send(head(200_000))
      client.send(bytes(100_000))
    }
    server.settle()
    return clients
  }

  @Test func bodiesWaitUntilOthersEnd() throws {
    let server = try Self.server()
    let holders = try Self.holdMemory(server)
    let waiting = try server.connect()
    waiting.send(Self.head(100_000))
    waiting.send(Self.bytes(100_000))
    server.advance(seconds: 9)
    #expect(server.server.requestsServed == 0)
    holders[0].reset()
    #expect(try waiting.readReply().body.count == 100_000 + 7)
    for holder in holders.dropFirst() {
      holder.send(Self.bytes(100_000))
      #expect(try holder.readReply().body.count == 200_000 + 7)
    }
  }

  @Test func partsOfManyBodiesCannotBlockEachOther() throws {
    let server = try Self.server()
    let clients = try (0..<24).map { _ in try server.connect() }
    for client in clients {
      client.send(Self.head(100_000))
      client.send(Self.bytes(50_000))
    }
    server.settle()
    for client in clients { client.send(Self.bytes(50_000)) }
    for client in clients {
      let reply = try client.readReply()
      #expect(reply.status == 200 && reply.body.count == 100_000 + 7)
    }
  }

  @Test func requestsThatWaitTooLongAreRefused() throws {
    let server = try Self.server()
    let holders = try Self.holdMemory(server)
    let waiting = try server.connect()
    waiting.send(Self.head(250_000))
    waiting.send(Self.bytes(200_000))
    server.advance(seconds: 11)
    let reply = try waiting.readReply()
    #expect(reply.status == 429 && reply.text.contains(#""status":"RESOURCE_EXHAUSTED""#), "\(reply.text)")
    #expect(waiting.isEnded())
    withExtendedLifetime(holders) {}
  }

  @Test func smallRequestsNeedNoMemoryOfBodies() throws {
    let server = try Self.server()
    let holders = try Self.holdMemory(server)
    for _ in 0..<5 {
      let client = try server.connect()
      client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try client.readReply().text == "get /a|")
    }
    withExtendedLifetime(holders) {}
  }

  /// A client reads the response only when it has sent its whole body.
  @Test func aRefusedClientMaySendTheRestOfItsBody() throws {
    let server = try Self.server()
    for _ in 0..<3 {
      let client = try server.connect()
      client.send(Self.head(8_000_000))
      client.send(Self.bytes(8_000_000))
      let reply = try client.readReply()
      #expect(reply.status == 429)
    }
    #expect(server.wait { server.server.openConnections == 0 })
  }

  @Test func aClientThatNeverStopsIsCutOff() throws {
    let server = try TestServer {
      $0.bufferedBytesMax = Self.bufferedBytes
      $0.bodyBytesMax = 2_000_000
    }
    let client = try server.connect()
    client.send(Self.head(1_500_000))
    for _ in 0..<40 { client.send(Self.bytes(100_000)) }
    #expect(server.wait { server.server.openConnections == 0 })
  }

  /// A body over HTTP/2 cannot wait, and leaves memory for the start of other requests.
  @Test func largePiecesLeaveMemoryForSmallOnes() {
    let pool = BufferPool(MemoryShare(bytesMax: 1_000_000))
    #expect(pool.reserve(400_000, for: .body) && !pool.reserve(200_000, for: .body))
    #expect(pool.reserve(300_000) && !pool.reserve(100_000))
    for _ in 0..<25 { #expect(pool.reserve(10_000)) }
    pool.release(950_000)
    #expect(pool.isWhole)
  }

  @Test func refusalsOverHTTP2() throws {
    let server = try TestServer { $0.bufferedBytesMax = 100_000 }
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/", end: false)
    client.request(3, "POST", "/call", [("content-type", "application/grpc"), ("te", "trailers")], end: false)
    for stream in [1, 3] as [UInt32] {
      for _ in 0..<12 { client.send(.data(stream, Self.bytes(10_000), end: false)) }
    }
    let reply = try client.reply(1)
    #expect(reply.status == 429 && reply.text.contains("RESOURCE_EXHAUSTED"))
    let call = try client.reply(3)
    #expect(call.status == 200 && call.field("grpc-status") == "8")
  }
}
