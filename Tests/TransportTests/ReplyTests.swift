import Testing
import TestSupport

@testable import Transport

@Suite struct ReplyTests {
  @Test func headCarriesTheLengthAndNoBody() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\nGET /abc HTTP/1.1\r\nHost: x\r\n\r\n")
    let head = try client.readReply(to: "HEAD")
    let get = try client.readReply()
    #expect(head.field("content-length") == String("head /abc|".utf8.count))
    #expect(get.text == "get /abc|")
  }

  @Test func valuesCannotStartAnotherField() throws {
    let server = try TestServer { _, exchange in
      exchange.respond(
        status: 204,
        headers: { writer in
          writer.add("X-String", "a\r\nX-Evil: b\0c")
          Array("d\ne".utf8).withUnsafeBytes { writer.add("X-Bytes", bytes: $0) }
          writer.add("X-Static", "f")
        }, body: { $0.append(contentsOf: [1, 2, 3]) })
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
    for _ in 0..<2 {
      let reply = try client.readReply()
      #expect(reply.status == 204)
      #expect(reply.field("x-string") == "a  X-Evil: b c")
      #expect(reply.field("x-bytes") == "d e")
      #expect(reply.field("x-static") == "f")
      #expect(reply.field("x-evil") == nil)
      #expect(reply.field("content-length") == nil)
    }
  }

  @Test func theAuthorityOfAnAbsoluteTargetReplacesTheHost() throws {
    let server = try TestServer { request, exchange in
      let host = request.header("host").map { Array($0) } ?? []
      exchange.respond(status: 200, headers: { _ in }, body: { $0.append(contentsOf: host) })
    }
    let client = try server.connect()
    client.send("GET http://a.example:80/b HTTP/1.1\r\nHost: c.example\r\n\r\n")
    #expect(try client.readReply().text == "a.example:80")
  }

  @Test func requestFieldsAreFoundInAnyCase() throws {
    let seen = Observed<[String]>([])
    let server = try TestServer { request, exchange in
      var lines = [String(decoding: request.header("x-one").map(Array.init) ?? [], as: UTF8.self)]
      lines.append(request.header("x-two") == nil ? "absent" : "present")
      for index in 0..<request.headerCount {
        let (name, value) = request.header(at: index)
        lines.append("\(String(decoding: name, as: UTF8.self))=\(String(decoding: value, as: UTF8.self))")
      }
      lines.append(request.remoteAddress)
      seen.value = lines
      exchange.respond(status: 200, headers: { _ in }, body: { _ in })
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\nX-oNe: \t first \t\r\nx-one: second\r\nEmpty:\r\n\r\n")
    #expect(try client.readReply().status == 200)
    #expect(seen.value == ["first", "absent", "Host=x", "X-oNe=first", "x-one=second", "Empty=", "127.0.0.1"])
  }

  @Test(arguments: [
    ("Accept-Encoding: gzip, deflate, br\r\n", 5000, true), ("Accept-Encoding: br;q=1, GZIP;q=0.5\r\n", 5000, true),
    ("Accept-Encoding: gzip\r\n", 1000, false), ("Accept-Encoding: gzip;q=0\r\n", 5000, false),
    ("Accept-Encoding: gzip;q=0.000\r\n", 5000, false), ("Accept-Encoding: xgzip\r\n", 5000, false),
    ("", 5000, false),
  ])
  func compressesIfAcceptedAndWorthwhile(field: String, count: Int, isCompressed: Bool) throws {
    let server = try TestServer { _, exchange in
      exchange.respond(status: 200, headers: { _ in }) { $0.append(contentsOf: [UInt8](repeating: 0x61, count: count)) }
    }
    let client = try server.connect()
    // Twice, so that the second response uses a compressor with a history.
    for _ in 0..<2 {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\(field)\r\n")
      let reply = try client.readReply()
      #expect((reply.field("content-encoding") == "gzip") == isCompressed)
      #expect((reply.field("vary") == "Accept-Encoding") == isCompressed)
      let body = isCompressed ? try gunzip(reply.body) : reply.body
      #expect(body == [UInt8](repeating: 0x61, count: count))
    }
  }

  @Test func doesNotCompressOtherResponses() throws {
    let server = try TestServer { _, exchange in
      exchange.respond(status: 200, headers: { _ in }, compressible: false) {
        $0.append(contentsOf: [UInt8](repeating: 0x61, count: 5000))
      }
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
    #expect(try client.readReply().body.count == 5000)
  }

  @Test func readsGzipBodies() throws {
    let server = try TestServer { $0.bodyBytesMax = 100_000 }
    let client = try server.connect()
    for text in [String(repeating: "a", count: 100), String(repeating: "ab", count: 40_000)] {
      let compressed = try #require(GzipCompressor().compress(Array(text.utf8)))
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: \(compressed.count)\r\n\r\n")
      client.send(compressed)
      #expect(try client.readReply().text == "post /|\(text)")
    }
    // Small in transit, but too large in memory.
    let bomb = try #require(GzipCompressor().compress([UInt8](repeating: 0, count: 1_000_000)))
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: \(bomb.count)\r\n\r\n")
    client.send(bomb)
    #expect(try client.readReply().status == 413)
    #expect(client.isEnded())
  }

  @Test func refusesTruncatedGzipAndTrailingBytes() throws {
    let whole = try #require(GzipCompressor().compress([UInt8](repeating: 0x61, count: 1000)))
    for body in [Array(whole.dropLast()), whole + [1], []] {
      let server = try TestServer()
      let client = try server.connect()
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n")
      client.send(body)
      #expect(try client.readReply().status == 400)
    }
    #expect(try GzipDecompressor().inflated(whole + whole) == [UInt8](repeating: 0x61, count: 2000))
  }

  @Test func transfersLargeBodiesBothWays() throws {
    let server = try TestServer { $0.bodyBytesMax = 8_000_000 }
    let client = try server.connect()
    let body = (0..<6_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n")
    client.send(body)
    #expect(try client.readReply().body == Array("post /|".utf8) + body)
    client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    for start in stride(from: 0, to: body.count, by: 100_000) {
      client.send("\(String(100_000, radix: 16))\r\n")
      client.send(Array(body[start..<(start + 100_000)]))
      client.send("\r\n")
    }
    client.send("0\r\n\r\n")
    #expect(try client.readReply().body == Array("post /|".utf8) + body)
  }

  @Test func requestsBeyondTheSharedBudgetAreRefused() throws {
    let server = try TestServer { $0.bufferedBytesMax = 100_000 }
    let client = try server.connect()
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
    client.send([UInt8](repeating: 0x61, count: 200_000))
    #expect(try client.readReply().status == 429)
    // The budget is complete again after the connection is closed.
    let next = try server.connect()
    let body = [UInt8](repeating: 0x62, count: 80_000)
    next.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n")
    next.send(body)
    #expect(try next.readReply().body.count == body.count + 7)
  }

  @Test func bodiesAreFollowedByReadableBytes() throws {
    let sums = Observed<[Int]>([])
    let server = try TestServer { request, exchange in
      let padded = UnsafeRawBufferPointer(start: request.body.baseAddress, count: request.body.count + 64)
      // Under the address sanitizer, this reads past the end if the padding is missing.
      let sum = padded.reduce(0) { $0 &+ Int($1) }
      sums.update { $0.append(sum) }
      exchange.respond(status: 200, headers: { _ in }, body: { _ in })
    }
    let client = try server.connect()
    let compressed = try #require(GzipCompressor().compress([UInt8](repeating: 0x61, count: 5000)))
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: \(compressed.count)\r\n\r\n")
    client.send(compressed)
    #expect(try client.readReply().status == 200)
    for count in [1, 1000, 16 * 1024 - 128, 16 * 1024, 100_000] {
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(count)\r\n\r\n")
      client.send([UInt8](repeating: 0x61, count: count))
      #expect(try client.readReply().status == 200)
    }
    #expect(sums.value.count == 6)
  }

  private func gunzip(_ bytes: [UInt8]) throws -> [UInt8] {
    try GzipDecompressor().inflated(bytes)
  }
}

extension GzipDecompressor {
  func inflated(_ bytes: [UInt8]) throws -> [UInt8] {
    try bytes.withUnsafeBytes { Array(try decompress($0, bodyBytesMax: 1_000_000).dropLast(InputBuffer.paddingBytes)) }
  }
}
