import Testing
import TestSupport

@testable import Transport

/// Clients that cause work without useful requests. 11 is ENHANCE_YOUR_CALM.
@Suite struct HTTP2FloodTests {
  struct Flood: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// Frames sent once, at the start. `frames` returns those sent repeatedly, for increasing stream numbers.
    var first: [HTTP2Frame] = []
    var frames: @Sendable (UInt32) -> [HTTP2Frame]
    var codes: [Int] = [11]
  }

  private static let head = HTTP2Client.head("GET", "/slow")
  private static let ping = HTTP2Frame(kind: .ping, payload: [UInt8](repeating: 0, count: 8))

  static let floods: [Flood] = [
    Flood(testDescription: "rapid resets", frames: { [.headers($0, head), .reset($0)] }),
    Flood(
      testDescription: "streams that the server must reset",
      frames: { [.headers($0, head, end: false), .windowUpdate($0, 0x7fff_ffff), .windowUpdate($0, 1)] }),
    // 1 is PROTOCOL_ERROR, if too many of them are open at the same time.
    Flood(testDescription: "malformed requests", frames: { [.headers($0, [("a", "b")])] }, codes: [1, 11]),
    Flood(testDescription: "PING", frames: { _ in [ping] }),
    Flood(testDescription: "SETTINGS", frames: { _ in [.settings([(4, 70_000)])] }),
    Flood(
      testDescription: "PRIORITY",
      frames: { [HTTP2Frame(kind: .priority, stream: $0, payload: [0, 0, 0, 0, 16])] }),
    Flood(testDescription: "unknown frames", frames: { [HTTP2Frame(kind: .unknown, stream: $0)] }),
    Flood(testDescription: "WINDOW_UPDATE", frames: { _ in [.windowUpdate(0, 1)] }),
    Flood(
      testDescription: "empty DATA", first: [.headers(1, HTTP2Client.head("POST", "/"), end: false)],
      frames: { _ in [.data(1, [])] }),
    // nghttp2 counts these itself and closes the connection.
    Flood(
      testDescription: "CONTINUATION", first: [.headers(1, head, endHeaders: false)],
      frames: { _ in [HTTP2Frame(kind: .continuation, stream: 1, payload: HTTP2Frame.block([("a", "b")]))] },
      codes: [1, 11]),
    // After the client has confirmed the limit, further streams violate the protocol. Before that, the server
    // rejects them until they are too many.
    Flood(testDescription: "streams beyond the limit", frames: { [.headers($0, head)] }, codes: [1, 11]),
  ]

  @Test(arguments: floods)
  func floodsEndTheConnection(flood: Flood) throws {
    let handled = Observed(0)
    let server = try TestServer { _, _ in handled.update { $0 += 1 } }
    let client = try HTTP2Client(server)
    client.send(flood.first)
    var bytes: [UInt8] = []
    for index in 0..<6000 as Range<UInt32> { bytes += flood.frames(index * 2 + 1).flatMap(\.bytes) }
    // The reader must not wait for the writer, because the server stops reading at some point. Sending and receiving
    // on one socket share no state.
    nonisolated(unsafe) let raw = client.raw
    let flooding = bytes
    let sending = startThreads(1) { _ in raw.send(flooding) }
    let code = try client.goAwayCode()
    #expect(code.map(flood.codes.contains) == true, "GOAWAY \(code ?? -1), \(client.replies.count) responses")
    raw.endSending()
    _ = sending()
    #expect(server.wait { server.server.openConnections == 0 })
    #expect(handled.value <= 1000)
  }

  @Test func canceledStreamsAreAllowedAtALimitedRate() {
    var guardian = HTTP2FloodGuard(nowMilliseconds: 0)
    var spent = 0
    while guardian.spend(HTTP2FloodGuard.resetCost, nowMilliseconds: 0) { spent += 1 }
    #expect(spent == 500)
    var now = 0
    // A hundred per second are allowed forever.
    for _ in 0..<2000 {
      now += 10
      let isPaid = guardian.spend(HTTP2FloodGuard.resetCost, nowMilliseconds: now)
      #expect(isPaid)
    }
    spent = 0
    while guardian.spend(HTTP2FloodGuard.resetCost, nowMilliseconds: now) { spent += 1 }
    #expect(spent == 0)
    // A long silence fills the bucket only once.
    now += 1_000_000_000
    spent = 0
    while guardian.spend(HTTP2FloodGuard.resetCost, nowMilliseconds: now) { spent += 1 }
    #expect(spent == 500)
  }

  @Test func responsesPayForControlFrames() throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    // Each request gets a response, and is accompanied by as many control frames as those of busy clients.
    for index in 0..<3000 as Range<UInt32> {
      let stream = index * 2 + 1
      client.request(stream)
      client.send(Self.ping, .windowUpdate(0, 10))
      #expect(try client.reply(stream).status == 200)
    }
  }

  @Test func refusesFieldsThatExpandTooMuch() throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    // One field of 4,000 bytes enters the table, then one byte refers to it each time: 4 MB in total.
    let large = [UInt8](repeating: 0x61, count: 3900)
    let block =
      HTTP2Frame.block(HTTP2Client.head("GET", "/")) + [0x40, 1, 0x78, 0x7f, 0xbd, 0x1d] + large
      + [UInt8](repeating: 0xbe, count: 1000)
    client.send(HTTP2Frame(kind: .headers, flags: 5, stream: 1, payload: block))
    #expect(try client.reply(1).status == 431)
  }

  @Test func chargesOnlyFieldsThatAreMuchLongerThanTheirBytes() {
    // The fields of many clients: as long as their compressed form allows, or repeated from the whole table.
    var plain = HTTP2HeaderBlock()
    plain.received(30_000)
    #expect((0..<60).reduce(0) { sum, _ in sum + plain.expanded(900) } == 0)
    var repeated = HTTP2HeaderBlock()
    repeated.received(40)
    #expect((0..<40).reduce(0) { sum, _ in sum + repeated.expanded(100) } == 0)
    // A byte for 4,000: six megabytes cost more than a connection has.
    var bomb = HTTP2HeaderBlock()
    bomb.received(5500)
    let tokens = (0..<1500).reduce(0) { sum, _ in sum + bomb.expanded(3900) }
    var guardian = HTTP2FloodGuard(nowMilliseconds: 0)
    let isPaid = guardian.spend(tokens, nowMilliseconds: 0)
    #expect(!isPaid)
  }

  @Test(arguments: [(8000, 20), (12_000, 1)])
  func manyFieldsThatExpandTooMuchEndTheConnection(count: Int, requests: UInt32) throws {
    let server = try TestServer()
    let client = try HTTP2Client(server)
    let entry = [0x40, 1, 0x78, 0x7f, 0xbd, 0x1d] + [UInt8](repeating: 0x61, count: 3900)
    let fields = [UInt8](repeating: 0xbe, count: count)
    for index in 0..<requests {
      let block = HTTP2Frame.block(HTTP2Client.head("GET", "/")) + (index == 0 ? entry : []) + fields
      client.send(HTTP2Frame(kind: .headers, flags: 5, stream: index * 2 + 1, payload: block))
    }
    client.raw.endSending()
    // 31 or 47 MB per request.
    #expect(try client.goAwayCode() == 11)
  }
}
