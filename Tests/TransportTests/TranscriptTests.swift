import Testing

@testable import Transport

/// An input and the expected output: one line per response, then whether the connection stays open.
struct Transcript: Sendable, CustomTestStringConvertible {
  enum End { case open, closed }

  let name: String
  let request: String
  let replies: [String]
  let end: End
  var methods: [String] = []

  init(_ name: String, _ request: String, _ replies: [String], _ end: End, methods: [String] = []) {
    self.name = name
    self.request = request
    self.replies = replies
    self.end = end
    self.methods = methods
  }

  var testDescription: String { name }
}

@Suite struct TranscriptTests {
  static let accepted: [Transcript] = [
    Transcript("get", "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", ["200 get /a?b=c|"], .open),
    Transcript("blank line before", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", ["200 get /|"], .open),
    Transcript("head", "HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n", ["200 "], .open, methods: ["HEAD"]),
    Transcript("delete", "DELETE /d HTTP/1.1\r\nHost: x\r\n\r\n", ["200 delete /d|"], .open),
    Transcript("patch", "PATCH /p HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", ["200 patch /p|hi"], .open),
    Transcript("put", "PUT /p HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", ["200 put /p|hi"], .open),
    Transcript("options", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", ["200 options *|"], .open),
    Transcript("an unsupported method", "TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", ["200 other /|"], .open),
    Transcript("absolute target", "GET http://x/y HTTP/1.1\r\nHost: x\r\n\r\n", ["200 get /y|"], .open),
    Transcript("absolute target without a path", "GET HTTP://x:1 HTTP/1.1\r\nHost: x\r\n\r\n", ["200 get /|"], .open),
    Transcript(
      "absolute target with a query", "GET https://x/y?z=http://a HTTP/1.1\r\nHost: x\r\n\r\n",
      ["200 get /y?z=http://a|"], .open),
    Transcript("blanks as a value", "GET / HTTP/1.1\r\nHost: x\r\nA: \t\r\n\r\n", ["200 get /|"], .open),
    Transcript("blanks after a value", "GET / HTTP/1.1\r\nHost: x\r\nA: b     \r\n\r\n", ["200 get /|"], .open),
    Transcript("connect", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", ["200 other x:1|"], .open),
    Transcript("empty length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", ["200 post /|"], .open),
    Transcript(
      "chunked",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n00006\r\n world\r\n0\r\n\r\n",
      ["200 post /|hello world"], .open),
    Transcript(
      "chunk extensions and trailers",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "A;x=\"y\"\r\n0123456789\r\n0;z\r\nT: 1\r\nU: 2\r\n\r\n"
        + "GET /next HTTP/1.1\r\nHost: x\r\n\r\n",
      ["200 post /|0123456789", "200 get /next|"], .open),
    Transcript(
      "pipelined",
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        + "GET /3 HTTP/1.1\r\nHost: x\r\n\r\n",
      ["200 get /1|", "200 post /2|abc", "200 get /3|"], .open),
    Transcript(
      "nothing after the last request is read",
      "GET /1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n", ["200 get /1|"],
      .closed),
    Transcript("HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", ["200 get /|"], .closed),
    Transcript(
      "HTTP/1.0 kept alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", ["200 get /|"], .open),
    Transcript(
      "an upgrade is ignored",
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n",
      ["200 get /|", "200 get /2|"], .open),
    Transcript(
      "100-continue", "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
      ["100 "], .open),
    Transcript(
      "100-continue without a body", "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n", ["200 get /|"],
      .open),
    Transcript(
      "body at its limit",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n" + String(repeating: "b", count: 2000),
      ["200 post /|" + String(repeating: "b", count: 2000)], .open),
  ]

  static let refused: [Transcript] = [
    Transcript("random bytes", "\u{1}\u{2}\u{3}\r\n\r\n", ["400"], .closed),
    Transcript("lower-case method", "get / HTTP/1.1\r\nHost: x\r\n\r\n", ["400"], .closed),
    Transcript("unknown method", "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", ["501"], .closed),
    Transcript("HTTP/0.9", "GET /\r\n\r\n", ["505"], .closed),
    Transcript("HTTP/2.0", "GET / HTTP/2.0\r\n\r\n", ["505"], .closed),
    Transcript("blank in target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", ["400"], .closed),
    Transcript("folded line", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", ["400"], .closed),
    Transcript("folded line before a value", "GET / HTTP/1.1\r\nHost: x\r\nA:\r\n c\r\n\r\n", ["400"], .closed),
    Transcript("folded line of blanks", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n \r\n\r\n", ["400"], .closed),
    Transcript("blank before colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", ["400"], .closed),
    Transcript(
      "blank before the colon of a length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\nhi", ["400"],
      .closed),
    Transcript("bare CR after a value", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n", ["400"], .closed),
    Transcript("bare CR for an empty value", "GET / HTTP/1.1\r\nHost: x\r\nA:\rB: c\r\n\r\n", ["400"], .closed),
    Transcript("bare CR at the end of the head", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\rX", ["400"], .closed),
    Transcript("NUL in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n", ["400"], .closed),
    Transcript("no colon", "GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n", ["400"], .closed),
    Transcript("no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", ["400"], .closed),
    Transcript("no field", "GET / HTTP/1.1\r\n\r\n", ["400"], .closed),
    Transcript("lines that end with LF only", "GET / HTTP/1.1\nHost: x\n\n", ["400"], .closed),
    Transcript("a request line that ends with LF only", "GET / HTTP/1.1\nHost: x\r\n\r\n", ["400"], .closed),
    Transcript("a field that ends with LF only", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", ["400"], .closed),
    Transcript("an empty field that ends with LF only", "GET / HTTP/1.1\r\nHost: x\r\nA:\n\r\n", ["400"], .closed),
    Transcript("a head that ends with LF only", "GET / HTTP/1.1\r\nHost: x\r\n\n", ["400"], .closed),
    Transcript("LF only in HTTP/1.0", "GET / HTTP/1.0\n\n", ["400"], .closed),
    Transcript("a user in an absolute target", "GET http://u@x/ HTTP/1.1\r\nHost: x\r\n\r\n", ["400"], .closed),
    Transcript("another scheme in the target", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", ["400"], .closed),
    Transcript("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", ["400"], .closed),
    Transcript(
      "two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", ["400"],
      .closed),
    Transcript("list of lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\nhi", ["400"], .closed),
    Transcript("signed length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\nhi", ["400"], .closed),
    Transcript("negative length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\nhi", ["400"], .closed),
    Transcript("empty length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nhi", ["400"], .closed),
    Transcript(
      "length that overflows", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", ["400"],
      .closed),
    Transcript(
      "length and chunked",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      ["400"], .closed),
    Transcript(
      "chunked and length",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
      ["400"], .closed),
    Transcript(
      "other transfer coding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", ["501"], .closed),
    Transcript(
      "stacked transfer codings", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", ["501"],
      .closed),
    Transcript(
      "misspelled chunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", ["501"], .closed),
    Transcript(
      "chunked twice", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      ["400"], .closed),
    Transcript("chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", ["400"], .closed),
    Transcript("other expectation", "GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n", ["417"], .closed),
    Transcript("other content coding", "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\n\r\n", ["415"], .closed),
    Transcript(
      "body that is not gzip", "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi",
      ["400"], .closed),
    Transcript(
      "target too long", "GET /" + String(repeating: "a", count: 600) + " HTTP/1.1\r\nHost: x\r\n\r\n", ["414"], .closed
    ),
    Transcript(
      "target too long and incomplete", "GET /" + String(repeating: "a", count: 600), ["414"], .closed),
    Transcript(
      "head too large", "GET / HTTP/1.1\r\nHost: x\r\nA: " + String(repeating: "a", count: 1100) + "\r\n\r\n", ["431"],
      .closed),
    Transcript(
      "head too large and incomplete", "GET / HTTP/1.1\r\nHost: x\r\nA: " + String(repeating: "a", count: 1100),
      ["431"],
      .closed),
    Transcript(
      "too many fields", "GET / HTTP/1.1\r\nHost: x\r\n" + String(repeating: "A: b\r\n", count: 41) + "\r\n", ["431"],
      .closed),
    Transcript("body too large", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2001\r\n\r\n", ["413"], .closed),
    Transcript(
      "body too large, with 100-continue",
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2001\r\n\r\n", ["413"], .closed),
    Transcript("chunk too large", chunked("7d1\r\n"), ["413"], .closed),
    Transcript("chunk size that overflows", chunked("ffffffffffffffffff\r\n"), ["413"], .closed),
    Transcript(
      "chunks too large in total", chunked("3e9\r\n" + String(repeating: "c", count: 1001) + "\r\n3e8\r\n"),
      ["413"], .closed),
    Transcript("chunk size that is not a number", chunked("x\r\n"), ["400"], .closed),
    Transcript("empty chunk size", chunked("\r\n"), ["400"], .closed),
    Transcript("chunk size with 0x", chunked("0x5\r\nhello\r\n0\r\n\r\n"), ["400"], .closed),
    Transcript("negative chunk size", chunked("-5\r\nhello\r\n0\r\n\r\n"), ["400"], .closed),
    Transcript("chunk longer than its size", chunked("5\r\nhelloXX0\r\n\r\n"), ["400"], .closed),
    Transcript("chunk size line with LF only", chunked("5\nhello\r\n0\r\n\r\n"), ["400"], .closed),
    Transcript("LF in a chunk extension", chunked("5;a\nb\r\nhello\r\n0\r\n\r\n"), ["400"], .closed),
    Transcript("chunk followed by LF only", chunked("5\r\nhello\n0\r\n\r\n"), ["400"], .closed),
    Transcript(
      "endless chunk extension", chunked("5;" + String(repeating: "e", count: 5000) + "\r\n"), ["431"], .closed),
    Transcript(
      "good, then bad", "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
      ["200 get /1|", "400"], .closed),
  ]

  static func chunked(_ body: String) -> String {
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body
  }

  @Test(arguments: accepted + refused, [Int.max, 1, 7])
  func serverRespondsAsTheTranscriptSays(transcript: Transcript, pieceBytes: Int) throws {
    let server = try TestServer { configuration in
      configuration.headerBytesMax = 1024
      configuration.headerFieldsMax = 40
      configuration.targetBytesMax = 512
      configuration.bodyBytesMax = 2000
    }
    let client = try server.connect()
    let bytes = Array(transcript.request.utf8)
    for start in stride(from: 0, to: bytes.count, by: min(pieceBytes, bytes.count)) {
      client.send(Array(bytes[start..<min(bytes.count, start + min(pieceBytes, bytes.count))]))
    }
    for (index, expected) in transcript.replies.enumerated() {
      let method = index < transcript.methods.count ? transcript.methods[index] : "GET"
      let reply = try client.readReply(to: method)
      if expected.contains(" ") {
        #expect("\(reply.status) \(reply.text)" == expected)
      } else {
        #expect("\(reply.status)" == expected)
        #expect(reply.field("content-type") == "application/json; charset=utf-8")
        #expect(reply.text.hasPrefix("{\"error\":{\"code\":\(expected),\"message\":\""))
        #expect(reply.field("connection") == "close")
      }
      #expect(reply.status == 100 || reply.field("date")?.hasSuffix(" GMT") == true)
    }
    switch transcript.end {
    case .closed:
      #expect(client.isEnded())
    case .open:
      // A request that is still incomplete, as after 100 Continue, is completed. Another request then shows that the
      // connection is open.
      if transcript.replies == ["100 "] {
        client.send("hi")
        #expect(try client.readReply().text == "post /|hi")
      }
      client.send("GET /again HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try client.readReply().text == "get /again|")
    }
  }
}
