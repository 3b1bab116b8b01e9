import Testing
import TestSupport

@testable import Transport

/// Many streams on one connection, bodies in pieces, and flow control.
@Suite struct HTTP2StreamTests {
  @Test func aHundredStreamsAreAnsweredInAnyOrder() throws {
    let kept = Observed<[(target: String, exchange: Exchange)]>([])
    let server = try TestServer { request, exchange in
      let target = String(decoding: request.target, as: UTF8.self)
      kept.update { $0.append((target, exchange)) }
    }
    let client = try HTTP2Client(server)
    for index in 0..<100 { client.request(UInt32(index * 2 + 1), "GET", "/\(index)") }
    #expect(kept.wait { $0.count == 100 })
    for (target, exchange) in kept.value.reversed() {
      exchange.loop.execute {
        exchange.respond(status: 200, headers: { _ in }, body: { $0.append(line: target) })
      }
    }
    for index in (0..<100).reversed() { #expect(try client.reply(UInt32(index * 2 + 1)).text == "/\(index)") }
    #expect(server.server.requestsServed == 100)
  }

  @Test func streamsBeyondTheLimitAreRefusedAndMayBeRetried() throws {
    let kept = Observed<[Exchange]>([])
    let server = try TestServer(configure: { $0.streamsMax = 3 }) { _, exchange in
      kept.update { $0.append(exchange) }
    }
    let client = try HTTP2Client(server)
    for index in 0..<4 { client.request(UInt32(index * 2 + 1)) }
    // 7 is REFUSED_STREAM: the server has not processed the request, so a client may retry it.
    #expect(try client.reply(7).resetCode == 7)
    #expect(kept.value.count == 3)
    let exchange = kept.value[0]
    exchange.loop.execute { exchange.respond(status: 200, headers: { _ in }, body: { _ in }) }
    _ = try client.reply(1)
    client.request(9)
    #expect(kept.wait { $0.count == 4 })
  }

  @Test func transfersFiveMebibytesBothWaysOverSmallWindows() throws {
    let bytes = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
    let server = try TestServer { request, exchange in
      let body = Array(request.body)
      exchange.respond(status: 200, headers: { _ in }, compressible: false) { $0.append(contentsOf: body) }
    }
    // The response uses a window of 4,000 bytes.
    let client = try HTTP2Client(server, settings: [(4, 4000)])
    client.request(1, "POST", "/", end: false)
    var sent = 0
    // The initial windows of the server, then the updates.
    var stream = HTTP2Limits.streamWindowBytes
    var connection = 65_535
    var seen = 0
    while sent < bytes.count {
      let count = min(stream, connection, 16_384, bytes.count - sent)
      if count > 0 {
        client.send(.data(1, Array(bytes[sent..<(sent + count)]), end: sent + count == bytes.count))
        sent += count
        stream -= count
        connection -= count
      } else {
        _ = try #require(try client.readFrame())
        for frame in client.control[seen...] where frame.kind == .windowUpdate {
          let increment = HTTP2Frame.number(frame.payload[...])
          if frame.stream == 0 { connection += increment } else { stream += increment }
        }
        seen = client.control.count
      }
    }
    let reply = try client.reply(1)
    #expect(reply.body == bytes)
    #expect(reply.dataFrames >= bytes.count / 4000)
  }

  @Test func clientsMayNotExceedTheWindow() throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/", end: false)
    // The connection's window is 1 MiB, more than the server takes in one turn of the loop.
    let frame = HTTP2Frame.data(1, [UInt8](repeating: 0, count: 16_384)).bytes
    client.raw.send(Array(repeating: frame, count: 100).flatMap { $0 })
    client.send(.data(1, [], end: true))
    // Either the server was fast enough and responds, or it sends FLOW_CONTROL_ERROR. It never buffers more than the
    // windows.
    let reply = client.replies[1] ?? (try? client.reply(1))
    let code = client.control.last { $0.kind == .goAway }?.code
    #expect(reply?.status == 200 || reply?.resetCode == 3 || code == 3)
  }

  @Test func streamedResponsesShareTheConnection() throws {
    let server = try TestServer { request, exchange in
      let letter = request.target[1]
      exchange.stream(
        status: 200, headers: { $0.add("x-a", "b") },
        from: Slices(count: 20, bytes: 10_000, letter: letter, trailers: [("grpc-status", "0")]))
    }
    let client = try HTTP2Client(server)
    for index in 0..<10 { client.request(UInt32(index * 2 + 1), "GET", "/\(index)") }
    for index in 0..<10 {
      let reply = try client.reply(UInt32(index * 2 + 1))
      #expect(reply.field("x-a") == "b" && reply.trailer("grpc-status") == "0" && reply.isEnded)
      #expect(reply.body == [UInt8](repeating: UInt8(ascii: "0") + UInt8(index), count: 200_000))
    }
    #expect(server.server.requestsServed == 10)
  }

  @Test func headRequestsDoNotAskTheSource() throws {
    let asked = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: Slices(count: 1, bytes: 1, asked: asked))
    }
    let client = try HTTP2Client(server)
    client.request(1, "HEAD")
    let reply = try client.reply(1)
    #expect(reply.isEnded && reply.dataFrames == 0 && asked.value == 0)
  }

  @Test func failingSourcesResetOnlyTheirStream() throws {
    let closed = Observed(0)
    let server = try TestServer { request, exchange in
      if request.target.count > 1 { return TestServer.echo(request, exchange) }
      exchange.onClose { closed.update { $0 += 1 } }
      exchange.stream(status: 200, headers: { _ in }, from: Slices(count: 2, bytes: 5, end: .failed))
    }
    let client = try HTTP2Client(server)
    client.request(1)
    let reply = try client.reply(1)
    // 2 is INTERNAL_ERROR.
    #expect(reply.body.count == 10 && !reply.isEnded && reply.resetCode == 2 && closed.value == 1)
    client.request(3, "GET", "/next")
    #expect(try client.reply(3).text == "get /next|")
  }

  @Test func sourcesAreAskedOnlyWhileTheWindowIsOpen() throws {
    let asked = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: Slices(count: 100, bytes: 1000, asked: asked))
    }
    let client = try HTTP2Client(server, settings: [(4, 2500)])
    client.opensWindows = false
    client.request(1)
    try client.read(2500, of: 1)
    try client.settle()
    #expect(client.replies[1]?.body.count == 2500 && asked.value == 3)
    client.send(.windowUpdate(1, 3000))
    try client.read(5500, of: 1)
    try client.settle()
    #expect(client.replies[1]?.body.count == 5500 && asked.value == 6)
    client.opensWindows = true
    client.send(.windowUpdate(1, 1 << 20))
    #expect(try client.reply(1).body.count == 100_000)
    #expect(asked.value == 101)
  }

  @Test func clientsThatOpenNoWindowUseLimitedMemory() throws {
    let handled = Observed(0)
    let body = [UInt8](repeating: 0x61, count: 200_000)
    let server = try TestServer { _, exchange in
      handled.update { $0 += 1 }
      exchange.respond(status: 200, headers: { _ in }) { $0.append(contentsOf: body) }
    }
    let client = try HTTP2Client(server, settings: [(4, 0)])
    for index in 0..<100 { client.request(UInt32(index * 2 + 1)) }
    try client.settle()
    // Six responses exceed 1 MiB. The other requests wait until the client takes its responses.
    #expect(handled.value == 6)
    client.send(.settings([(4, 1 << 20)]))
    for index in 0..<100 { #expect(try client.reply(UInt32(index * 2 + 1)).body.count == 200_000) }
    #expect(handled.value == 100)
  }

  @Test func clientsThatDoNotReadStopTheServer() throws {
    let asked = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: Slices(count: 1_000_000, bytes: 16_000, asked: asked))
    }
    let client = try HTTP2Client(server, settings: [(4, 0x7fff_ffff)])
    client.send(.windowUpdate(0, 0x7fff_0000))
    for index in 0..<4 { client.request(UInt32(index * 2 + 1)) }
    server.settle(asked)
    // The slices produced so far are in the kernel's buffers.
    #expect(asked.value < 2000)
  }

  @Test func sourcesWaitAndResume() throws {
    let feeds = Observed<[(LineSource, Exchange)]>([])
    let server = try TestServer { _, exchange in
      let feed = LineSource()
      feeds.update { $0.append((feed, exchange)) }
      exchange.stream(status: 200, headers: { _ in }, from: feed)
    }
    let client = try HTTP2Client(server)
    client.request(1)
    client.request(3)
    #expect(feeds.wait { $0.count == 2 })
    for round in 1...3 {
      for (feed, exchange) in feeds.value {
        exchange.loop.execute {
          feed.lines.append("line \(round)\n")
          exchange.resume()
          exchange.resume()
        }
      }
      for stream in [1, 3] as [UInt32] {
        let expected = (1...round).map { "line \($0)\n" }.joined()
        while client.replies[stream]?.text != expected { _ = try #require(try client.readFrame()) }
      }
    }
    let (feed, exchange) = feeds.value[1]
    exchange.loop.execute {
      feed.isFinished = true
      exchange.resume()
    }
    #expect(try client.reply(3).isEnded)
    #expect(client.replies[1]?.isEnded == false)
  }

  @Test func canceledStreamsAreReported() throws {
    let closed = Observed<[String]>([])
    let server = try TestServer { request, exchange in
      let target = String(decoding: request.target, as: UTF8.self)
      exchange.onClose { closed.update { $0.append(target) } }
      if target == "/feed" { exchange.stream(status: 200, headers: { _ in }, from: LineSource()) }
    }
    let client = try HTTP2Client(server)
    client.request(1, "GET", "/feed")
    client.request(3, "GET", "/slow")
    client.request(5, "GET", "/kept")
    client.send(.reset(1), .reset(3))
    #expect(closed.wait { $0 == ["/feed", "/slow"] })
    // A client that ends its sending side has some time to read the response.
    client.raw.endSending()
    server.advance(seconds: 9)
    #expect(closed.value.count == 2)
    server.advance(seconds: 2)
    #expect(server.wait { closed.value.count == 3 && server.server.openConnections == 0 })
  }
}

extension [UInt8] {
  fileprivate mutating func append(line text: String) { append(contentsOf: Array(text.utf8)) }
}

/// Produces a number of slices of one letter, then ends.
private final class Slices: BodySource {
  private let count: Int
  private let slice: [UInt8]
  private let end: BodyProgress
  private let trailers: [(StaticString, String)]
  private let asked: Observed<Int>
  private var made = 0

  init(
    count: Int, bytes: Int, letter: UInt8 = 0x61, end: BodyProgress = .finished,
    trailers: [(StaticString, String)] = [], asked: Observed<Int> = Observed(0)
  ) {
    self.count = count
    slice = [UInt8](repeating: letter, count: bytes)
    self.end = end
    self.trailers = trailers
    self.asked = asked
  }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    asked.update { $0 += 1 }
    guard made < count else { return end }
    made += 1
    out.append(contentsOf: slice)
    return .more
  }

  func addTrailers(to writer: inout HeaderWriter) {
    for (name, value) in trailers { writer.add(name, value) }
  }
}

/// Sends the lines put into it, and waits in between. Used on its exchange's loop.
private final class LineSource: BodySource, @unchecked Sendable {
  var lines: [String] = []
  var isFinished = false

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    if isFinished { return .finished }
    out.append(line: lines.joined())
    lines = []
    return .waiting
  }
}
