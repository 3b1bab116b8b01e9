import Synchronization
import Testing
import TestSupport

@testable import Transport

/// Requests that a node makes itself.
@Suite struct NodeStreamTests {
  /// Sends everything back that it receives, after the target of the request. Refuses requests of clients.
  private final class Echo: RequestHandler {
    let begun = Observed(0)
    let ended = Observed(0)

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      exchange.respond(status: 400, headers: { _ in }, body: { $0.append(contentsOf: "whole".utf8) })
    }

    func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
      begun.update { $0 += 1 }
      let target = Array(request.target)
      guard request.isFromNode, !target.elementsEqual("/refused".utf8) else {
        exchange.respond(status: 403, headers: { _ in }, body: { $0 += Array("no node".utf8) })
        return nil
      }
      let echo = EchoStream(exchange, target)
      exchange.onClose { [ended] in ended.update { $0 += 1 } }
      exchange.stream(status: 200, headers: { _ in }, from: echo)
      return echo
    }
  }

  private final class EchoStream: BodySink, BodySource {
    private let exchange: Exchange
    private var bytes: [UInt8]

    init(_ exchange: Exchange, _ target: [UInt8]) {
      self.exchange = exchange
      bytes = target
    }

    func received(_ received: UnsafeRawBufferPointer) {
      bytes.append(contentsOf: received)
      exchange.resume()
    }

    func ended() {}

    func nextSlice(into out: inout [UInt8]) -> BodyProgress {
      out += bytes.prefix(Exchange.sliceBytes)
      bytes.removeFirst(min(bytes.count, Exchange.sliceBytes))
      return bytes.isEmpty ? .waiting : .more
    }
  }

  private struct Seen: Sendable {
    var bytes: [UInt8] = []
    var ends = 0
  }

  private func server(_ handler: any RequestHandler) throws -> (NodeServer, NodeAddress) {
    var limits = TransportConfiguration()
    limits.loops = 1
    let server = try NodeServer(key: RelayPair.key, host: "127.0.0.1", port: 0, limits: limits, handler: handler)
    return (server, try server.start())
  }

  private func open(
    _ client: NodeClient, _ path: String, _ address: NodeAddress, _ seen: Observed<Seen>
  ) -> NodeStream {
    let stream = client.makeStream(
      receive: { bytes in
        let copy = Array(bytes)
        seen.update { $0.bytes += copy }
      }, end: { seen.update { $0.ends += 1 } })
    client.open(stream, path, at: address)
    return stream
  }

  @Test func bytesFlowInBothDirections() throws {
    let handler = Echo()
    let (server, address) = try server(handler)
    defer { server.stop(graceSeconds: 0) }
    let client = try NodeClient(key: RelayPair.key)
    let seen = Observed(Seen())
    let stream = open(client, "/log?after=1", address, seen)
    stream.send(Array(" one".utf8))
    #expect(seen.wait { $0.bytes.count == 16 })
    stream.send(Array(" two".utf8))
    #expect(seen.wait { String(decoding: $0.bytes, as: UTF8.self) == "/log?after=1 one two" })
    stream.close()
    #expect(seen.wait { $0.ends == 1 })
    #expect(handler.ended.wait { $0 == 1 })
    client.stop()
    #expect(seen.value.ends == 1)
  }

  /// The other node holds back the bytes that exceed the window until the reader counts some as consumed.
  @Test func theReaderSetsThePace() throws {
    let (server, address) = try server(Echo())
    defer { server.stop(graceSeconds: 0) }
    let client = try NodeClient(key: RelayPair.key)
    defer { client.stop() }
    let seen = Observed(Seen())
    let stream = open(client, "/", address, seen)
    let sent = 1 << 20
    stream.send(Array(repeating: 7, count: sent))
    let window = PeerSession.streamWindowBytes
    #expect(seen.wait { $0.bytes.count == window })
    var counted = 0
    while counted < sent + 1 {
      let count = seen.value.bytes.count
      stream.consumed(count - counted)
      counted = count
      #expect(seen.wait { $0.bytes.count > counted || counted == sent + 1 })
    }
    #expect(seen.value.bytes.count == sent + 1)
  }

  @Test func aRefusalEndsTheStream() throws {
    let (server, address) = try server(Echo())
    let client = try NodeClient(key: RelayPair.key)
    defer { client.stop() }
    let seen = Observed(Seen())
    _ = open(client, "/refused", address, seen)
    #expect(seen.wait { $0.ends == 1 && $0.bytes.isEmpty })
    // Nobody listens any more.
    server.stop(graceSeconds: 0)
    _ = open(client, "/", address, seen)
    #expect(seen.wait { $0.ends == 2 })
  }

  @Test func theEndOfTheServerEndsTheStream() throws {
    let (server, address) = try server(Echo())
    let client = try NodeClient(key: RelayPair.key)
    defer { client.stop() }
    let seen = Observed(Seen())
    let stream = open(client, "/", address, seen)
    #expect(seen.wait { $0.bytes.count == 1 })
    server.stop(graceSeconds: 0)
    #expect(seen.wait { $0.ends == 1 })
    stream.send([1])
    stream.consumed(1)
    stream.close()
  }

  @Test func anotherKeyIsRefused() throws {
    let handler = Echo()
    let (server, address) = try server(handler)
    defer { server.stop(graceSeconds: 0) }
    let client = try NodeClient(key: RelayPair.key(2))
    defer { client.stop() }
    let seen = Observed(Seen())
    _ = open(client, "/", address, seen)
    #expect(seen.wait { $0.ends == 1 })
    #expect(handler.begun.value == 0)
  }

  /// A client of another node cannot make a request of a node.
  @Test func requestsOfClientsAreNotThoseOfNodes() throws {
    let pair = try RelayPair(handler: Echo())
    let client = try pair.front.connect()
    client.send("POST /log HTTP/1.1\r\nHost: x\r\nHearth-Envelope: 1 2 n - -\r\nContent-Length: 1\r\n\r\n1")
    #expect(try client.readReply().status == 403)
  }
}
