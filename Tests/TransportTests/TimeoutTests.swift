import Testing

@testable import Transport

@Suite struct TimeoutTests {
  @Test func idleConnectionsAreClosed() throws {
    let server = try TestServer()
    let fresh = try server.connect()
    let used = try server.connect()
    used.send("GET / HTTP/1.1\r\n\r\n")
    #expect(try used.readReply().status == 200)
    #expect(server.wait { server.server.openConnections == 2 })
    server.advance(seconds: 74)
    #expect(server.server.openConnections == 2)
    used.send("GET / HTTP/1.1\r\n\r\n")
    #expect(try used.readReply().status == 200)
    server.advance(seconds: 2)
    #expect(fresh.isEnded())
    #expect(server.server.openConnections == 1)
    server.advance(seconds: 74)
    #expect(used.isEnded())
  }

  @Test func theWholeHeadMustArriveInTime() throws {
    let server = try TestServer()
    let client = try server.connect()
    // Progress does not help: each byte comes well before the limit.
    client.send("GET / HTTP/1.1\r\nA: ")
    server.advance(seconds: 7)
    client.send("b")
    server.advance(seconds: 7)
    client.send("c")
    server.advance(seconds: 2)
    let reply = try client.readReply()
    #expect(reply.status == 408)
    #expect(reply.text.contains("DEADLINE_EXCEEDED"))
    #expect(client.isEnded())
  }

  @Test func aBodyMustMakeProgress() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n")
    for _ in 0..<4 {
      client.send("a")
      server.advance(seconds: 29)
    }
    server.advance(seconds: 2)
    #expect(try client.readReply().status == 408)
    #expect(client.isEnded())
  }

  @Test func framingIsNoProgress() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;")
    for _ in 0..<3 {
      client.send("e")
      server.advance(seconds: 11)
    }
    #expect(try client.readReply().status == 408)
  }

  @Test func aRequestInFlightHasNoDeadline() throws {
    let kept = Shared<[Exchange]>([])
    let server = try TestServer { _, exchange in kept.update { $0.append(exchange) } }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\n\r\n")
    #expect(server.wait { kept.value.count == 1 })
    server.advance(seconds: 10_000)
    let exchange = kept.value[0]
    exchange.loop.execute { exchange.respond(status: 200, headers: { _ in }, body: { _ in }) }
    #expect(try client.readReply().status == 200)
  }

  @Test func aClientThatTakesNothingIsCutOff() throws {
    let body = [UInt8](repeating: 0x61, count: 64 << 20)
    let server = try TestServer { _, exchange in
      exchange.respond(status: 200, headers: { _ in }) { $0.append(contentsOf: body) }
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\n\r\n")
    #expect(server.wait { server.server.requestsServed == 1 })
    // Each sweep that sees progress starts the time again.
    for _ in 0..<100 where server.server.openConnections > 0 { server.advance(seconds: 31) }
    #expect(server.server.openConnections == 0)
    #expect(throws: (any Error).self) { try client.readReply() }
  }

  @Test func aLingeringClientIsCutOff() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    #expect(try client.readReply().status == 200)
    #expect(client.isEnded())
    #expect(server.server.openConnections == 1)
    server.advance(seconds: 2)
    #expect(server.server.openConnections == 0)
  }
}
