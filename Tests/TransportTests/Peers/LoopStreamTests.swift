import Testing
import TestSupport

@testable import Transport

/// Requests of a node itself on the connection of one loop.
@Suite struct LoopStreamTests {
  /// The bytes that a stream received, and the number of its ends.
  private final class Seen: Sendable {
    let bytes = Observed<[UInt8]>([])
    let ends = Observed(0)
  }

  private let streams = LoopParts<LoopStream>()
  private let loop: EventLoop

  init() throws {
    loop = try EventLoop(name: "hearth.test")
    try loop.start()
  }

  /// Tries once to open a stream. Returns whether there was a connection for it.
  private func open(_ path: String, _ relay: Relay, _ seen: Seen) -> Bool {
    let isOpened = Observed<Bool?>(nil)
    loop.execute { [loop, streams] in
      streams[loop] = relay.open(
        path, on: loop, receive: { received in seen.bytes.update { $0 += received } },
        end: { seen.ends.update { $0 += 1 } })
      isOpened.value = streams[loop] != nil
    }
    return isOpened.wait { $0 != nil } && isOpened.value == true
  }

  /// The first try begins to connect.
  @Test func bytesComeAndGoUntilAnotherNodeIsThePeer() throws {
    defer { loop.stopAndJoin() }
    let pair = try RelayPair(handler: RelayHandler())
    let seen = Seen()
    #expect(!open("/echo-stream", pair.relay, seen))
    try #require(OtherProcess.eventually { open("/echo-stream", pair.relay, seen) })
    streams.later { $0.send(Array("one".utf8)) }
    #expect(seen.bytes.wait { $0.elementsEqual("one".utf8) })
    streams.later { $0.send(Array(" two".utf8)) }
    #expect(seen.bytes.wait { $0.elementsEqual("one two".utf8) })
    #expect(seen.ends.value == 0)
    pair.setTarget(.none)
    #expect(seen.ends.wait { $0 == 1 })
    #expect(!open("/echo-stream", pair.relay, seen))
  }

  /// A node that does not know the path refuses it, and one that dies says nothing.
  @Test(arguments: [true, false]) func anEndIsReportedOnce(isRefused: Bool) throws {
    defer { loop.stopAndJoin() }
    let pair = try RelayPair(handler: RelayHandler())
    let seen = Seen()
    let path = isRefused ? "/forbidden" : "/echo-stream"
    try #require(OtherProcess.eventually { open(path, pair.relay, seen) })
    streams.later { $0.send(Array("one".utf8)) }
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
