import Dispatch
import GatewayCore
import KeyValue
import LogEngine
import Replication
import Synchronization
import Transport

/// Answers `hearth cluster check` how far the log is at this node, and about the content of its replica: `POST /digest`, and
/// `POST /digest?at=SEQUENCE`. The response has lines of ``DigestMessage``.
///
/// Any node answers. One digest at a time is computed, on a thread of its own.
final class DigestHandler: RequestHandler {
  /// The longest wait for a position, in milliseconds.
  private static let waitMilliseconds = 5_000

  private let member: ClusterMember
  private let isBusy = Atomic(false)

  init(_ member: ClusterMember) { self.member = member }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) { exchange.refuseAsNotOwner() }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    let response = DigestResponse(exchange)
    exchange.stream(status: 200, headers: { _ in }, from: response)
    let query = request.target.pathAndQuery.query
    guard let text = query.dropping("at="), let sequence = UInt64(String(decoding: text, as: UTF8.self)) else {
      response.finish(.at(member.status.applied.sequence))
      return nil
    }
    guard !isBusy.exchange(true, ordering: .sequentiallyConsistent) else {
      response.finish(.busy)
      return nil
    }
    DispatchQueue(label: "hearth.cluster.digest", qos: .utility).async { [self] in
      compute(sequence, response)
      isBusy.store(false, ordering: .sequentiallyConsistent)
    }
    return nil
  }

  private func compute(_ sequence: UInt64, _ response: DigestResponse) {
    var reported = DispatchTime.now()
    let outcome: DigestOutcome
    do throws(StorageError) {
      // It cannot say when its replica will be there.
      guard !member.status.isJoining else { return response.finish(.late(0)) }
      outcome = try member.digest(at: sequence, milliseconds: Self.waitMilliseconds) { bytes in
        let now = DispatchTime.now()
        if bytes > 0, now >= reported + .milliseconds(500) {
          reported = now
          response.send(.bytes(bytes))
        }
        return !response.isOver
      }
    } catch { return response.finish(.failed(error.description)) }
    switch outcome {
    case .digest(let digest):
      for store in digest.stores { response.send(.store(store)) }
      response.finish(.end(digest.position))
    case .passed(let reached): response.finish(.passed(reached))
    case .notReached(let reached): response.finish(.late(reached))
    case .cancelled: break
    }
  }
}

/// The lines of one response. Any thread may send them.
private final class DigestResponse: Sendable, BodySource {
  private struct State {
    var lines: [UInt8] = []
    /// Whether nothing follows `lines`.
    var isComplete = false
    /// Whether nobody reads them any more.
    var isOver = false
  }

  private let state = Mutex(State())
  private let wake: @Sendable () -> Void

  init(_ exchange: Exchange) {
    wake = exchange.wake
    exchange.onClose { [self] in state.withLock { $0.isOver = true } }
    exchange.onShutdown { [self] in
      state.withLock { $0.isOver = true }
      exchange.resume()
    }
  }

  var isOver: Bool { state.withLock { $0.isOver } }

  func send(_ message: DigestMessage, isLast: Bool = false) {
    state.withLock { state in
      state.lines += Array(message.line.utf8)
      state.isComplete = isLast
    }
    wake()
  }

  func finish(_ message: DigestMessage) { send(message, isLast: true) }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    state.withLock { state in
      out += state.lines
      state.lines = []
      return state.isComplete || state.isOver ? .finished : .waiting
    }
  }
}
