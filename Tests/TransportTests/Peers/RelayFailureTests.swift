import Foundation
import Glibc
import Testing
import TestSupport

@testable import Transport

/// Owners that are missing, change, refuse, break or fall silent.
@Suite struct RelayFailureTests {
  /// Refuses everything, as a node that does not own the project.
  private final class NotOwner: RequestHandler {
    let asked = Observed(0)

    func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
      asked.value += 1
      exchange.refuseAsNotOwner()
      return nil
    }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {}
  }

  private static func send(
    _ server: TestServer, _ method: String, _ path: String, _ body: [UInt8] = []
  ) throws -> RawClient {
    let client = try server.connect()
    client.send(Array("\(method) \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body)
    return client
  }

  @Test func aRequestWaitsForAnOwner() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    pair.setTarget(.none)
    let clients = try (0..<5).map { try Self.send(pair.front, "POST", "/seen", Array("body \($0)".utf8)) }
    let isTaken = pair.front.wait { pair.relay.counts.relayed == 5 }
    #expect(isTaken)
    #expect(handler.begun.value == 0)
    pair.setTarget(.node(pair.address))
    for (index, client) in clients.enumerated() {
      let reply = try client.readReply()
      #expect(reply.status == 200 && reply.text.hasSuffix("body \(index)"))
    }
    #expect(handler.begun.value == 5)
  }

  @Test func aRequestIsRefusedIfNoOwnerAppears() throws {
    let pair = try RelayPair(usesManualClock: true, handler: RelayHandler())
    pair.setTarget(.none)
    let client = try Self.send(pair.front, "POST", "/seen", [1])
    let other = try HTTP2Client(pair.front)
    other.request(1, "POST", "/call", [("content-type", "application/grpc"), ("te", "trailers")], end: false)
    try other.settle()
    #expect(pair.front.wait { pair.relay.counts.relayed == 2 })
    pair.front.advance(seconds: 9)
    #expect(pair.relay.counts.failed == 0)
    pair.front.advance(seconds: 2)
    let reply = try client.readReply()
    #expect(reply.status == 503)
    #expect(reply.text.contains(#""status":"UNAVAILABLE""#))
    let call = try other.reply(1)
    #expect(call.status == 200 && call.field("grpc-status") == "14")
    #expect(pair.relay.counts.failed == 2)
  }

  /// The owner stops: the requests that arrived before wait for the next owner, if they can be repeated.
  @Test(arguments: [(true, RequestRepetition.withID, 200), (false, .withID, 503), (true, .never, 503)])
  func aRequestWaitsWhileItsNodeStops(findsOwner: Bool, repetition: RequestRepetition, status: Int) throws {
    let pair = try RelayPair(usesManualClock: true, repetition: repetition, handler: RelayHandler())
    pair.setTarget(.none)
    let stopped = Observed(false)
    // The server stops when the clients have closed their connections.
    do {
      let client = try Self.send(pair.front, "POST", "/seen", [1])
      let idle = try HTTP2Client(pair.front)
      try idle.settle()
      #expect(pair.front.wait { pair.relay.counts.relayed == 1 })
      Thread {
        pair.front.server.stop(graceSeconds: 60)
        stopped.value = true
      }.start()
      _ = try idle.next(.goAway)
      if repetition != .never {
        pair.front.advance(seconds: 1)
        #expect(pair.relay.counts.failed == 0)
      }
      if findsOwner { pair.setTarget(.node(pair.address)) } else { pair.front.advance(seconds: 2) }
      #expect(try client.readReply().status == status)
    }
    #expect(stopped.wait { $0 })
  }

  /// An endless response that begins while its node stops ends soon.
  @Test func anEndlessRequestThatWaitedDoesNotDelayTheStop() throws {
    let pair = try RelayPair(handler: RelayHandler())
    pair.setTarget(.none)
    let stopped = Observed(false)
    do {
      let client = try HTTP2Client(pair.front)
      client.request(1, "GET", "/quiet")
      #expect(pair.front.wait { pair.relay.counts.relayed == 1 })
      Thread {
        pair.front.server.stop(graceSeconds: 60)
        stopped.value = true
      }.start()
      _ = try client.next(.goAway)
      pair.setTarget(.node(pair.address))
      let reply = try client.reply(1)
      #expect(reply.text == "be" && reply.isEnded && reply.resetCode == nil)
    }
    #expect(stopped.wait(secondsMax: 30) { $0 })
  }

  @Test(arguments: ["POST", "GET"])
  func aNodeThatIsNotTheOwnerIsNotTheLast(method: String) throws {
    let refusing = NotOwner()
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    pair.setTarget(.node(try pair.startNode(refusing)))
    // More than a window, so the rest may not leave before the node has refused the head.
    let body = method == "POST" ? [UInt8](repeating: 5, count: 1_000_000) : []
    let client = try Self.send(pair.front, method, method == "POST" ? "/count" : "/seen", body)
    #expect(refusing.asked.wait { $0 > 0 })
    pair.setTarget(.node(pair.address))
    let reply = try client.readReply()
    #expect(reply.status == 200)
    if method == "POST" { #expect(reply.text.hasPrefix("1000000 ")) }
    #expect(pair.relay.counts.repeated >= 1)
  }

  @Test func anUnsafeRequestIsNotRepeatedAfterABreak() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let client = try Self.send(pair.front, "POST", "/held", [1])
    #expect(handler.begun.wait { $0 == 1 })
    let other = RelayHandler()
    let next = try pair.startNode(other)
    pair.killOwner()
    pair.setTarget(.node(next))
    let reply = try client.readReply()
    #expect(reply.status == 500)
    #expect(reply.text.contains("may have been done") && reply.text.contains(#""status":"INTERNAL""#))
    #expect(other.begun.value == 0)
    #expect(pair.relay.counts.broken == 1)
    // The next request finds the new owner.
    #expect(try Self.send(pair.front, "POST", "/seen", [1]).readReply().status == 200)
  }

  @Test func aCallIsNotRepeatedAfterABreak() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let client = try HTTP2Client(pair.front)
    client.request(1, "POST", "/held", [("content-type", "application/grpc"), ("te", "trailers")], end: false)
    client.send(.data(1, [0, 0, 0, 0, 0], end: true))
    #expect(try wait(for: handler.begun, client))
    pair.killOwner()
    let reply = try client.reply(1)
    #expect(reply.status == 200 && reply.field("grpc-status") == "13")
  }

  private func wait(for counter: Observed<Int>, _ client: HTTP2Client) throws -> Bool {
    try client.settle()
    return counter.wait { $0 > 0 }
  }

  @Test func aSafeRequestIsRepeatedAfterABreak() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let client = try Self.send(pair.front, "GET", "/held")
    #expect(handler.begun.wait { $0 == 1 })
    let other = RelayHandler()
    let next = try pair.startNode(other)
    pair.setTarget(.node(next))
    pair.killOwner()
    #expect(other.held.wait { $0 != nil })
    let exchange = try #require(other.held.value)
    exchange.loop.execute { exchange.respond(status: 200, headers: { _ in }, body: { $0.append(65) }) }
    let reply = try client.readReply()
    #expect(reply.status == 200 && reply.text == "A")
  }

  /// A request that has its effect once by its id may have had it. Of one that may always be repeated, a client needs no outcome.
  @Test(arguments: [(RequestRepetition.withID, 500), (.always, 503)])
  func aRepeatedRequestIsRefusedIfNoOwnerAppears(repetition: RequestRepetition, status: Int) throws {
    let handler = RelayHandler()
    let pair = try RelayPair(usesManualClock: true, repetition: repetition, handler: handler)
    let client = try Self.send(pair.front, "POST", "/held", [1])
    #expect(handler.begun.wait { $0 == 1 })
    pair.setTarget(.none)
    pair.killOwner()
    #expect(pair.front.wait { pair.relay.counts.broken == 1 })
    pair.front.advance(seconds: 11)
    let reply = try client.readReply()
    #expect(reply.status == status, "\(reply.text)")
    #expect(pair.relay.counts.repeated == 1)
  }

  @Test func aResponseThatHasBegunIsCutIfTheOwnerDies() throws {
    let pair = try RelayPair(handler: RelayHandler())
    let client = try HTTP2Client(pair.front)
    client.request(1, "GET", "/hang")
    try client.read(1, of: 1)
    pair.killOwner()
    let reply = try client.reply(1)
    #expect(reply.resetCode != nil && !reply.isEnded)
  }

  @Test func anOwnerThatIsNotReachableIsTriedAgain() throws {
    let pair = try RelayPair(handler: RelayHandler())
    let unused = try LoopbackAddress.bind()
    pair.setTarget(.node(NodeAddress(host: "127.0.0.1", port: Int(unused.port))))
    let client = try Self.send(pair.front, "POST", "/seen", [1])
    #expect(pair.front.wait { pair.relay.counts.repeated > 0 })
    pair.setTarget(.node(pair.address))
    #expect(try client.readReply().status == 200)
  }

  /// The machine of a former owner accepts connections, but its process is silent. Nothing waits for it when another node is the
  /// owner: the clock stands still.
  @Test func aConnectionThatIsNotEstablishedDelaysNoRequest() throws {
    let pair = try RelayPair(usesManualClock: true, handler: RelayHandler())
    let (socket, port) = try LoopbackAddress.bind()
    defer { close(socket) }
    #expect(listen(socket, 8) == 0)
    pair.setTarget(.node(NodeAddress(host: "127.0.0.1", port: Int(port))))
    let client = try Self.send(pair.front, "POST", "/seen", [1])
    #expect(pair.front.wait { pair.relay.counts.openConnections == 1 })
    pair.setTarget(.node(pair.address))
    #expect(try client.readReply().status == 200)
  }

  /// A former owner may execute a request for long, if it does not reach PostgreSQL for example. After a detour, the owner is
  /// still the same, and executes the request.
  @Test(arguments: [
    (RequestRepetition.withID, false), (.always, false), (.never, false), (.withID, true),
  ])
  func aRequestMovesToTheNextOwner(repetition: RequestRepetition, afterDetour: Bool) throws {
    let former = RelayHandler()
    let pair = try RelayPair(usesManualClock: true, repetition: repetition, handler: former)
    if afterDetour { pair.setTarget(.detour(pair.address)) }
    let client = try Self.send(pair.front, "POST", "/held", [1])
    #expect(former.begun.wait { $0 == 1 })
    let next = RelayHandler()
    pair.setTarget(.node(try pair.startNode(next)))
    pair.front.advance(seconds: 1)
    let responding: RelayHandler
    if repetition == .never || afterDetour {
      #expect(next.begun.value == 0)
      responding = former
    } else {
      #expect(next.begun.wait { $0 == 1 } && former.left.wait { $0 == 1 })
      responding = next
    }
    let isHeld = responding.held.wait { $0 != nil }
    #expect(isHeld)
    let exchange = try #require(responding.held.value)
    exchange.loop.execute { exchange.respond(status: 200, headers: { _ in }, body: { $0.append(65) }) }
    let reply = try client.readReply()
    #expect(reply.status == 200 && reply.text == "A")
  }

  @Test func aSilentOwnerIsDead() throws {
    let handler = RelayHandler()
    let proxy = Observed<StallingProxy?>(nil)
    let pair = try RelayPair(
      via: { address in
        let made = try StallingProxy(to: address.port)
        proxy.value = made
        return Int(made.port)
      }, handler: handler)
    let unsafe = try Self.send(pair.front, "POST", "/held", [1])
    let streamed = try HTTP2Client(pair.front)
    streamed.request(1, "GET", "/hang")
    try streamed.read(1, of: 1)
    #expect(handler.begun.wait { $0 == 2 })
    let begun = ContinuousClock.now
    proxy.value?.stall()
    // A real clock: the time is what this test is about.
    #expect(try unsafe.readReply().status == 500)
    #expect(try streamed.reply(1).resetCode != nil)
    #expect(begun.duration(to: .now) > .seconds(1.5))
    pair.setTarget(.node(pair.address))
    #expect(try Self.send(pair.front, "POST", "/seen", [1]).readReply().status == 200)
  }

  @Test func aRequestIsNotRelayedTwice() throws {
    let pair = try RelayPair(handler: RelayHandler())
    // The relay of this node points to the pair's first node, whose own relay refuses.
    let second = try Relay(
      key: RelayPair.key, configuration: RelayConfiguration(limits: TransportConfiguration())
    ) { [address = pair.address] in .node(address) }
    pair.setTarget(.node(try pair.startNode(second)))
    let client = try Self.send(pair.front, "POST", "/seen", [1])
    #expect(pair.front.wait { pair.relay.counts.repeated > 0 })
    #expect(second.counts.relayed == 0)
    pair.setTarget(.node(pair.address))
    #expect(try client.readReply().status == 200)
  }
}
