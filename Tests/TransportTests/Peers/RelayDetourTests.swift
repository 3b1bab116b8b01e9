import Testing
import TestSupport

@testable import Transport

/// Requests of a node that does not reach the owner, which another node passes on.
@Suite struct RelayDetourTests {
  private static let cases = [
    ("GET", "/text", 0), ("POST", "/seen", 20), ("POST", "/count", 1_000_000), ("GET", "/trailers", 0),
    ("GET", "/missing", 0),
  ]

  /// A node between the front and the owner of a pair, which relays everything that it gets.
  private static func middle(_ pair: RelayPair, target: @escaping @Sendable () -> RelayTarget) throws -> NodeAddress {
    var configuration = RelayConfiguration(limits: TransportConfiguration())
    configuration.repetition = { _ in .withID }
    return try pair.startNode(Relay(key: RelayPair.key, configuration: configuration, target: target))
  }

  @Test(arguments: cases) func aRequestReachesTheOwnerByAnotherNode(method: String, path: String, bytes: Int) throws {
    let pair = try RelayPair(repetition: .withID, handler: RelayHandler())
    pair.setTarget(.detour(try Self.middle(pair) { [address = pair.address] in .node(address) }))
    func reply(_ server: TestServer) throws -> (status: Int, text: String) {
      let client = try server.connect()
      let head = "\(method) \(path) HTTP/1.1\r\nHost: x\r\nX-Own: 1\r\nContent-Length: \(bytes)\r\n\r\n"
      client.send(Array(head.utf8) + [UInt8](repeating: UInt8(ascii: "b"), count: bytes))
      let reply = try client.readReply()
      return (reply.status, reply.text)
    }
    let (direct, detoured) = (try reply(pair.direct), try reply(pair.front))
    #expect(detoured.status == direct.status)
    // The owner sees the client, not the nodes between.
    let differences = direct.text.split(separator: "\n").filter { !detoured.text.contains($0) }
    #expect(path == "/seen" || differences.isEmpty, "\(differences)")
    if path == "/seen" { #expect(detoured.text.contains("\n127.0.0.1 [127, 0, 0, 1] true "), "\(detoured.text)") }
    #expect(pair.relay.counts.failed == 0)
  }

  @Test func theOwnerGetsTheIDOfTheFirstNode() throws {
    final class Recorder: RequestHandler {
      let seen = Observed<[(id: [UInt8]?, mayPassOn: Bool)]>([])
      let relay: Relay?
      init(_ relay: Relay? = nil) { self.relay = relay }
      func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? { nil }
      func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
        let (id, mayPassOn) = (request.relayedRequestID, request.mayPassOn)
        seen.update { $0.append((id, mayPassOn)) }
        guard let relay else { return exchange.respond(status: 200, headers: { _ in }, body: { _ in }) }
        relay.handle(request, exchange)
      }
    }
    let owner = Recorder()
    let pair = try RelayPair(repetition: .withID, handler: owner)
    var configuration = RelayConfiguration(limits: TransportConfiguration())
    configuration.repetition = { _ in .withID }
    let middle = Recorder(
      try Relay(key: RelayPair.key, configuration: configuration) { [address = pair.address] in .node(address) })
    pair.setTarget(.detour(try pair.startNode(middle)))
    let client = try pair.front.connect()
    client.send("POST /seen HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try client.readReply().status == 200)
    #expect(owner.seen.value.count == 1 && middle.seen.value.count == 1)
    #expect(owner.seen.value[0].id?.count == 16 && owner.seen.value[0].id == middle.seen.value[0].id)
    #expect(middle.seen.value[0].mayPassOn && !owner.seen.value[0].mayPassOn)
  }

  /// Two nodes that name each other must not pass a request to and fro.
  @Test func aRequestIsPassedOnOnce() throws {
    let asked = Observed(0)
    final class Counting: RequestHandler {
      let asked: Observed<Int>
      let relay: Relay
      init(_ asked: Observed<Int>, _ relay: Relay) { (self.asked, self.relay) = (asked, relay) }
      func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
        asked.update { $0 += 1 }
        return relay.openBody(of: request, exchange)
      }
      func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
        asked.update { $0 += 1 }
        relay.handle(request, exchange)
      }
    }
    let pair = try RelayPair(usesManualClock: true, repetition: .withID, handler: RelayHandler())
    let back = Observed<RelayTarget>(.none)
    let relay = try Relay(
      key: RelayPair.key, configuration: RelayConfiguration(limits: TransportConfiguration())
    ) { back.value }
    let other = try pair.startNode(Counting(asked, relay))
    back.value = .detour(try Self.middle(pair) { .detour(other) })
    pair.setTarget(.detour(other))
    let client = try pair.front.connect()
    client.send("POST /seen HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
    #expect(asked.wait { $0 >= 1 })
    pair.front.advance(seconds: 11)
    #expect(try client.readReply().status == 503)
    #expect(asked.value == 1)
  }
}
