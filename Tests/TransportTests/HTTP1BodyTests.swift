import Testing
import TestSupport

@testable import Transport

/// HTTP/1 requests whose body a sink receives piece by piece.
@Suite struct HTTP1BodyTests {
  /// Counts and sums the body's bytes, and responds at its end.
  private final class Counter: BodySink {
    private let exchange: Exchange
    private var count = 0
    private var sum = 0

    init(_ exchange: Exchange) { self.exchange = exchange }

    func received(_ bytes: UnsafeRawBufferPointer) {
      count += bytes.count
      for byte in bytes { sum &+= Int(byte) }
    }

    func ended() {
      exchange.respond(status: 200, headers: { _ in }) { out in out.append(contentsOf: "\(count) \(sum)".utf8) }
    }
  }

  /// Returns a sink for `/count`, rejects `/refused` immediately, and handles complete bodies for all other targets.
  private final class Handler: RequestHandler {
    let closed = Observed(0)

    func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
      switch String(decoding: request.target, as: UTF8.self) {
      case "/count":
        let closed = closed
        exchange.onClose { closed.update { $0 += 1 } }
        return Counter(exchange)
      case "/refused":
        exchange.respond(status: 403, headers: { _ in }, body: { _ in })
        return nil
      default: return nil
      }
    }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) { TestServer.echo(request, exchange) }
  }

  private static func server(_ handler: Handler = Handler()) throws -> TestServer {
    try TestServer(configure: { $0.bodyBytesMax = 1000 }, handler: handler)
  }

  @Test(arguments: [1, 7, 1 << 20])
  func passesBodiesOfAnyLengthAndKeepsTheConnection(pieceBytes: Int) throws {
    let server = try Self.server()
    let client = try server.connect()
    let body = String(repeating: "x", count: 5000)
    let text =
      "POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n\(body)"
      + "POST /count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      + "1388\r\n\(body)\r\n3;e=1\r\nabc\r\n0\r\nTrailer: t\r\n\r\n"
      + "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
      client.send(Array(bytes[start..<min(start + pieceBytes, bytes.count)]))
    }
    #expect(try client.readReply().text == "5000 \(5000 * 120)")
    #expect(try client.readReply().text == "5003 \(5000 * 120 + 97 + 98 + 99)")
    #expect(try client.readReply().text == "post /whole|hi")
  }

  @Test func completeBodiesAreLimited() throws {
    let server = try Self.server()
    let client = try server.connect()
    client.send("POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n")
    #expect(try client.readReply().status == 413)
  }

  @Test func earlyResponsesCloseTheConnection() throws {
    let server = try Self.server()
    let client = try server.connect()
    client.send("POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc")
    let reply = try client.readReply()
    #expect(reply.status == 403 && reply.field("connection") == "close")
  }

  @Test func malformedChunksCloseTheConnection() throws {
    let handler = Handler()
    let server = try Self.server(handler)
    let client = try server.connect()
    client.send("POST /count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nz\r\n")
    #expect(try client.readReply().status == 400)
    #expect(handler.closed.wait { $0 == 1 })
  }

  @Test func disconnectInABodyIsReported() throws {
    let handler = Handler()
    let server = try Self.server(handler)
    let client = try server.connect()
    client.send("POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
    client.endSending()
    #expect(handler.closed.wait { $0 == 1 })
  }

  @Test func stalledBodiesAreCutOff() throws {
    let handler = Handler()
    let server = try Self.server(handler)
    let client = try server.connect()
    client.send("POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
    server.advance(seconds: 31)
    #expect(handler.closed.wait { $0 == 1 })
  }
}
