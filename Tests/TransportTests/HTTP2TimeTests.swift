import Testing
import TestSupport

@testable import Transport

/// Idle connections, silent clients, stalled bodies, and the shutdown of the server.
@Suite struct HTTP2TimeTests {
  @Test func idleConnectionsAreClosedWithGoAway() throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    client.request(1)
    _ = try client.reply(1)
    server.advance(seconds: 299)
    client.request(3)
    #expect(try client.reply(3).status == 200)
    server.advance(seconds: 299)
    #expect(server.server.openConnections == 1)
    server.advance(seconds: 2)
    #expect(try client.goAwayCode() == 0)
  }

  @Test func prefaceMustBeCompleteInTime() throws {
    let server = try TestServer()
    let client = try server.connect()
    client.send("PRI * HTTP")
    server.advance(seconds: 16)
    #expect(client.isEnded())
  }

  @Test func headMustBeCompleteInTime() throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    client.send(.headers(1, HTTP2Client.head("GET", "/"), endHeaders: false))
    server.advance(seconds: 14)
    #expect(server.server.openConnections == 1)
    server.advance(seconds: 2)
    #expect(try client.goAwayCode() == 11)
  }

  @Test func bodiesMustMakeProgress() throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    client.request(1, "POST", "/", end: false)
    for _ in 0..<4 {
      client.send(.data(1, [0x61]))
      server.advance(seconds: 29)
    }
    client.request(3, "POST", "/other", end: false)
    server.advance(seconds: 2)
    #expect(try client.reply(1).status == 408)
    client.send(.data(3, [0x61], end: true))
    #expect(try client.reply(3).text == "post /other|a")
  }

  @Test func silentClientsWithRunningRequestsArePinged() throws {
    let closed = Observed(0)
    let server = try TestServer { _, exchange in exchange.onClose { closed.update { $0 += 1 } } }
    let client = try HTTP2Client(server)
    client.request(1)
    try client.settle()
    for _ in 0..<3 {
      server.advance(seconds: 61)
      _ = try client.next(.ping)
      try client.settle()
    }
    #expect(closed.value == 0)
    client.answersPings = false
    server.advance(seconds: 61)
    _ = try client.next(.ping)
    server.advance(seconds: 10)
    #expect(closed.value == 0)
    server.advance(seconds: 11)
    #expect(closed.value == 1 && client.raw.isEnded())
  }

  @Test func streamsThatTakeNothingAreReset() throws {
    let closed = Observed(0)
    let server = try TestServer { request, exchange in
      if request.target.count > 1 { return TestServer.echo(request, exchange) }
      exchange.onClose { closed.update { $0 += 1 } }
      exchange.stream(status: 200, headers: { _ in }, from: Ones())
    }
    let client = try HTTP2Client(server, settings: [(4, 1000)])
    client.opensWindows = false
    client.request(1)
    try client.settle()
    // The client sends a frame after each step. Otherwise the connection would end.
    func wait(seconds: Int) throws {
      for _ in 0..<(seconds / 50) {
        server.advance(seconds: 50)
        try client.settle()
      }
    }
    try wait(seconds: 250)
    client.send(.windowUpdate(1, 10))
    try client.settle()
    try wait(seconds: 250)
    #expect(closed.value == 0)
    try wait(seconds: 100)
    // 8 is CANCEL.
    #expect(try client.reply(1).resetCode == 8)
    #expect(closed.value == 1 && client.replies[1]?.body.count == 1010)
    client.request(3, "GET", "/next")
    #expect(try client.reply(3).text == "get /next|")
  }

  @Test func waitingSourcesAreNotStalled() throws {
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: Silence())
    }
    let client = try HTTP2Client(server)
    client.request(1)
    for _ in 0..<20 {
      server.advance(seconds: 50)
      try client.settle()
    }
    #expect(client.replies[1]?.resetCode == nil && client.replies[1]?.status == 200)
  }

  @Test func stoppingSendsGoAwayAndFinishesRunningRequests() throws {
    let kept = Observed<[Exchange]>([])
    let shutdowns = Observed(0)
    let server = try TestServer { request, exchange in
      if request.target.count > 1 { return TestServer.echo(request, exchange) }
      exchange.onShutdown { shutdowns.update { $0 += 1 } }
      kept.update { $0.append(exchange) }
    }
    let idle = try HTTP2Client(server)
    let busy = try HTTP2Client(server)
    busy.request(1)
    #expect(server.wait { kept.value.count == 1 && server.server.openConnections == 2 })
    let stopping = startThreads(1) { _ in server.server.stop(graceSeconds: 60) }
    #expect(try idle.goAwayCode() == 0)
    idle.raw.endSending()
    // The first notice still allows requests that are on their way. The second one has the number of the last
    // accepted stream.
    let notice = try busy.next(.goAway)
    #expect(HTTP2Frame.number(notice.payload[0..<4]) == 0x7fff_ffff && notice.code == 0)
    busy.request(3, "GET", "/late")
    #expect(try busy.reply(3).text == "get /late|")
    let last = busy.control.last { $0.kind == .goAway }.map { HTTP2Frame.number($0.payload[0..<4]) }
    #expect(last == 3 || last == 0x7fff_ffff)
    #expect(shutdowns.value == 1)
    let exchange = kept.value[0]
    exchange.loop.execute { exchange.respond(status: 200, headers: { _ in }, body: { $0.append(0x61) }) }
    #expect(try busy.reply(1).text == "a")
    #expect(try busy.goAwayCode() == 0)
    let final = try #require(busy.control.last { $0.kind == .goAway })
    #expect(HTTP2Frame.number(final.payload[0..<4]) == 3)
    busy.raw.endSending()
    _ = stopping()
  }

  @Test func stoppingCutsRequestsAfterTheGracePeriod() throws {
    let closed = Observed(0)
    let server = try TestServer { _, exchange in exchange.onClose { closed.update { $0 += 1 } } }
    let client = try HTTP2Client(server)
    client.request(1)
    try client.settle()
    server.server.stop(graceSeconds: 0)
    #expect(closed.value == 1 && client.raw.isEnded() == false)
  }
}

/// Never ends.
private final class Ones: BodySource {
  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    out.append(contentsOf: [UInt8](repeating: 1, count: 100))
    return .more
  }
}

/// Never sends anything.
private final class Silence: BodySource {
  func nextSlice(into out: inout [UInt8]) -> BodyProgress { .waiting }
}
