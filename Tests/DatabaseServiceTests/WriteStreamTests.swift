import Callers
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// The Write stream without a connection: order, failures, limits.
@Suite struct WriteStreamTests {
  private let fixture: ServiceFixture

  init() throws { fixture = try ServiceFixture() }

  /// A stream, and the wakes that announce responses.
  private final class Client {
    let wakes = DispatchSemaphore(value: 0)
    let stream: WriteStream

    init(_ fixture: ServiceFixture, as caller: Caller = ServiceFixture.admin) throws {
      let wakes = wakes
      stream = try WriteStream(fixture.service, in: fixture.id, as: caller) { wakes.signal() }
    }

    func send(_ writes: Write...) throws {
      var request = WriteStreamRequest()
      request.writes = writes
      try stream.receive(request)
    }

    /// Waits for the next response and returns it.
    func next() throws -> WriteStreamResponse {
      while true {
        if let response = try stream.next() { return response }
        try #require(wakes.wait(timeout: .now() + 30) == .success, "the stream was not woken")
      }
    }

    /// Reads to the end of the stream. Returns the responses and the status that ended it.
    func end() throws -> (responses: [WriteStreamResponse], Status?) {
      var responses: [WriteStreamResponse] = []
      do {
        while true { responses.append(try next()) }
      } catch let status as Status {
        return (responses, status)
      }
    }
  }

  private static let missing = Write.set("c/missing", if: .exists(true))

  @Test func batchesAreAppliedInOrderAfterTheHandshake() throws {
    let client = try Client(fixture)
    #expect(client.stream.isIdle && client.stream.hasRoom)
    try client.send()
    let handshake = try client.next()
    #expect(!handshake.streamID.isEmpty && !handshake.streamToken.isEmpty)
    #expect(handshake.results.isEmpty && handshake.commitTime == nil)
    var last = try fixture.commit().version.microseconds
    for round in 0..<10 { try client.send(.set("c/x\(round)", ("a", 1)), .set("c/y\(round)", ("a", 1))) }
    for _ in 0..<10 {
      let response = try client.next()
      #expect(response.streamID.isEmpty && response.results.count == 2)
      let time = try #require(response.commitTime)
      #expect(response.results.allSatisfy { $0.updateTime == time } && time.microseconds > last)
      last = time.microseconds
    }
    #expect(client.stream.isIdle)
  }

  @Test func theFirstRequestMayNotHaveWrites() throws {
    let client = try Client(fixture)
    #expect(throws: Status.self) { try client.send(.set("c/x", ("a", 1))) }
    #expect(try client.stream.next() == nil && client.stream.isIdle)
    #expect(try fixture.paths(of: Query(collectionID: "c")).isEmpty)
  }

  /// A stream applies one batch for each response that was read, and one more.
  @Test func batchesWaitForTheClient() throws {
    let client = try Client(fixture)
    try client.send()
    _ = try client.next()
    for round in 0..<5 { try client.send(.set("c/x\(round)", ("a", 1))) }
    for round in 0..<5 {
      // The batch in progress is durable once it woke the stream.
      try #require(client.wakes.wait(timeout: .now() + 30) == .success)
      if round == 0 { try #require(client.wakes.wait(timeout: .now() + 30) == .success) }
      #expect(try fixture.paths(of: Query(collectionID: "c")).count == round + 1)
      #expect(try client.stream.next() != nil)
    }
  }

  @Test func tooManyWaitingBatchesEndTheStream() throws {
    let client = try Client(fixture)
    try client.send()
    for _ in 1..<WriteStream.waitingBatchesMax { try client.send(.set("c/x", ("a", 1))) }
    #expect(!client.stream.hasRoom)
    do {
      try client.send(.set("c/x", ("a", 1)))
      Issue.record("the batch was accepted")
    } catch let status as Status {
      // With this code, clients send their batches again.
      #expect(status.code == .resourceExhausted)
    }
    #expect(try client.stream.next() == nil)
    let large = try Client(fixture)
    try large.send()
    let text = String(repeating: "x", count: 1 << 20 - 1000)
    for round in 0..<WriteStream.waitingBytesMax / text.utf8.count + 1 {
      #expect(large.stream.hasRoom)
      try large.send(.set("c/large\(round)", ("s", .string(text))))
    }
    #expect(!large.stream.hasRoom)
    // Reading responses frees room.
    while !large.stream.hasRoom { _ = try large.next() }
  }

  @Test func aStoppedStreamFinishesTheBatchInProgress() throws {
    let reason = Status(.unavailable, "bye")
    let client = try Client(fixture)
    try client.send()
    _ = try client.next()
    for _ in 0..<3 { try client.send(.set("c/x", ("a", 1))) }
    client.stream.stop(reason)
    #expect(!client.stream.isIdle)
    let (responses, status) = try client.end()
    #expect(responses.count == 1 && status == reason && client.stream.isIdle)
    let idle = try Client(fixture)
    idle.stream.stop(reason)
    #expect(try idle.end().1 == reason)
  }

  @Test func anEndedStreamAppliesNothingMore() throws {
    let client = try Client(fixture)
    try client.send()
    try client.send(.set("c/never", ("a", 1)))
    client.stream.end()
    #expect(try client.stream.next() == nil)
    try fixture.commit()
    #expect(try fixture.paths(of: Query(collectionID: "c")).isEmpty)
  }

  @Test func nothingIsAppliedWithAnExpiredToken() throws {
    let expiry = fixture.time.now + 10_000_000
    let client = try Client(fixture, as: ServiceFixture.ann(expiry: expiry))
    try client.send()
    try client.send(.set("c/x", ("a", 1)))
    _ = try client.next()
    _ = try client.next()
    fixture.time.advance(seconds: 11)
    try client.send(.set("c/y", ("a", 1)))
    // SDKs open another stream with a fresh token and send the batch again.
    #expect(try client.end().1?.code == .unauthenticated)
    #expect(try fixture.paths(of: Query(collectionID: "c")) == ["c/x"])
  }

  @Test func nothingIsAppliedWithARevokedToken() throws {
    let token = RevocableToken()
    let client = try Client(fixture, as: ServiceFixture.ann(token: token))
    try client.send()
    try client.send(.set("c/x", ("a", 1)))
    _ = try client.next()
    _ = try client.next()
    token.reason.value = "the token is revoked"
    try client.send(.set("c/y", ("a", 1)))
    #expect(try client.end().1?.code == .unauthenticated)
    #expect(try fixture.paths(of: Query(collectionID: "c")) == ["c/x"])
  }

  /// Clients repeat batches without a response, as the SDKs do, over streams that fail or are lost. Batches with a
  /// response are applied once and in order, and batches after a failure are not applied.
  @Test(arguments: TestSeeds.of("HEARTH_SIMULATION_SEED", otherwise: [1, 7, 42]))
  func everyBatchIsAppliedOnce(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    var queue = (0..<200).map { (number: $0, fails: Int.random(in: 0..<8, using: &random) == 0) }[...]
    var expected: [String] = []
    while !queue.isEmpty {
      let client = try Client(fixture)
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
          let response = try client.next()
          #expect(!fails && response.results.count == 1, "seed \(seed), batch \(number)")
          expected.append("c/b\(1000 + number)")
          queue.removeFirst()
        }
      } catch let status as Status {
        #expect(status.code == .notFound && queue.first?.fails == true, "seed \(seed): \(status)")
        // The SDK rejects the first batch without a response and continues with the rest.
        queue.removeFirst()
      }
      client.stream.end()
    }
    let rows = try fixture.paths(of: Query(collectionID: "c"))
    #expect(rows == expected, "seed \(seed)")
    let times = try rows.map { try fixture.get($0).updateTime }
    #expect(times == times.sorted(), "seed \(seed)")
  }

  @Test func aRevokedTokenEndsAnIdleStream() throws {
    let token = RevocableToken()
    let client = try Client(fixture, as: ServiceFixture.ann(token: token))
    try client.send()
    _ = try client.next()
    #expect(try client.stream.next() == nil)
    while client.wakes.wait(timeout: .now()) == .success {}
    token.reason.update { $0 = "the token's user is disabled" }
    fixture.service.recheckStreams(of: ["ben"])
    #expect(client.wakes.wait(timeout: .now()) == .timedOut)
    fixture.service.recheckStreams(of: ["ann"])
    #expect(client.wakes.wait(timeout: .now()) == .success)
    #expect(fixture.failure { _ = try client.stream.next() }?.code == .unauthenticated)
    #expect(try client.stream.next() == nil && client.stream.isIdle)
  }
}
