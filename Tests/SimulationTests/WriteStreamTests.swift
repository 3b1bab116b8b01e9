import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import RulesEngine
import TestSupport
import Testing

/// The stream Write without a connection: order, failures, bounds.
@Suite struct WriteStreamTests {
  private let simulated: SimulatedService

  init() throws { simulated = try SimulatedService() }

  /// A stream, and the calls that say there is something to pull.
  private final class Client {
    let wakes = DispatchSemaphore(value: 0)
    let stream: WriteStream

    init(_ simulated: SimulatedService, as caller: Caller = .admin) throws {
      let wakes = wakes
      stream = try WriteStream(simulated.service, in: simulated.id, as: caller) { wakes.signal() }
    }

    func send(_ writes: Write...) throws {
      var request = WriteStreamRequest()
      request.writes = writes
      try stream.receive(request)
    }

    /// The next answer, waited for.
    func next() throws -> WriteStreamResponse {
      while true {
        if let answer = try stream.next() { return answer }
        try #require(wakes.wait(timeout: .now() + 30) == .success, "nobody woke the stream")
      }
    }

    /// What ends the stream, and the answers before it.
    func end() throws -> (answers: [WriteStreamResponse], Status?) {
      var answers: [WriteStreamResponse] = []
      do {
        while true { answers.append(try next()) }
      } catch let status as Status {
        return (answers, status)
      }
    }
  }

  private static let missing = Write.set("c/missing", if: .exists(true))

  @Test func handshakeAndOrder() throws {
    let client = try Client(simulated)
    #expect(client.stream.isIdle && client.stream.hasRoom)
    try client.send()
    let handshake = try client.next()
    #expect(!handshake.streamID.isEmpty && !handshake.streamToken.isEmpty)
    #expect(handshake.results.isEmpty && handshake.commitTime == nil)
    var last = try simulated.lastVersion()
    for round in 0..<10 { try client.send(.set("c/x\(round)", ("a", 1)), .set("c/y\(round)", ("a", 1))) }
    for _ in 0..<10 {
      let answer = try client.next()
      #expect(answer.streamID.isEmpty && answer.results.count == 2)
      let time = try #require(answer.commitTime)
      #expect(answer.results.allSatisfy { $0.updateTime == time } && time.microseconds > last)
      last = time.microseconds
    }
    #expect(client.stream.isIdle)
  }

  @Test func theFirstRequestHasNoWrites() throws {
    let client = try Client(simulated)
    #expect(throws: Status.self) { try client.send(.set("c/x", ("a", 1))) }
    #expect(try client.stream.next() == nil && client.stream.isIdle)
    #expect(try simulated.results(of: Query(collectionID: "c"), .latest).isEmpty)
  }

  /// A stream has a batch applied for each answer that was taken, and one more.
  @Test func batchesWaitForTheClient() throws {
    let client = try Client(simulated)
    try client.send()
    _ = try client.next()
    for round in 0..<5 { try client.send(.set("c/x\(round)", ("a", 1))) }
    for round in 0..<5 {
      // The one under way is durable once it woke the stream.
      try #require(client.wakes.wait(timeout: .now() + 30) == .success)
      if round == 0 { try #require(client.wakes.wait(timeout: .now() + 30) == .success) }
      #expect(try simulated.results(of: Query(collectionID: "c"), .latest).count == round + 1)
      #expect(try client.stream.next() != nil)
    }
  }

  @Test func whatHasNoRoomEndsTheStream() throws {
    let client = try Client(simulated)
    try client.send()
    for _ in 1..<WriteStream.waitingBatchesMax { try client.send(.set("c/x", ("a", 1))) }
    #expect(!client.stream.hasRoom)
    do {
      try client.send(.set("c/x", ("a", 1)))
      Issue.record("there was room")
    } catch let status as Status {
      // A code that has clients send their batches again.
      #expect(status.code == .resourceExhausted)
    }
    #expect(try client.stream.next() == nil)
    let large = try Client(simulated)
    try large.send()
    let text = String(repeating: "x", count: 1 << 20 - 1000)
    for round in 0..<WriteStream.waitingBytesMax / text.utf8.count + 1 {
      #expect(large.stream.hasRoom)
      try large.send(.set("c/large\(round)", ("s", .string(text))))
    }
    #expect(!large.stream.hasRoom)
    // Room comes with answers.
    while !large.stream.hasRoom { _ = try large.next() }
  }

  @Test func aStreamThatStopsAnswersWhatWasBegun() throws {
    let reason = Status(.unavailable, "bye")
    let client = try Client(simulated)
    try client.send()
    _ = try client.next()
    for _ in 0..<3 { try client.send(.set("c/x", ("a", 1))) }
    client.stream.stop(reason)
    #expect(!client.stream.isIdle)
    let (answers, status) = try client.end()
    #expect(answers.count == 1 && status == reason && client.stream.isIdle)
    let idle = try Client(simulated)
    idle.stream.stop(reason)
    #expect(try idle.end().1 == reason)
  }

  @Test func aStreamThatEndsAppliesNothingMore() throws {
    let client = try Client(simulated)
    try client.send()
    try client.send(.set("c/never", ("a", 1)))
    client.stream.end()
    #expect(try client.stream.next() == nil)
    try simulated.commit([])
    #expect(try simulated.results(of: Query(collectionID: "c"), .latest).isEmpty)
  }

  @Test func nothingIsAppliedWithATokenThatIsOver() throws {
    let expiry = simulated.time.now + 10_000_000
    let client = try Client(simulated, as: .user(RulesAuth(uid: "ann", claims: MapValue([]), expiry: expiry)))
    try client.send()
    try client.send(.set("c/x", ("a", 1)))
    _ = try client.next()
    _ = try client.next()
    simulated.time.advance(seconds: 11)
    try client.send(.set("c/y", ("a", 1)))
    // SDKs open another stream with a fresh token, and send the batch again.
    #expect(try client.end().1?.code == .unauthenticated)
    #expect(try simulated.results(of: Query(collectionID: "c"), .latest).map(\.path.text) == ["c/x"])
  }

  @Test func nothingIsAppliedWithATokenThatIsEndedEarly() throws {
    let revocationCheck = SteppedRevocationCheck()
    let client = try Client(simulated, as: .user(RulesAuth(uid: "ann", claims: MapValue([]), revocationCheck: revocationCheck)))
    try client.send()
    try client.send(.set("c/x", ("a", 1)))
    _ = try client.next()
    _ = try client.next()
    revocationCheck.object("the token is revoked")
    try client.send(.set("c/y", ("a", 1)))
    #expect(try client.end().1?.code == .unauthenticated)
    #expect(try simulated.results(of: Query(collectionID: "c"), .latest).map(\.path.text) == ["c/x"])
  }

  /// Clients that send again what was not answered, as the SDKs do, over streams that fail and streams that are lost:
  /// what was answered is applied once, in order, and what came behind a failure not at all.
  @Test(arguments: TestSeeds.of("SIMULATION_SEED", otherwise: [1, 7, 42])) func everyBatchOnce(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    var queue = (0..<200).map { (number: $0, fails: Int.random(in: 0..<8, using: &random) == 0) }[...]
    var expected: [String] = []
    while !queue.isEmpty {
      let client = try Client(simulated)
      try client.send()
      _ = try client.next()
      let sent = queue.prefix(Int.random(in: 1...20, using: &random))
      for (number, fails) in sent {
        // A second application would fail.
        let write = Write.set("c/b\(1000 + number)", if: .exists(false))
        if fails { try client.send(write, Self.missing) } else { try client.send(write) }
      }
      do {
        for (number, fails) in sent {
          let answer = try client.next()
          #expect(!fails && answer.results.count == 1, "seed \(seed), batch \(number)")
          expected.append("c/b\(1000 + number)")
          queue.removeFirst()
        }
      } catch let status as Status {
        #expect(status.code == .notFound && queue.first?.fails == true, "seed \(seed): \(status)")
        // The SDK rejects the first batch that was not answered, and goes on with the rest.
        queue.removeFirst()
      }
      client.stream.end()
    }
    let rows = try simulated.results(of: Query(collectionID: "c"), .latest)
    #expect(rows.map(\.path.text) == expected, "seed \(seed)")
    #expect(rows.map(\.update) == rows.map(\.update).sorted(), "seed \(seed)")
  }
}
