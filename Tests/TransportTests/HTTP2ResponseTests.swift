import Testing
import TestSupport

@testable import Transport

/// Single requests and responses over HTTP/2.
@Suite struct HTTP2ResponseTests {
  @Test func theSameHandlerServesBothProtocolsOnOnePort() throws {
    let server = try TestServer()
    let old = try server.connect()
    old.send("POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/a?b=c", end: false)
    client.send(.data(1, Array("h".utf8)), .data(1, Array("i".utf8), end: true))
    let reply = try client.reply(1)
    #expect(reply.text == "post /a?b=c|hi")
    #expect(try old.readReply().text == reply.text)
    #expect(reply.status == 200 && reply.field("content-type") == "text/plain")
    #expect(reply.field("content-length") == "14" && reply.field("date")?.hasSuffix(" GMT") == true)
    #expect(reply.field("connection") == nil && reply.field("transfer-encoding") == nil)
    #expect(server.server.requestsServed == 2)
  }

  @Test func handlersSeeTheSameHeadAsOverHTTP1() throws {
    let seen = Observed<[String]>([])
    let server = try TestServer { request, exchange in
      var lines = ["\(request.version) \(request.method) \(String(decoding: request.target, as: UTF8.self))"]
      for index in 0..<request.headerCount {
        let (name, value) = request.header(at: index)
        lines.append(String(decoding: name, as: UTF8.self) + "=" + String(decoding: value, as: UTF8.self))
      }
      lines.append(request.header("x-a").map { String(decoding: $0, as: UTF8.self) } ?? "none")
      lines.append(request.remoteAddress)
      seen.value = lines
      exchange.respond(status: 204, headers: { _ in }, body: { $0.append(1) })
    }
    let client = try HTTP2Client(server)
    client.request(1, "PATCH", "/x", [("x-a", "1"), ("x-empty", ""), ("te", "trailers")])
    let reply = try client.reply(1)
    #expect(reply.status == 204 && reply.body.isEmpty && reply.dataFrames == 0)
    #expect(
      seen.value == [
        "http2 patch /x", "host=test.example", "x-a=1", "x-empty=", "te=trailers", "1", "127.0.0.1",
      ])
  }

  @Test(arguments: ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"])
  func handlersSeeTheMethod(method: String) throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    client.request(1, method)
    let reply = try client.reply(1)
    let expected = "\(method == "TRACE" ? "other" : method.lowercased()) /|"
    #expect(reply.text == (method == "HEAD" ? "" : expected))
    #expect(reply.field("content-length") == "\(expected.utf8.count)")
  }

  @Test func responseFieldsAreInLowerCaseAndOnOneLine() throws {
    let server = try TestServer { _, exchange in
      exchange.respond(
        status: 404,
        headers: { headers in
          headers.add("X-Upper-Case", "Kept As It Is")
          headers.add("X-Injected", "a\r\nx-other: b")
          headers.add("X-Empty", "")
          headers.add("X-Colons", "a:b: c")
        }, body: { _ in })
    }
    let client = try HTTP2Client(server)
    client.request(1)
    let reply = try client.reply(1)
    #expect(reply.status == 404 && reply.dataFrames == 0)
    #expect(reply.field("x-upper-case") == "Kept As It Is" && reply.field("x-injected") == "a  x-other: b")
    #expect(reply.field("x-other") == nil && reply.field("x-empty") == "" && reply.field("x-colons") == "a:b: c")
  }

  @Test(arguments: ["body", ""])
  func responsesMayEndWithTrailers(body: String) throws {
    let server = try TestServer { _, exchange in
      exchange.respond(
        status: 200, headers: { $0.add("Content-Type", "application/grpc") },
        body: { $0.append(contentsOf: Array(body.utf8)) },
        trailers: { trailers in
          trailers.add("Grpc-Status", "0")
          trailers.add("grpc-message", "fine: thanks")
        })
    }
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/s/M", [("content-type", "application/grpc"), ("te", "trailers")])
    let reply = try client.reply(1)
    #expect(reply.text == body && reply.field("content-length") == nil && reply.field("grpc-status") == nil)
    #expect(reply.trailer("grpc-status") == "0" && reply.trailer("grpc-message") == "fine: thanks")
    let old = try server.connect()
    old.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    let plain = try old.readReply()
    #expect(plain.text == body && plain.field("grpc-status") == nil)
  }

  @Test func responsesMayBeTrailersOnly() throws {
    let server = try TestServer { _, exchange in
      exchange.respond(
        status: 200, headers: { $0.add("grpc-status", "12") }, compressible: false, body: { _ in })
    }
    let client = try HTTP2Client(server)
    client.request(1)
    let reply = try client.reply(1)
    #expect(reply.field("grpc-status") == "12" && reply.field("content-length") == nil)
    #expect(reply.isEnded && reply.dataFrames == 0 && reply.trailers.isEmpty)
  }

  @Test func gzipWorksBothWays() throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    let text = String(repeating: "hello ", count: 1000)
    let compressed = try #require(GzipCompressor().compress(Array(text.utf8)))
    client.request(
      1, "POST", "/", [("content-encoding", "gzip"), ("accept-encoding", "br, gzip")], end: false)
    client.send(.data(1, compressed, end: true))
    let reply = try client.reply(1)
    #expect(reply.field("content-encoding") == "gzip" && reply.field("vary") == "Accept-Encoding")
    #expect(reply.field("content-length") == "\(reply.body.count)" && reply.body.count < 1000)
    let inflated = try reply.body.withUnsafeBytes {
      try GzipDecompressor().decompress($0, bodyBytesMax: 100_000).dropLast(InputBuffer.paddingBytes)
    }
    #expect(String(decoding: inflated, as: UTF8.self) == "post /|" + text)
  }

  /// A request and the status of its refusal.
  struct Refused: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var fields: [(String, String)]
    var body = 0
    var status: Int
    var grpcStatus: String

    init(_ description: String, _ fields: [(String, String)], body: Int = 0, _ status: Int, grpc: String) {
      testDescription = description
      self.fields = fields
      self.body = body
      self.status = status
      grpcStatus = grpc
    }
  }

  static let refused: [Refused] = [
    Refused("long target", HTTP2Client.head("GET", "/" + String(repeating: "a", count: 600)), 414, grpc: "8"),
    Refused(
      "long field", HTTP2Client.head("GET", "/") + [("a", String(repeating: "a", count: 2000))], 431, grpc: "8"),
    Refused(
      "many fields", HTTP2Client.head("GET", "/") + (0..<40).map { ("a\($0)", "") }, 431, grpc: "8"),
    Refused("large body", HTTP2Client.head("POST", "/"), body: 3000, 413, grpc: "8"),
    Refused("bad gzip", HTTP2Client.head("POST", "/") + [("content-encoding", "gzip")], body: 9, 400, grpc: "3"),
    Refused("coding", HTTP2Client.head("POST", "/") + [("content-encoding", "br")], body: 9, 415, grpc: "12"),
    Refused("CONNECT", [(":method", "CONNECT"), (":authority", "a:1")], 501, grpc: "12"),
  ]

  @Test(arguments: refused, [false, true])
  func refusalsUseTheClientsProtocol(refused: Refused, isGRPC: Bool) throws {
    let server = try TestServer { configuration in
      configuration.headerBytesMax = 1800
      configuration.headerFieldsMax = 30
      configuration.targetBytesMax = 512
      configuration.bodyBytesMax = 2000
    }
    let client = try HTTP2Client(server)
    let language = isGRPC ? [("content-type", "application/grpc+proto")] : []
    client.send(.headers(1, refused.fields + language, end: refused.body == 0))
    if refused.body > 0 { client.send(.data(1, [UInt8](repeating: 0, count: refused.body), end: true)) }
    let reply = try client.reply(1)
    if isGRPC {
      #expect(reply.status == 200 && reply.field("grpc-status") == refused.grpcStatus)
      #expect(reply.field("grpc-message")?.isEmpty == false && reply.dataFrames == 0)
    } else {
      #expect(reply.status == refused.status && reply.text.contains("\"code\":\(refused.status)"))
    }
    // The connection continues.
    client.request(3)
    #expect(try client.reply(3).status == 200)
  }

  @Test func earlyResponsesResetTheRequest() throws {
    let server = try TestServer { $0.bodyBytesMax = 1000 }
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/", end: false)
    client.send(.data(1, [UInt8](repeating: 0, count: 2000)))
    #expect(try client.reply(1).status == 413)
    try client.settle()
    #expect(client.replies[1]?.resetCode == 0)
    client.send(.data(1, [0], end: true))
    client.request(3)
    #expect(try client.reply(3).status == 200)
  }
}
