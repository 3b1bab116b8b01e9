import Testing
import TestSupport

@testable import Transport

/// Exchanges that handlers kept, to respond later.
private final class Kept: Sendable {
  let exchanges = Observed<[Exchange]>([])

  @Sendable func keep(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    exchanges.update { $0.append(exchange) }
  }

  func answer(_ exchange: Exchange, _ text: String) {
    exchange.loop.execute {
      exchange.respond(status: 200, headers: { _ in }, body: { $0.append(contentsOf: Array(text.utf8)) })
    }
  }
}

@Suite struct ExchangeTests {
  @Test func aHundredPipelinedRequestsAreAnsweredInOrder() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send((0..<100).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
    for index in 0..<100 { #expect(try client.readReply().text == "get /\(index)|") }
    #expect(server.server.requestsServed == 100)
  }

  @Test func serverStopsReadingWhileResponsesAreUnread() throws {
    let handled = Observed(0)
    let body = [UInt8](repeating: 0x61, count: 1 << 19)
    let server = try TestServer { _, exchange in
      handled.update { $0 += 1 }
      exchange.respond(status: 200, headers: { _ in }) { $0.append(contentsOf: body) }
    }
    let client = try server.connect()
    client.send(String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: 80))
    server.settle(handled)
    #expect(handled.value < 40)
    for _ in 0..<80 { #expect(try client.readReply().body.count == 1 << 19) }
    #expect(handled.value == 80)
  }

  @Test func responsesMayComeLaterFromAnotherThread() throws {
    let kept = Kept()
    let server = try TestServer(handle: kept.keep)
    let client = try server.connect()
    // The second request waits for the response to the first one.
    client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(kept.exchanges.wait { $0.count == 1 })
    server.settle()
    #expect(kept.exchanges.value.count == 1)
    kept.answer(kept.exchanges.value[0], "one")
    #expect(try client.readReply().text == "one")
    #expect(kept.exchanges.wait { $0.count == 2 })
    #expect(kept.exchanges.value[0] !== kept.exchanges.value[1])
    kept.answer(kept.exchanges.value[1], "two")
    #expect(try client.readReply().text == "two")
  }

  @Test func releasedExchangesAreReused() throws {
    let identities = Observed<Set<ObjectIdentifier>>([])
    let server = try TestServer { _, exchange in
      let identity = ObjectIdentifier(exchange)
      identities.update { $0.insert(identity) }
      exchange.respond(status: 200, headers: { _ in }, body: { _ in })
    }
    let client = try server.connect()
    for _ in 0..<20 {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try client.readReply().status == 200)
    }
    #expect(identities.value.count == 1)
  }

  @Test func disconnectedClientsAreReported() throws {
    let kept = Kept()
    let closed = Observed(0)
    let server = try TestServer { request, exchange in
      kept.keep(request, exchange)
      exchange.onClose { closed.update { $0 += 1 } }
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(kept.exchanges.wait { $0.count == 1 })
    let exchange = kept.exchanges.value[0]
    // A deferred response to a reset client: the disconnect is reported once, and responses are ignored.
    client.send("G")
    client.reset()
    server.advance(seconds: 11)
    #expect(closed.wait { $0 == 1 })
    kept.answer(exchange, "too late")
    let late = Observed(0)
    exchange.loop.execute {
      #expect(exchange.isClosed)
      exchange.onClose { late.value = 1 }
    }
    server.settle()
    #expect(late.value == 1 && closed.value == 1)
    #expect(server.wait { server.server.openConnections == 0 })
  }

  @Test func halfClosedClientsStillGetTheirResponse() throws {
    let kept = Kept()
    let server = try TestServer(handle: kept.keep)
    let client = try server.connect()
    client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /inco")
    client.endSending()
    for index in 0..<2 {
      #expect(kept.exchanges.wait { $0.count == index + 1 })
      server.settle()
      kept.answer(kept.exchanges.value[index], "\(index)")
      #expect(try client.readReply().text == "\(index)")
    }
    #expect(client.isEnded())
  }

  @Test func completedResponsesDoNotCallOnClose() throws {
    let closed = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.onClose { closed.update { $0 += 1 } }
      exchange.respond(status: 200, headers: { _ in }, body: { _ in })
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(try client.readReply().status == 200)
    #expect(client.isEnded())
    #expect(closed.value == 0)
  }
}
