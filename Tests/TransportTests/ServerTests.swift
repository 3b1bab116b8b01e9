import Glibc
import Testing
import TestSupport

@testable import Transport

@Suite struct ServerTests {
  @Test func addressInUseIsReported() throws {
    let server = try TestServer()
    var configuration = TransportConfiguration()
    configuration.port = server.port
    let second = try HTTPServer(configuration: configuration, handler: ClosureHandler(TestServer.echo))
    let error = #expect(throws: TransportError.self) { _ = try second.start() }
    #expect(error == .addressInUse(host: "127.0.0.1", port: server.port))
    #expect(error?.description.contains("already in use") == true)
  }

  @Test func badConfigurationsAreRefused() {
    var configuration = TransportConfiguration()
    configuration.loops = 0
    #expect(throws: TransportError.invalidConfiguration(reason: "loops is 0")) {
      try HTTPServer(configuration: configuration, handler: ClosureHandler(TestServer.echo))
    }
  }

  @Test(arguments: [("no.such.host.invalid", 0), ("127.0.0.1", 70_000), ("192.0.2.1", 0)])
  func unusableAddressesAreRefused(host: String, port: Int) throws {
    var configuration = TransportConfiguration()
    configuration.host = host
    configuration.port = port
    let server = try HTTPServer(configuration: configuration, handler: ClosureHandler(TestServer.echo))
    #expect(throws: TransportError.self) { _ = try server.start() }
  }

  @Test func connectionsAreSpreadEvenly() throws {
    let server = try TestServer(loops: 3)
    var clients: [RawClient] = []
    for _ in 0..<30 { clients.append(try server.connect()) }
    #expect(server.wait { server.server.openConnections == 30 })
    #expect(server.server.openConnectionsByLoop == [10, 10, 10])
    for client in clients {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try client.readReply().status == 200)
    }
    #expect(server.server.requestsServed == 30)
  }

  @Test func connectionsBeyondTheLimitAreRefused() throws {
    let server = try TestServer { $0.connectionsMax = 2 }
    let first = try server.connect()
    let second = try server.connect()
    #expect(server.wait { server.server.openConnections == 2 })
    #expect(try server.connect().readReply().status == 503)
    first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try first.readReply().status == 200)
    second.endSending()
    #expect(server.wait { server.server.openConnections == 1 })
    let third = try server.connect()
    third.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try third.readReply().status == 200)
  }

  @Test func idleConnectionsMakeRoomForNewOnes() throws {
    let server = try TestServer(loops: 2) { $0.connectionsMax = 32 }
    let busy = try server.connect()
    busy.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n12")
    // Each new connection is served, although none of the others ends.
    var others: [RawClient] = []
    for number in 0..<200 {
      let client = try server.connect()
      if number.isMultiple(of: 2) { client.send("GET / HTTP/1.1\r\n") }
      others.append(client)
      #expect(server.wait { server.server.openConnections <= 31 })
    }
    let last = try server.connect()
    last.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try last.readReply().status == 200)
    busy.send("34")
    #expect(try busy.readReply().status == 200)
  }

  @Test func stoppingFinishesRunningRequests() throws {
    let kept = Observed<[Exchange]>([])
    let server = try TestServer { request, exchange in
      if request.target.elementsEqual("/idle".utf8) {
        exchange.respond(status: 204, headers: { _ in }, body: { _ in })
      } else {
        kept.update { $0.append(exchange) }
      }
    }
    let idle = try server.connect()
    idle.send("GET /idle HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try idle.readReply().status == 204)
    let busy = try server.connect()
    busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(server.wait { kept.value.count == 1 && server.server.openConnections == 2 })
    let exchange = kept.value[0]
    let stopping = startThreads(1) { _ in server.server.stop(graceSeconds: 60) }
    // The idle connection ends first, which shows that stopping has begun.
    #expect(idle.isEnded())
    exchange.loop.execute {
      // Reading the server's counters must not wait for `stop` to return, because `stop` waits for this handler.
      #expect(server.server.openConnections == 1)
      exchange.respond(status: 200, headers: { _ in }, body: { $0.append(contentsOf: Array("done".utf8)) })
    }
    let reply = try busy.readReply()
    #expect(reply.text == "done" && reply.field("connection") == "close")
    #expect(busy.isEnded())
    busy.endSending()
    _ = stopping()
    #expect(throws: (any Error).self) { try server.connect() }
    server.server.stop(graceSeconds: 60)
  }

  /// A client that has just connected still gets a response. It would take a close without a response for a failure.
  @Test func stoppingServesClientsThatJustConnected() throws {
    let server = try TestServer()
    let idle = try server.connect()
    idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try idle.readReply().status == 200)
    let fresh = try server.connect()
    #expect(server.wait { server.server.openConnections == 2 })
    let stopping = startThreads(1) { _ in server.server.stop(graceSeconds: 60) }
    // From then on no connection is accepted, and the loop has notified every open one.
    #expect(idle.isEnded())
    fresh.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    let reply = try fresh.readReply()
    #expect(reply.status == 200 && reply.field("connection") == "close")
    #expect(fresh.isEnded())
    fresh.endSending()
    _ = stopping()
  }

  @Test func stoppingCutsRequestsAfterTheGracePeriod() throws {
    let closed = Observed(0)
    let entered = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.onClose { closed.update { $0 += 1 } }
      entered.value = 1
    }
    let busy = try server.connect()
    busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(entered.wait { $0 == 1 })
    server.server.stop(graceSeconds: 0)
    #expect(closed.value == 1)
    #expect(busy.isEnded())
  }

  @Test func stoppingAsksStreamedResponsesToEnd() throws {
    final class WaitingSource: BodySource {
      var isFinished = false
      func nextSlice(into out: inout [UInt8]) -> BodyProgress { isFinished ? .finished : .waiting }
    }
    let server = try TestServer { _, exchange in
      let feed = WaitingSource()
      exchange.onShutdown { [unowned exchange] in
        feed.isFinished = true
        exchange.resume()
      }
      exchange.stream(status: 200, headers: { _ in }, from: feed)
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    server.settle()
    let stopping = startThreads(1) { _ in server.server.stop(graceSeconds: 60) }
    #expect(try client.readReply().body == [])
    #expect(client.isEnded())
    client.endSending()
    _ = stopping()
  }

  @Test func aServerRunsOnce() throws {
    let server = try TestServer()
    #expect(throws: TransportError.alreadyStarted) { _ = try server.server.start() }
    server.server.stop(graceSeconds: 0)
    #expect(throws: TransportError.alreadyStarted) { _ = try server.server.start() }
  }
}
