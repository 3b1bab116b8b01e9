import DocumentStore
import Foundation
import LogEngine
import Replication
import Synchronization
import Testing
import TestSupport
import Transport

@testable import HearthServer

/// Requests that wait until a node is as new as the owner of its cluster.
@Suite struct WaitingReadsTests {
  /// Keeps the questions until the test answers them.
  private final class Gate: ReadGate {
    let questions = Observed<[@Sendable (Bool) -> Void]>([])
    /// The indexes that the replica is to show.
    let awaited = Observed<[(index: ReadIndex, done: @Sendable (Bool) -> Void)]>([])

    func whenNewest(_ done: @escaping @Sendable (Bool) -> Void) { questions.update { $0.append(done) } }

    func shows(_ index: ReadIndex) -> Bool { index.position.sequence <= 10 }

    func whenShowing(_ index: ReadIndex, _ done: @escaping @Sendable (Bool) -> Void) {
      awaited.update { $0.append((index, done)) }
    }
  }

  /// Asks nobody: the test answers.
  private final class Owner: IndexSource {
    let questions: Observed<Int>
    private var asked: [(ReadIndex?) -> Void] = []
    init(_ questions: Observed<Int>) { self.questions = questions }

    func ask(_ done: @escaping (ReadIndex?) -> Void) -> Bool {
      asked.append(done)
      questions.update { $0 += 1 }
      return true
    }

    func answer(_ sequence: UInt64?) {
      let done = asked.removeFirst()
      done(sequence.map { ReadIndex(LogPosition(sequence: $0, epoch: 1), configuration: 1) })
    }
  }

  /// Responds with a text.
  private final class Texts: RequestHandler {
    let text: String
    init(_ text: String) { self.text = text }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      exchange.respond(status: 200, headers: { _ in }, body: { [text] in $0 += Array(text.utf8) })
    }
  }

  /// Lets each request wait. The first one holds up the loop until the test says so.
  private final class Waiting: RequestHandler {
    let gate = Gate()
    let isHeldUp = Observed(false)
    let mayContinue = Observed(false)
    let arrived = Observed(0)
    let questions = Observed(0)
    let owners = LoopParts<Owner>()
    private let hasLine: Bool
    private let parts = LoopParts<WaitingReads>()
    private let replica = Texts("replica")
    private let owner = Texts("owner")

    init(hasLine: Bool) { self.hasLine = hasLine }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      guard let held = HeldRequest(request, exchange) else { return }
      let reads = parts[exchange.loop] ?? makeReads(on: exchange.loop)
      parts[exchange.loop] = reads
      reads.append(held)
      arrived.update { $0 += 1 }
      guard !isHeldUp.value else { return }
      isHeldUp.update { $0 = true }
      _ = mayContinue.wait { $0 }
    }

    private func makeReads(on loop: EventLoop) -> WaitingReads {
      let line = hasLine ? Owner(questions) : nil
      owners[loop] = line
      return WaitingReads(gate, line, on: loop) { [replica, owner] in $0 ? replica : owner }
    }
  }

  /// A server with one loop, whose first request has a question of its own, and five more that have arrived since then.
  private final class World {
    let handler: Waiting
    let first: StreamedResponse
    var others: [StreamedResponse] = []
    private let server: HTTPServer
    private let port: UInt16
    private static let request = Array("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8)

    init(hasLine: Bool) throws {
      var configuration = TransportConfiguration()
      (configuration.host, configuration.port, configuration.loops) = ("127.0.0.1", 0, 1)
      handler = Waiting(hasLine: hasLine)
      server = try HTTPServer(configuration: configuration, handler: handler)
      port = UInt16(try server.start().port)
      first = try StreamedResponse(port: port, request: Self.request)
      #expect(handler.isHeldUp.wait { $0 })
      others = try (0..<5).map { _ in try StreamedResponse(port: port, request: Self.request) }
      handler.mayContinue.update { $0 = true }
      #expect(handler.arrived.wait { $0 == 6 })
    }

    deinit { server.stop(graceSeconds: 0) }

    func answer(_ sequence: UInt64?) { handler.owners.later { $0.answer(sequence) } }

    func expect(_ text: String, from responses: [StreamedResponse]) throws {
      for response in responses {
        try response.readToEnd()
        #expect(response.status == 200 && String(decoding: response.body, as: UTF8.self) == text)
      }
    }
  }

  @Test(arguments: [(true, "replica"), (false, "owner")])
  func withoutALineTheGateDecides(isNewest: Bool, text: String) async throws {
    try await onDedicatedThread {
      let world = try World(hasLine: false)
      let questions = world.handler.gate.questions
      #expect(questions.wait { $0.count == 1 })
      questions.value[0](isNewest)
      try world.expect(text, from: [world.first])
      #expect(questions.wait { $0.count == 2 })
      questions.value[1](isNewest)
      try world.expect(text, from: world.others)
      #expect(questions.value.count == 2)
    }
  }

  /// Requests that arrive while a question is under way may not use its answer, and share the next one.
  @Test func theRequestsOfALoopShareQuestions() async throws {
    try await onDedicatedThread {
      let world = try World(hasLine: true)
      #expect(world.handler.questions.wait { $0 == 1 })
      world.answer(5)
      try world.expect("replica", from: [world.first])
      #expect(world.handler.questions.wait { $0 == 2 })
      #expect(world.others.allSatisfy { !$0.isComplete })
      world.answer(10)
      try world.expect("replica", from: world.others)
      #expect(world.handler.questions.value == 2 && world.handler.gate.questions.value.isEmpty)
    }
  }

  @Test func requestsWaitForTheEntriesBeforeAnAnswer() async throws {
    try await onDedicatedThread {
      let world = try World(hasLine: true)
      let awaited = world.handler.gate.awaited
      #expect(world.handler.questions.wait { $0 == 1 })
      world.answer(11)
      #expect(awaited.wait { $0.count == 1 })
      // The next question waits for the requests of this one.
      #expect(world.handler.questions.value == 1)
      awaited.value[0].done(true)
      try world.expect("replica", from: [world.first])
      #expect(world.handler.questions.wait { $0 == 2 })
      world.answer(12)
      #expect(awaited.wait { $0.count == 2 })
      awaited.value[1].done(false)
      try world.expect("owner", from: world.others)
    }
  }

  @Test func withoutAnAnswerTheGateDecides() async throws {
    try await onDedicatedThread {
      let world = try World(hasLine: true)
      let questions = world.handler.gate.questions
      #expect(world.handler.questions.wait { $0 == 1 })
      world.answer(nil)
      #expect(questions.wait { $0.count == 1 })
      questions.value[0](true)
      try world.expect("replica", from: [world.first])
      #expect(world.handler.questions.wait { $0 == 2 })
      world.answer(1)
      try world.expect("replica", from: world.others)
    }
  }
}
