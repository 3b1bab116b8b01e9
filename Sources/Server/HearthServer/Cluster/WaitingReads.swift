import DocumentStore
import Transport

/// The requests of one event loop that wait until this node is as new as the owner. Belongs to the loop.
///
/// The requests that arrive in one turn of the loop wait together: many of them cost one question to the owner and one
/// wake-up of the loop.
final class WaitingReads {
  private let gate: any FreshnessGate
  private let loop: EventLoop
  private let choose: @Sendable (Bool) -> any RequestHandler
  private var arrived: [HeldRequest] = []

  /// Creates an empty set.
  ///
  /// - Parameter choose: returns the handler of a request, which may read the replica if it passed the gate (`true`), and may
  ///   not otherwise. Called on the loop for each request.
  init(_ gate: any FreshnessGate, on loop: EventLoop, choose: @escaping @Sendable (Bool) -> any RequestHandler) {
    self.gate = gate
    self.loop = loop
    self.choose = choose
  }

  /// Adds a request, which is handled later.
  func append(_ request: HeldRequest) {
    arrived.append(request)
    if arrived.count == 1 { loop.atNextTurn { [self] in ask() } }
  }

  private func ask() {
    let requests = LoopBound(arrived, to: loop)
    arrived = []
    gate.whenNewest { [loop, choose] isNewest in
      requests.onLoop { requests in
        for request in requests {
          // A large batch does not delay the sockets.
          if loop.hasTime {
            request.handle(by: choose(isNewest))
          } else {
            loop.atNextTurn { request.handle(by: choose(isNewest)) }
          }
        }
      }
    }
  }
}
