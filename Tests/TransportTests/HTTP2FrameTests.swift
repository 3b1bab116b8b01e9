import Testing
import TestSupport

@testable import Transport

/// Input that is not HTTP/2 or not allowed. The connection or the stream ends with the code for the reason, without
/// other effects.
@Suite struct HTTP2FrameTests {
  enum Outcome: Equatable, Sendable {
    /// GOAWAY with one of these codes, or the end of the connection.
    case connectionEnds([Int])
    /// RST_STREAM on stream 1 with this code. The connection continues.
    case streamEnds(Int)
    /// The frames are valid.
    case connectionContinues
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: [UInt8]
    var outcome: Outcome

    init(_ description: String, _ frames: [HTTP2Frame], _ outcome: Outcome) {
      testDescription = description
      bytes = frames.flatMap(\.bytes)
      self.outcome = outcome
    }
  }

  private static let head = HTTP2Client.head("POST", "/")
  private static let open = HTTP2Frame.headers(1, head, end: false)
  private static func ends(_ codes: Int...) -> Outcome { .connectionEnds(codes) }

  // Codes: 1 PROTOCOL_ERROR, 3 FLOW_CONTROL_ERROR, 5 STREAM_CLOSED, 6 FRAME_SIZE_ERROR, 9 COMPRESSION_ERROR,
  // 11 ENHANCE_YOUR_CALM.
  static let cases: [Case] = [
    // Sizes and places of frames.
    Case("frame above the limit", [.data(1, [UInt8](repeating: 0, count: 16_385))], ends(6)),
    Case("short PING", [HTTP2Frame(kind: .ping, payload: [1, 2, 3])], ends(6)),
    Case("PING on a stream", [HTTP2Frame(kind: .ping, stream: 1, payload: [UInt8](repeating: 0, count: 8))], ends(1)),
    Case("short SETTINGS", [HTTP2Frame(kind: .settings, payload: [0, 1, 0])], ends(6)),
    Case("SETTINGS on a stream", [HTTP2Frame(kind: .settings, stream: 1)], ends(1)),
    Case("SETTINGS ACK with a payload", [HTTP2Frame(kind: .settings, flags: 1, payload: [0, 0, 0, 0, 0, 0])], ends(6)),
    Case("ENABLE_PUSH of 2", [.settings([(2, 2)])], ends(1)),
    Case("window above 2^31", [.settings([(4, 0x8000_0000)])], ends(3)),
    Case("MAX_FRAME_SIZE too small", [.settings([(5, 100)])], ends(1)),
    Case("unknown setting", [.settings([(0xabc, 1)])], .connectionContinues),
    Case("WINDOW_UPDATE of 0", [.windowUpdate(0, 0)], ends(1)),
    Case("WINDOW_UPDATE overflows", [.windowUpdate(0, 0x7fff_ffff), .windowUpdate(0, 0x7fff_ffff)], ends(3)),
    Case("short WINDOW_UPDATE", [HTTP2Frame(kind: .windowUpdate, payload: [1])], ends(6)),
    Case("stream WINDOW_UPDATE of 0", [open, .windowUpdate(1, 0)], ends(1)),
    Case("stream WINDOW_UPDATE overflows", [open, .windowUpdate(1, 0x7fff_ffff), .windowUpdate(1, 1)], .streamEnds(3)),
    Case("short RST_STREAM", [open, HTTP2Frame(kind: .reset, stream: 1, payload: [0])], ends(6)),
    Case("RST_STREAM of the connection", [.reset(0)], ends(1)),
    Case("RST_STREAM before its stream", [.reset(5)], ends(1)),
    Case("short GOAWAY", [HTTP2Frame(kind: .goAway, payload: [0, 0])], ends(6)),
    Case(
      "PUSH_PROMISE from a client",
      [open, HTTP2Frame(kind: .pushPromise, flags: 4, stream: 1, payload: [0, 0, 0, 2])],
      ends(1)),
    Case("PRIORITY", [HTTP2Frame(kind: .priority, stream: 9, payload: [0, 0, 0, 0, 16])], .connectionContinues),
    Case("short PRIORITY", [HTTP2Frame(kind: .priority, stream: 9, payload: [0])], ends(6)),
    Case(
      "unknown frame", [HTTP2Frame(kind: .unknown, flags: 255, stream: 77, payload: [1, 2, 3])], .connectionContinues),
    // Streams.
    Case("DATA of the connection", [.data(0, [1])], ends(1)),
    Case("DATA before its stream", [.data(1, [1])], ends(1)),
    Case("DATA after the end", [.headers(1, head), .data(1, [1])], ends(5)),
    Case("even stream", [.headers(2, head)], ends(1)),
    Case("stream 0", [.headers(0, head)], ends(1)),
    // A skipped stream number counts as closed, and late frames for it are ignored.
    Case("stream numbers go down", [.headers(5, head), .headers(3, head)], .connectionContinues),
    Case("padding beyond the frame", [open, HTTP2Frame(kind: .data, flags: 8, stream: 1, payload: [9, 1])], ends(1)),
    Case(
      "padded DATA", [open, HTTP2Frame(kind: .data, flags: 9, stream: 1, payload: [2, 0x61, 0, 0])],
      .connectionContinues),
    Case("trailers that do not end", [open, .headers(1, [("a", "b")], end: false)], .streamEnds(1)),
    // Header blocks.
    Case("CONTINUATION without HEADERS", [HTTP2Frame(kind: .continuation, flags: 4, stream: 1)], ends(1)),
    Case(
      "another frame inside a block",
      [.headers(1, head, endHeaders: false), HTTP2Frame(kind: .ping, payload: [UInt8](repeating: 0, count: 8))],
      ends(1)),
    Case(
      "CONTINUATION of another stream",
      [.headers(1, head, endHeaders: false), HTTP2Frame(kind: .continuation, flags: 4, stream: 3)], ends(1)),
    Case("index 0", [HTTP2Frame(kind: .headers, flags: 5, stream: 1, payload: [0x80])], ends(9)),
    Case("index beyond the tables", [HTTP2Frame(kind: .headers, flags: 5, stream: 1, payload: [0xff, 0x7f])], ends(9)),
    Case("cut literal", [HTTP2Frame(kind: .headers, flags: 5, stream: 1, payload: [0x00, 0x05, 0x61])], ends(9)),
    Case(
      "endless integer",
      [HTTP2Frame(kind: .headers, flags: 5, stream: 1, payload: [0xff] + [UInt8](repeating: 0xff, count: 12))],
      ends(9)),
    Case(
      "table above the limit", [HTTP2Frame(kind: .headers, flags: 5, stream: 1, payload: [0x3f, 0xe1, 0xff, 0x03])],
      ends(9)),
    Case(
      "bad Huffman code", [HTTP2Frame(kind: .headers, flags: 5, stream: 1, payload: [0x00, 0x81, 0xff, 0x01, 0x61])],
      ends(9)),
    // Messages.
    Case("no method", [.headers(1, Array(head.dropFirst()))], .streamEnds(1)),
    Case("no path", [.headers(1, head.filter { $0.0 != ":path" })], .streamEnds(1)),
    Case("empty path", [.headers(1, [(":method", "GET"), (":scheme", "http"), (":path", "")])], .streamEnds(1)),
    Case("method twice", [.headers(1, [(":method", "GET")] + head)], .streamEnds(1)),
    Case("unknown pseudo field", [.headers(1, head + [(":other", "x")])], .streamEnds(1)),
    Case("pseudo field after others", [.headers(1, [("a", "b")] + head)], .streamEnds(1)),
    Case("a status from a client", [.headers(1, [(":status", "200")] + head)], .streamEnds(1)),
    Case("upper-case name", [.headers(1, head + [("Upper", "x")])], .streamEnds(1)),
    Case("blank in a name", [.headers(1, head + [("a b", "x")])], .streamEnds(1)),
    Case("line end in a value", [.headers(1, head + [("a", "b\r\nc: d")])], .streamEnds(1)),
    Case("NUL in a value", [.headers(1, head + [("a", "b\u{0}c")])], .streamEnds(1)),
    Case("Connection", [.headers(1, head + [("connection", "close")])], .streamEnds(1)),
    Case("Transfer-Encoding", [.headers(1, head + [("transfer-encoding", "chunked")])], .streamEnds(1)),
    Case("TE that is not trailers", [.headers(1, head + [("te", "gzip")])], .streamEnds(1)),
    Case(
      "length above the body", [.headers(1, head + [("content-length", "5")], end: false), .data(1, [1], end: true)],
      .streamEnds(1)),
    Case(
      "length below the body", [.headers(1, head + [("content-length", "1")], end: false), .data(1, [1, 2])],
      .streamEnds(1)),
    Case("length twice", [.headers(1, head + [("content-length", "0"), ("content-length", "0")])], .streamEnds(1)),
    Case("length that is not a number", [.headers(1, head + [("content-length", "+1")])], .streamEnds(1)),
  ]

  @Test(arguments: cases)
  func framesHaveTheExpectedOutcome(frames: Case) throws {
    let handled = Observed(0)
    let server = try TestServer { request, exchange in
      if request.target.elementsEqual(Array("/after".utf8)) { return TestServer.echo(request, exchange) }
      handled.update { $0 += 1 }
    }
    let client = try HTTP2Client(server)
    client.raw.send(frames.bytes)
    switch frames.outcome {
    case .connectionEnds(let codes):
      let code = try client.goAwayCode()
      #expect(code.map(codes.contains) == true, "GOAWAY \(code.map(String.init) ?? "none")")
      client.raw.endSending()
      #expect(server.wait { server.server.openConnections == 0 })
      return
    case .streamEnds(let code):
      #expect(try client.reply(1).resetCode == code)
      #expect(handled.value == 0)
    case .connectionContinues:
      break
    }
    client.request(11, "GET", "/after")
    #expect(try client.reply(11).text == "get /after|")
  }

  @Test(arguments: [
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u{0}\u{0}\u{0}",
  ])
  func settingsMustFollowThePreface(text: String) throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send(text)
    client.endSending()
    let bytes = client.readToEnd()
    // The server's own SETTINGS frame, and at most a GOAWAY.
    #expect(bytes.starts(with: [0, 0, 24, 4]) && bytes.count < 200)
    #expect(server.wait { server.server.openConnections == 0 })
  }

  @Test(arguments: ["PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", "PRI * HTTP/1.1\r\nHost: x\r\n\r\n", "POST", "P"])
  func similarTextsAreNotThePreface(text: String) throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send(text)
    client.endSending()
    let reply = String(decoding: client.readToEnd(), as: UTF8.self)
    #expect(reply.isEmpty || reply.hasPrefix("HTTP/1.1 "))
    #expect(server.wait { server.server.openConnections == 0 })
  }

  @Test func prefaceMayArriveByteByByte() throws {
    let server = try TestServer()
    let client = try server.connect()
    let request = HTTP2Frame.settings().bytes + HTTP2Frame.headers(1, HTTP2Client.head("GET", "/x")).bytes
    for byte in HTTP2Client.preface + request {
      client.send([byte])
      server.settle()
    }
    var seen: [UInt8] = []
    let body = Array("get /x|".utf8)
    while !seen.suffix(body.count).elementsEqual(body) { seen += try client.read(1) }
    let post = try server.connect()
    for byte in Array("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na".utf8) {
      post.send([byte])
      server.settle()
    }
    #expect(try post.readReply().text == "post /|a")
  }
}
