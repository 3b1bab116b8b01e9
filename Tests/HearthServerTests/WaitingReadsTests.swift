import DocumentStore
import Foundation
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

    func whenNewest(_ done: @escaping @Sendable (Bool) -> Void) { questions.update { $0.append(done) } }

    func shows(_ index: ReadIndex) -> Bool { false }

    func whenShowing(_ index: ReadIndex, _ done: @escaping @Sendable (Bool) -> Void) { done(false) }
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
    private let parts = LoopParts<WaitingReads>()
    private let replica = Texts("replica")
    private let owner = Texts("owner")

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      guard let held = HeldRequest(request, exchange) else { return }
      let reads = parts[exchange.loop] ?? makeReads(on: exchange.loop)
      parts[exchange.loop] = reads
      reads.append(held)
      guard !isHeldUp.value else { return }
      isHeldUp.update { $0 = true }
      _ = mayContinue.wait { $0 }
    }

    private func makeReads(on loop: EventLoop) -> WaitingReads {
      WaitingReads(gate, nil, on: loop) { [replica, owner] in $0 ? replica : owner }
    }
  }

  @Test(arguments: [(true, "replica"), (false, "owner")])
  func theRequestsOfOneTurnShareAQuestion(isNewest: Bool, text: String) async throws {
    try await onDedicatedThread {
      var configuration = TransportConfiguration()
      (configuration.host, configuration.port, configuration.loops) = ("127.0.0.1", 0, 1)
      let handler = Waiting()
      let server = try HTTPServer(configuration: configuration, handler: handler)
      let port = UInt16(try server.start().port)
      defer { server.stop(graceSeconds: 0) }
      let request = Array("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8)
      let first = try StreamedResponse(port: port, request: request)
      #expect(handler.isHeldUp.wait { $0 })
      // They arrive while the loop is held up, so they are read in one turn.
      let others = try (0..<5).map { _ in try StreamedResponse(port: port, request: request) }
      handler.mayContinue.update { $0 = true }
      #expect(handler.gate.questions.wait { $0.count == 2 })
      for answer in handler.gate.questions.value { answer(isNewest) }
      for response in [first] + others {
        try response.readToEnd()
        #expect(response.status == 200 && String(decoding: response.body, as: UTF8.self) == text)
      }
      #expect(handler.gate.questions.value.count == 2)
    }
  }
}
