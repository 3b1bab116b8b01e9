import Testing
import TestSupport

@testable import Transport

/// Clients that request much and read nothing: memory and time have limits, and other clients are served.
@Suite struct UnreadResponseTests {
  private static let sliceBytes = 200_000

  @Test func streamsOfAConnectionShareOneLimit() throws {
    let asked = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: LargeSlices(count: 1, bytes: Self.sliceBytes, asked))
    }
    // Each stream may send a byte, so the server asks its source.
    let client = try HTTP2Client(server, settings: [(4, 1)])
    client.opensWindows = false
    for index in 0..<100 { client.request(UInt32(index * 2 + 1)) }
    try client.settle()
    server.settle(asked)
    // Six slices exceed 1 MiB.
    #expect(asked.value == 6)
    client.opensWindows = true
    client.send(.settings([(4, 1 << 20)]), .windowUpdate(0, 1 << 30))
    for index in 0..<100 {
      #expect(try client.reply(UInt32(index * 2 + 1)).body.count == Self.sliceBytes)
    }
  }

  @Test func bytesThatASourceHoldsCountToo() throws {
    let handled = Observed(0)
    let server = try TestServer { _, exchange in
      handled.update { $0 += 1 }
      exchange.stream(status: 200, headers: { _ in }, from: LargeSlices(count: 0, holding: Self.sliceBytes))
    }
    let client = try HTTP2Client(server, settings: [(4, 0)])
    for index in 0..<100 { client.request(UInt32(index * 2 + 1)) }
    try client.settle()
    server.settle(handled)
    #expect(handled.value == 6)
    client.send(.settings([(4, 1 << 20)]))
    for index in 0..<100 { #expect(try client.reply(UInt32(index * 2 + 1)).body.count == Self.sliceBytes) }
  }

  @Test func streamsOfAConnectionTakeTurns() throws {
    let server = try TestServer { request, exchange in
      let count = request.target.elementsEqual("/long".utf8) ? 2000 : 5
      exchange.stream(status: 200, headers: { _ in }, from: LargeSlices(count: count, bytes: 16_000))
    }
    let client = try HTTP2Client(server)
    client.request(1, "GET", "/long")
    client.request(3, "GET", "/short")
    #expect(try client.reply(3).body.count == 80_000)
    #expect(client.replies[1]?.isEnded == false)
  }

  @Test func aResponseInTheWayOfOthersIsCanceledSooner() throws {
    let server = try TestServer { _, exchange in
      exchange.respond(status: 200, headers: { _ in }) {
        $0.append(contentsOf: [UInt8](repeating: 0x61, count: 2 << 20))
      }
    }
    let client = try HTTP2Client(server, settings: [(4, 0)])
    client.request(1)
    client.request(3)
    try client.settle()
    server.advance(seconds: HTTP2Limits.crowdedStallSeconds + 1)
    // 8 is CANCEL.
    #expect(try client.reply(1).resetCode == 8)
    // Nothing waits for the second response, so it has more time.
    try client.settle()
    server.advance(seconds: HTTP2Limits.crowdedStallSeconds + 1)
    try client.settle()
    #expect(client.replies[3]?.resetCode == nil && client.replies[3]?.status == 200)
  }

  @Test func responsesOfAClientThatEndedItsSideDoNotWaitForWindows() throws {
    let server = try TestServer { _, exchange in
      exchange.respond(status: 200, headers: { _ in }) {
        $0.append(contentsOf: [UInt8](repeating: 0x61, count: 2 << 20))
      }
    }
    let client = try HTTP2Client(server, settings: [(4, 0)])
    for index in 0..<10 { client.request(UInt32(index * 2 + 1)) }
    try client.settle()
    client.raw.endSending()
    #expect(server.wait { server.server.openConnections == 0 })
  }

  @Test func slowestClientsAreDisconnectedWhenTooMuchWaits() throws {
    let counters = TransportCounters(loops: 1)
    let server = try TestServer(
      configure: {
        $0.unsentBytesMax = 4 << 20
        $0.counters = counters
      },
      handle: { _, exchange in
        exchange.respond(status: 200, headers: { _ in }) {
          $0.append(contentsOf: [UInt8](repeating: 0x61, count: Self.sliceBytes))
        }
      })
    let reader = try HTTP2Client(server)
    let unread = try (0..<8).map { _ in try HTTP2Client(server, settings: [(4, 0)]) }
    for (number, client) in unread.enumerated() {
      for index in 0..<20 { client.request(UInt32(index * 2 + 1)) }
      reader.request(UInt32(number * 2 + 1))
      #expect(try reader.reply(UInt32(number * 2 + 1)).body.count == Self.sliceBytes)
    }
    // Each of the others holds 1.2 MB, so three fit.
    #expect(server.wait { server.server.openConnections <= 4 })
    #expect(counters.sum().shed >= 5)
    reader.request(101)
    #expect(try reader.reply(101).isEnded)
  }

  @Test(arguments: ["/other", "/healthz"])
  func newConnectionsDoNotWaitForManyRequests(target: String) throws {
    let order = Observed<[String]>([])
    let gate = Semaphore()
    let server = try TestServer { request, exchange in
      let target = String(decoding: request.target, as: UTF8.self)
      if target == "/gate" { gate.wait() }
      if target == "/slow" { workTwoMilliseconds() }
      order.update { $0.append(target) }
      exchange.respond(status: 200, headers: { _ in }, body: { _ in })
    }
    let many = try HTTP2Client(server, settings: [(3, 200)])
    try many.settle()
    let blocker = try server.connect()
    let other = try server.connect()
    blocker.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n")
    // The loop is blocked, so all of these arrive together.
    for index in 0..<200 { many.request(UInt32(index * 2 + 1), "GET", "/slow") }
    other.send("GET \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
    gate.signal()
    #expect(try other.readReply().status == 200)
    #expect(order.wait { $0.count == 202 })
    let place = try #require(order.value.firstIndex(of: target))
    #expect(place < 100, "\(place) requests came first")
  }

  @Test func responsesOfManyConnectionsLeaveTimeForRequests() throws {
    let gate = Semaphore()
    let slices = Observed(0)
    let exchanges = Observed<[Exchange]>([])
    let server = try TestServer { request, exchange in
      switch String(decoding: request.target, as: UTF8.self) {
      case "/feed":
        exchanges.update { $0.append(exchange) }
        exchange.stream(status: 200, headers: { _ in }, from: SlowSlices(slices))
      case "/gate":
        gate.wait()
        for streaming in exchanges.value { streaming.resume() }
        exchange.respond(status: 200, headers: { _ in }, body: { _ in })
      default:
        let text = String(slices.value)
        exchange.respond(status: 200, headers: { _ in }, body: { $0.append(contentsOf: Array(text.utf8)) })
      }
    }
    let feeds = try (0..<100).map { _ in
      let client = try server.connect()
      client.send("GET /feed HTTP/1.1\r\nHost: x\r\n\r\n")
      return client
    }
    #expect(exchanges.wait { $0.count == 100 })
    let blocker = try server.connect()
    let other = try server.connect()
    blocker.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n")
    other.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n")
    gate.signal()
    let reply = try other.readReply()
    let before = try #require(Int(reply.text))
    #expect(before < 50, "\(before) slices came first")
    #expect(slices.wait { $0 == 100 })
    withExtendedLifetime(feeds) {}
  }
}

/// Takes the time of a request or slice that costs much.
private func workTwoMilliseconds() {
  let end = ContinuousClock.now + .milliseconds(2)
  while ContinuousClock.now < end {}
}

/// Slices of one size. It may also hold bytes from the start.
private final class LargeSlices: BodySource {
  private var left: Int
  private let slice: [UInt8]
  private var held: [UInt8]
  private let asked: Observed<Int>

  init(count: Int, bytes: Int = 0, holding: Int = 0, _ asked: Observed<Int> = Observed(0)) {
    left = count
    slice = [UInt8](repeating: 0x61, count: bytes)
    held = [UInt8](repeating: 0x61, count: holding)
    self.asked = asked
  }

  var heldBytes: Int { held.count }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    asked.update { $0 += 1 }
    out.append(contentsOf: held)
    held = []
    if left > 0 { out.append(contentsOf: slice) }
    left -= 1
    return left <= 0 ? .finished : .more
  }
}

/// Waits, then takes two milliseconds for its only slice.
private final class SlowSlices: BodySource {
  private let made: Observed<Int>
  private var isAsked = false

  init(_ made: Observed<Int>) { self.made = made }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    guard isAsked else {
      isAsked = true
      return .waiting
    }
    workTwoMilliseconds()
    made.update { $0 += 1 }
    out.append(0x61)
    return .finished
  }
}
