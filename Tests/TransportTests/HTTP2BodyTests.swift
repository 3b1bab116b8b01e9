import Testing
import TestSupport

@testable import Transport

/// Requests whose body is received piece by piece while the response is under way.
@Suite struct HTTP2BodyTests {
  /// Sends every piece back, as a chat would.
  private final class Chat: BodySink, BodySource, @unchecked Sendable {
    // Sendable: used on its exchange's loop. A test that reads it has waited for the loop.

    let exchange: Exchange
    private(set) var receivedBytes = 0
    private var pieces: [[UInt8]] = []
    private var isEnded = false

    init(_ exchange: Exchange) {
      self.exchange = exchange
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
      receivedBytes += bytes.count
      pieces.append(Array(bytes))
      exchange.resume()
    }

    func ended() {
      isEnded = true
      exchange.resume()
    }

    func nextSlice(into out: inout [UInt8]) -> BodyProgress {
      guard !pieces.isEmpty else { return isEnded ? .finished : .waiting }
      out.append(contentsOf: pieces.removeFirst())
      return .more
    }

    func addTrailers(to trailers: inout HeaderWriter) {
      trailers.add("x-received", "\(receivedBytes)")
    }
  }

  /// Opens chats for `/chat…`, rejects `/refused` immediately, and passes all other requests to `handle`.
  private final class Handler: RequestHandler {
    let chats = Observed<[Chat]>([])
    let closed = Observed(0)

    func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
      let target = String(decoding: request.target, as: UTF8.self)
      if target == "/refused" {
        exchange.respond(status: 403, headers: { _ in }, body: { _ in })
        return nil
      }
      guard target.hasPrefix("/chat") else { return nil }
      let chat = Chat(exchange)
      let closed = closed
      exchange.onClose { closed.update { $0 += 1 } }
      if target == "/chat/answered" {
        exchange.respond(status: 200, headers: { _ in }, body: { _ in })
      } else {
        if target == "/chat/paused" { exchange.pauseBody() }
        exchange.stream(status: 200, headers: { _ in }, from: chat)
      }
      chats.update { $0.append(chat) }
      return chat
    }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      TestServer.echo(request, exchange)
    }
  }

  @Test func respondsToPiecesBeforeTheBodyIsComplete() throws {
    let handler = Handler()
    let server = try TestServer(handler: handler)
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/chat", end: false)
    var expected: [UInt8] = []
    for round in 0..<20 {
      let piece = [UInt8](repeating: UInt8(round), count: round * 50 + 1)
      expected += piece
      client.send(.data(1, piece))
      try client.read(expected.count, of: 1)
      #expect(client.replies[1]?.body == expected)
    }
    // Trailers of a request end it and are otherwise ignored.
    client.send(.headers(1, [("x-any", "thing")], end: true))
    let reply = try client.reply(1)
    #expect(reply.isEnded && reply.trailer("x-received") == "\(expected.count)")
    #expect(handler.closed.value == 0)
  }

  @Test func requestsWithoutABodyEndTheirSinkAtOnce() throws {
    let server = try TestServer(handler: Handler())
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/chat")
    #expect(try client.reply(1).trailer("x-received") == "0")
  }

  @Test func handlersMayRefuseBeforeTheBody() throws {
    let server = try TestServer(handler: Handler())
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/refused", end: false)
    client.send(.data(1, [1, 2, 3], end: true))
    #expect(try client.reply(1).status == 403)
    client.request(3, "POST", "/whole", end: false)
    client.send(.data(3, [0x61], end: true))
    #expect(try client.reply(3).text == "post /whole|a")
  }

  @Test func sinksAreNotCalledAfterTheResponse() throws {
    let handler = Handler()
    let server = try TestServer(handler: handler)
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/chat/answered", end: false)
    client.send(.data(1, [1, 2, 3], end: true))
    #expect(try client.reply(1).status == 200)
    try client.settle()
    #expect(handler.chats.value[0].receivedBytes == 0)
  }

  @Test func windowLimitsPausedBodies() throws {
    let handler = Handler()
    let server = try TestServer(handler: handler)
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/chat/paused", end: false)
    let piece = [UInt8](repeating: 7, count: 16_384)
    let pieces = HTTP2Limits.streamWindowBytes / piece.count
    for _ in 0..<pieces {
      client.send(.data(1, piece))
      try client.settle()
    }
    let widened = { client.control.contains { $0.kind == .windowUpdate && $0.stream == 1 } }
    #expect(!widened())
    // Other streams continue, because the connection's window is open.
    client.request(3, "POST", "/whole", end: false)
    client.send(.data(3, piece, end: true))
    #expect(try client.reply(3).body.count == "post /whole|".utf8.count + piece.count)
    let chat = handler.chats.value[0]
    #expect(chat.receivedBytes == HTTP2Limits.streamWindowBytes)
    chat.exchange.loop.execute { chat.exchange.resumeBody() }
    while !widened() { _ = try #require(try client.readFrame()) }
    client.send(.data(1, piece, end: true))
    #expect(try client.reply(1).trailer("x-received") == "\((pieces + 1) * piece.count)")
  }

  @Test func disconnectEndsOpenExchanges() throws {
    let handler = Handler()
    let server = try TestServer(handler: handler)
    let client = try HTTP2Client(server)
    for stream in [1, 3] as [UInt32] { client.request(stream, "POST", "/chat", end: false) }
    client.send(.reset(1))
    #expect(handler.closed.wait { $0 == 1 })
    client.raw.endSending()
    #expect(server.wait { handler.closed.value == 2 && server.server.openConnections == 0 || client.raw.isEnded() })
  }
}
