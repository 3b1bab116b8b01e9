import Glibc
import Testing
import TestSupport

@testable import Transport

@Suite struct TimeoutTests {
  @Test func idleConnectionsAreClosed() throws {
    let server = try TestServer()
    let fresh = try server.connect()
    let used = try server.connect()
    used.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try used.readReply().status == 200)
    #expect(server.wait { server.server.openConnections == 2 })
    server.advance(seconds: 74)
    #expect(server.server.openConnections == 2)
    used.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try used.readReply().status == 200)
    server.advance(seconds: 2)
    #expect(fresh.isEnded())
    #expect(server.server.openConnections == 1)
    server.advance(seconds: 74)
    #expect(used.isEnded())
  }

  /// The kernel detects clients that lost their network. This checks the time limit that every connection sets.
  @Test func kernelDetectsVanishedClients() throws {
    var configuration = TransportConfiguration()
    configuration.port = 0
    configuration.vanishedSeconds = 7
    let listening = try ListeningSocket.open(configuration)
    defer { close(listening.descriptor) }
    let client = try LoopbackSocket(port: UInt16(listening.address.port))
    defer { client.close() }
    let accepted = accept(listening.descriptor, nil, nil)
    try #require(accepted >= 0)
    defer { close(accepted) }
    var milliseconds: UInt32 = 0
    var length = socklen_t(MemoryLayout<UInt32>.size)
    #expect(getsockopt(accepted, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, &length) == 0)
    #expect(milliseconds == 7000)
  }

  @Test func headMustBeCompleteInTime() throws {
    let server = try TestServer()
    let client = try server.connect()
    // Progress does not help, although each byte arrives well before the limit.
    client.send("GET / HTTP/1.1\r\nHost: x\r\nA: ")
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

  @Test func bodiesMustMakeProgress() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
    for _ in 0..<4 {
      client.send("a")
      server.advance(seconds: 29)
    }
    server.advance(seconds: 2)
    #expect(try client.readReply().status == 408)
    #expect(client.isEnded())
  }

  @Test func chunkFramingIsNotProgress() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;")
    for _ in 0..<3 {
      client.send("e")
      server.advance(seconds: 11)
    }
    #expect(try client.readReply().status == 408)
  }

  @Test func runningRequestsHaveNoDeadline() throws {
    let kept = Observed<[Exchange]>([])
    let server = try TestServer { _, exchange in kept.update { $0.append(exchange) } }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(kept.wait { $0.count == 1 })
    server.advance(seconds: 10_000)
    let exchange = kept.value[0]
    exchange.loop.execute { exchange.respond(status: 200, headers: { _ in }, body: { _ in }) }
    #expect(try client.readReply().status == 200)
  }

  @Test func clientsThatTakeNothingAreCutOff() throws {
    let body = [UInt8](repeating: 0x61, count: 64 << 20)
    let server = try TestServer { _, exchange in
      exchange.respond(status: 200, headers: { _ in }) { $0.append(contentsOf: body) }
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(server.wait { server.server.requestsServed == 1 })
    // Each sweep that sees progress restarts the time limit.
    for _ in 0..<100 where server.server.openConnections > 0 { server.advance(seconds: 31) }
    #expect(server.server.openConnections == 0)
    #expect(throws: (any Error).self) { try client.readReply() }
  }

  @Test func lingeringClientsAreCutOff() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(try client.readReply().status == 200)
    #expect(client.isEnded())
    #expect(server.server.openConnections == 1)
    server.advance(seconds: 2)
    #expect(server.server.openConnections == 0)
  }
}
