import Testing
import TestSupport

@testable import Transport

/// Requests of a node itself on the connection of one loop.
@Suite struct LoopStreamTests {
  /// What a stream received, and how often it ended.
  private final class Seen: Sendable {
    let bytes = Observed<[UInt8]>([])
    let ends = Observed(0)

    func open(_ path: String, _ relay: Relay, _ streams: LoopParts<LoopStream>, on loop: EventLoop) -> LoopStream? {
      streams[loop] = relay.open(
        path, on: loop, receive: { [bytes] received in bytes.update { $0 += received } },
        end: { [ends] in ends.update { $0 += 1 } })
      return streams[loop]
    }
  }

  private let streams = LoopParts<LoopStream>()
  private let loop: EventLoop

  init() throws {
    loop = try EventLoop(name: "hearth.test")
    try loop.start()
  }

  @Test func bytesComeAndGoUntilAnotherNodeIsThePeer() throws {
    defer { loop.stopAndJoin() }
    let pair = try RelayPair(handler: RelayHandler())
    let seen = Seen()
    loop.execute { [loop, streams] in
      seen.open("/echo-stream", pair.relay, streams, on: loop)?.send(Array("one".utf8))
    }
    #expect(seen.bytes.wait { $0.elementsEqual("one".utf8) })
    streams.later { $0.send(Array(" two".utf8)) }
    #expect(seen.bytes.wait { $0.elementsEqual("one two".utf8) })
    #expect(seen.ends.value == 0)
    pair.setTarget(.none)
    #expect(seen.ends.wait { $0 == 1 })
    // Without a peer, none begins.
    let isNone = Observed<Bool?>(nil)
    loop.execute { [loop, streams] in
      isNone.value = seen.open("/echo-stream", pair.relay, streams, on: loop) == nil
    }
    #expect(isNone.wait { $0 != nil } && isNone.value == true)
  }

  /// A node that does not know the path refuses it, and one that dies says nothing.
  @Test(arguments: [true, false]) func anEndIsReportedOnce(isRefused: Bool) throws {
    defer { loop.stopAndJoin() }
    let pair = try RelayPair(handler: RelayHandler())
    let seen = Seen()
    loop.execute { [loop, streams] in
      _ = seen.open(isRefused ? "/forbidden" : "/echo-stream", pair.relay, streams, on: loop)
      streams[loop]?.send(Array("one".utf8))
    }
    if !isRefused {
      #expect(seen.bytes.wait { $0.count == 3 })
      pair.killOwner()
    }
    #expect(seen.ends.wait { $0 == 1 })
    let isClosed = Observed(false)
    streams.later { stream in
      stream.close()
      isClosed.value = true
    }
    #expect(isClosed.wait { $0 } && seen.ends.value == 1)
    #expect(seen.bytes.value.count == (isRefused ? 0 : 3))
  }
}
