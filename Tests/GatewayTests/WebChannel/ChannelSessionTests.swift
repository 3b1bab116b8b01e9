import Testing

@testable import FirestoreAPI
@testable import GatewayCore

/// The state machine of a channel, with a simulated clock.
@Suite struct ChannelSessionTests {
  /// A session and its client's view of it.
  private final class Harness {
    var session = ChannelSession(at: 0)
    var now = 0

    func say(_ messages: String...) {
      for message in messages { Array(message.utf8).withUnsafeBytes { session.append($0) } }
    }

    /// The next chunk without its length, which is checked. ` .` marks the last chunk of a response.
    func chunk() -> String? {
      var out: [UInt8] = []
      let outcome = session.takeChunk(at: now, to: &out)
      guard outcome != .none else { return nil }
      let parts = out.split(separator: 0x0A, maxSplits: 1)
      guard parts.count == 2, Int(String(decoding: parts[0], as: UTF8.self)) == parts[1].count else {
        return "bad length"
      }
      return String(decoding: parts[1], as: UTF8.self) + (outcome == .last ? " ." : "")
    }

    func attach(_ kind: ChannelSession.BackChannel, _ number: Int) throws {
      try session.attach(kind, above: number, at: now)
    }

    var receipt: String { String(decoding: session.receipt, as: UTF8.self) }

    /// Advances to the next deadline. Returns the outcome of the tick, and the time.
    func tick() -> (ChannelSession.Tick, at: Int) {
      now = session.deadline
      return (session.tick(at: now), now)
    }
  }

  @Test func streamSendsAChunkAtOnce() throws {
    let harness = Harness()
    #expect(harness.receipt == "[0,0,0]" && harness.chunk() == nil && !harness.session.wantsMessage)
    try harness.attach(.streaming, 0)
    #expect(harness.session.wantsMessage)
    #expect(harness.chunk() == #"[[1,["noop"]]]"#)
    #expect(harness.chunk() == nil)
    harness.say("{}", "{}")
    #expect(harness.chunk() == "[[2,[{}]],[3,[{}]]]")
    #expect(harness.receipt == "[1,3,31]")
    try harness.session.acknowledge(2)
    #expect(harness.receipt == "[1,3,9]")
    try harness.session.acknowledge(3)
    #expect(harness.receipt == "[1,3,0]")
    // If a message waits, no keep-alive is needed.
    try harness.attach(.streaming, 3)
    harness.say("{}")
    #expect(harness.chunk() == "[[4,[{}]]]" && harness.chunk() == nil)
  }

  @Test func arraysOfABrokenResponseAreSentAgain() throws {
    let harness = Harness()
    try harness.attach(.streaming, 0)
    harness.say("1", "2", "3")
    #expect(harness.chunk() == "[[1,[1]],[2,[2]],[3,[3]]]")
    harness.session.detach(at: harness.now)
    #expect(harness.receipt.hasPrefix("[0,3,"))
    try harness.attach(.streaming, 1)
    #expect(harness.chunk() == "[[2,[2]],[3,[3]]]")
    // A new response replaces the old one, and begins at the position of its client.
    harness.say("4")
    try harness.attach(.polling(milliseconds: 5000), 2)
    #expect(harness.chunk() == "[[3,[3]],[4,[4]]] .")
    // A number that was already acknowledged, in a request that another one overtook.
    try harness.session.acknowledge(4)
    try harness.attach(.streaming, 2)
    harness.say("5")
    #expect(harness.chunk() == "[[5,[5]]]")
  }

  @Test func acknowledgementAdvancesAResponse() throws {
    let harness = Harness()
    try harness.attach(.streaming, 0)
    harness.say("1", "2", "3")
    _ = harness.chunk()
    try harness.attach(.streaming, 0)
    try harness.session.acknowledge(2)
    #expect(harness.chunk() == "[[3,[3]]]")
  }

  @Test func acknowledgingAnUnsentArrayFails() throws {
    let harness = Harness()
    harness.say("1")
    #expect(throws: ChannelFault.self) { try harness.session.acknowledge(2) }
    #expect(throws: ChannelFault.self) { try harness.attach(.streaming, 2) }
    #expect(!harness.session.isAttached)
    try harness.attach(.streaming, -1)
    #expect(harness.chunk() == "[[1,[1]]]")
  }

  @Test func pollReturnsOneChunkThatIsNotEmpty() throws {
    let harness = Harness()
    try harness.attach(.polling(milliseconds: 5000), 0)
    #expect(harness.chunk() == nil)
    harness.say("1", "2")
    #expect(harness.chunk() == "[[1,[1]],[2,[2]]] .")
    #expect(!harness.session.isAttached && !harness.session.wantsMessage)
    harness.now = 100
    try harness.attach(.polling(milliseconds: 5000), 2)
    #expect(harness.tick() == (.due, at: 5100))
    #expect(harness.chunk() == #"[[3,["noop"]]] ."#)
  }

  @Test func silentStreamIsKeptAliveAndEndsPeriodically() throws {
    let harness = Harness()
    try harness.attach(.streaming, 0)
    #expect(harness.chunk() == #"[[1,["noop"]]]"#)
    #expect(harness.tick() == (.due, at: 25_000))
    #expect(harness.chunk() == #"[[2,["noop"]]]"#)
    harness.now = 30_000
    harness.say("3")
    #expect(harness.chunk() == "[[3,[3]]]")
    // The time of silence begins with the last chunk.
    #expect(harness.session.tick(at: 50_000) == .none)
    #expect(harness.tick() == (.due, at: 55_000))
    #expect(harness.chunk() == #"[[4,["noop"]]]"#)
    #expect(harness.tick() == (.due, at: 80_000))
    #expect(harness.chunk() == #"[[5,["noop"]]] ."#)
  }

  @Test func clientThatDoesNotReadGetsNoFurtherChunks() throws {
    let harness = Harness()
    try harness.attach(.streaming, 0)
    harness.say("1")
    // The client has not read the first chunk yet.
    for _ in 0..<10 { #expect(harness.tick().0 == .due) }
    #expect(harness.chunk() == "[[1,[1]]] .")
  }

  @Test func unacknowledgedArraysAreLimited() throws {
    let harness = Harness()
    let message = "\"" + String(repeating: "x", count: 10_000) + "\""
    var held: [Int] = []
    for _ in 0..<3 {
      // This client acknowledges nothing, however often it connects.
      try harness.attach(.streaming, 0)
      var bytes = 0
      while bytes < ChannelSession.responseBytesMax {
        while harness.session.wantsMessage { harness.say(message) }
        let chunk = harness.chunk() ?? ""
        #expect(chunk.utf8.count <= ChannelSession.chunkBytes)
        bytes += chunk.utf8.count
        #expect(
          chunk.hasSuffix(" .") == (bytes >= ChannelSession.responseBytesMax)
            || bytes + 100 > ChannelSession.responseBytesMax)
      }
      #expect(!harness.session.isAttached)
      held.append(harness.session.heldBytes)
    }
    #expect(held[1] == held[0] && held[2] == held[0])
    #expect(held[0] < ChannelSession.responseBytesMax + 2 * ChannelSession.chunkBytes)
    // The client that acknowledges continues.
    try harness.attach(.streaming, harness.session.lastArray)
    #expect(harness.session.heldBytes == 0 && harness.session.wantsMessage)
  }

  @Test func idleSessionExpires() throws {
    var harness = Harness()
    #expect(harness.tick() == (.expired, at: 120_000))
    // A request restarts the time until expiry.
    harness = Harness()
    try harness.session.receive([], at: 50_000)
    #expect(harness.tick() == (.expired, at: 170_000))
    harness = Harness()
    try harness.attach(.streaming, 0)
    harness.say("1")
    _ = harness.chunk()
    harness.session.detach(at: 10_000)
    #expect(harness.tick() == (.expired, at: 130_000))
  }

  @Test(arguments: [
    (ChannelSession.Ending.failure(Array(#"{"error":{}}"#.utf8)), #"[[2,[{"error":{}}]]] ."#),
    (.closed, #"[[2,["close"]]] ."#), (.stopped, #"[[2,["stop"]]] ."#),
  ])
  func nothingFollowsTheEnd(_ ending: ChannelSession.Ending, _ expected: String) throws {
    let harness = Harness()
    try harness.attach(.streaming, 0)
    harness.say("1")
    #expect(harness.chunk() == "[[1,[1]]]")
    try harness.session.receive([ChannelForm.Map(number: 0, text: [1]), ChannelForm.Map(number: 1, text: [2])], at: 0)
    #expect(harness.session.nextMap() == [1])
    harness.session.end(ending)
    harness.session.end(.closed)
    #expect(harness.session.nextMap() == nil && !harness.session.wantsMessage)
    #expect(harness.chunk() == expected)
    // The end may have been lost, so it is repeated until the client acknowledges it.
    try harness.attach(.polling(milliseconds: 5000), 1)
    #expect(harness.chunk() == expected)
    try harness.session.receive([ChannelForm.Map(number: 2, text: [3])], at: 0)
    #expect(harness.session.nextMap() == nil && harness.receipt == "[0,2,\(expected.utf8.count - 4 + 1)]")
    #expect(throws: ChannelFault.unknownSession) { try harness.attach(.streaming, 2) }
  }
}
