import Foundation
import Synchronization
import Testing
import TestSupport

@testable import Transport

/// Long bodies in both directions, clients that stop, and the ends of both sides.
@Suite struct RelayStreamTests {
  @Test func streamsBothWaysAtTheSameTime() throws {
    let pair = try RelayPair(handler: RelayHandler())
    let client = try HTTP2Client(pair.front)
    client.request(1, "POST", "/echo-stream", [("te", "trailers")], end: false)
    var expected: [UInt8] = []
    for round in 0..<20 {
      let piece = [UInt8](repeating: UInt8(round), count: round * 500 + 1)
      expected += piece
      client.send(.data(1, piece))
      // The response to each piece arrives before the next one is sent.
      try client.read(expected.count, of: 1)
    }
    client.send(.data(1, [], end: true))
    let reply = try client.reply(1)
    let isSame = reply.body == expected
    #expect(isSame)
    #expect(reply.trailer("grpc-status") == "0")
  }

  @Test func aClientThatStopsReadingStopsTheOwner() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let client = try HTTP2Client(pair.front)
    client.opensWindows = false
    client.request(1, "GET", "/endless")
    pair.front.settle(handler.producedBytes)
    // The windows of the client and of the relay, a few slices, and the buffers of the sockets.
    #expect(handler.producedBytes.value < 2 * 1024 * 1024, "\(handler.producedBytes.value)")
    // Others are served meanwhile.
    let other = try pair.front.connect()
    other.send("GET /plain HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try other.readReply().body.count == RelayHandler.text.count)
  }

  /// A whole response is in the memory of the owner until its client takes it. The requests of other clients, which share the
  /// connection between the nodes, do not wait for it.
  @Test func clientsThatStopReadingDelayNoOthers() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let slow = try (0..<2).map { _ in try HTTP2Client(pair.front) }
    for (index, client) in slow.enumerated() {
      client.opensWindows = false
      client.request(1, "GET", "/large")
      try client.read(1, of: 1)
      #expect(handler.producedBytes.value == (index + 1) * RelayHandler.largeBytes)
    }
    let other = try pair.front.connect()
    for _ in 0..<3 {
      other.send("GET /plain HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try other.readReply().body.count == RelayHandler.text.count)
    }
    // The two get their responses when they read again.
    for client in slow {
      client.opensWindows = true
      let taken = client.replies[1]?.body.count ?? 0
      client.send(.windowUpdate(0, taken), .windowUpdate(1, taken))
      #expect(try client.reply(1).body.count == RelayHandler.largeBytes)
    }
  }

  /// If too many bytes wait for clients that do not read, the owner ends one response and not the connection with those
  /// of all others.
  @Test func tooManySlowClientsLoseOnlyTheirOwnResponses() throws {
    let handler = RelayHandler()
    // The nodes share half of it.
    let pair = try RelayPair(configure: { $0.unsentBytesMax = 4 * RelayHandler.largeBytes }, handler: handler)
    let clients = try (0..<3).map { _ in try HTTP2Client(pair.front) }
    for client in clients {
      client.opensWindows = false
      client.request(1, "GET", "/large")
      // Its whole window.
      try client.read(65_535, of: 1)
    }
    // Two responses fit. The client of the one that was not taken for the longest time gets a part of it, and a reset.
    let replies = try clients.map { client in
      client.opensWindows = true
      let taken = client.replies[1]?.body.count ?? 0
      client.send(.windowUpdate(0, taken), .windowUpdate(1, taken))
      return try client.reply(1)
    }
    #expect(replies.count { $0.resetCode != nil } == 1)
    #expect(replies.count { $0.body.count == RelayHandler.largeBytes } == 2)
    #expect(pair.owner.withLock { $0 }?.openConnections == 1)
    #expect(pair.relay.counts.broken == 0)
  }

  @Test func anOwnerThatStopsReadingStopsTheClient() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let client = try HTTP2Client(pair.front)
    try client.settle()
    client.request(1, "POST", "/paused", end: false)
    // Only what the windows allow may be sent: that of the front, and no more when the relay is full.
    client.send((0..<16).map { _ in .data(1, [UInt8](repeating: 1, count: 16_000)) })
    try client.settle()
    _ = handler.receivedBytes.wait { $0 > 0 }
    let granted = client.control.filter { $0.kind == .windowUpdate && $0.stream == 1 }.reduce(0) {
      $0 + HTTP2Frame.number($1.payload[...])
    }
    #expect(granted <= 512 * 1024)
    let exchange = try #require(handler.held.wait { $0 != nil } ? handler.held.value : nil)
    exchange.loop.execute { exchange.resumeBody() }
    client.send(.data(1, [], end: true))
    #expect(try client.reply(1).text.hasPrefix("256000 "))
  }

  @Test func aLongUploadArrivesWhole() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let body = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }
    let head = Array("PUT /count HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
    var replies: [String] = []
    for server in [pair.direct, pair.front] {
      let client = try server.connect()
      client.send(head + body)
      replies.append(try client.readReply().text)
    }
    #expect(replies[0] == replies[1])
    #expect(replies[0].hasPrefix("5000000 "))
  }

  @Test func aClientThatLeavesCancelsTheOwner() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let first = try pair.front.connect()
    first.send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(handler.begun.wait { $0 == 1 })
    first.reset()
    #expect(handler.left.wait { $0 == 1 })
    let second = try HTTP2Client(pair.front)
    second.request(1, "GET", "/quiet")
    try second.read(1, of: 1)
    second.send(.reset(1))
    #expect(handler.left.wait { $0 == 2 })
    // The connection between the nodes serves others.
    second.request(3, "GET", "/empty")
    #expect(try second.reply(3).status == 200)
    #expect(pair.owner.withLock { $0 }?.openConnections == 1)
  }

  @Test func aCutResponseIsCut() throws {
    let pair = try RelayPair(handler: RelayHandler())
    let client = try HTTP2Client(pair.front)
    client.request(1, "GET", "/cut")
    let reply = try client.reply(1)
    #expect(reply.status == 200)
    #expect(reply.resetCode != nil)
    #expect(!reply.isEnded)
    let other = try pair.front.connect()
    other.send("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n")
    // The connection ends within the chunked body.
    #expect(!String(decoding: other.readToEnd(), as: UTF8.self).hasSuffix("0\r\n\r\n"))
  }

  @Test func endlessResponsesEndWhenEitherNodeStops() throws {
    for stopsOwner in [true, false] {
      let pair = try RelayPair(handler: RelayHandler())
      let client = try HTTP2Client(pair.front)
      client.request(1, "GET", "/quiet")
      try client.read(1, of: 1)
      let stopped = Observed(false)
      Thread {
        if stopsOwner {
          pair.owner.withLock { $0 }?.stop(graceSeconds: 60)
        } else {
          pair.front.server.stop(graceSeconds: 60)
        }
        stopped.value = true
      }.start()
      let reply = try client.reply(1)
      #expect(reply.text == "be" && reply.isEnded && reply.resetCode == nil)
      #expect(stopped.wait { $0 })
    }
  }

  @Test func manyRequestsShareAConnection() throws {
    let pair = try RelayPair(loops: 2, handler: RelayHandler())
    let clients = try (0..<4).map { _ in try HTTP2Client(pair.front) }
    for client in clients {
      for index in 0..<100 {
        client.request(UInt32(2 * index + 1), "GET", index % 10 == 0 ? "/sized" : "/seen?\(index)")
      }
    }
    for client in clients {
      for index in 0..<100 {
        let reply = try client.reply(UInt32(2 * index + 1))
        #expect(reply.status == 200)
        if index % 10 == 0 {
          #expect(reply.body.count == RelayHandler.slicesBytes)
        } else {
          #expect(reply.text.contains("/seen?\(index)\n"))
        }
      }
    }
    #expect(pair.relay.counts.relayed == 400)
    #expect(pair.relay.counts.openConnections <= 2)
  }
}
