import DocumentStore
import Replication
import Transport

/// Knows whether the databases of this node show what a read must show.
protocol ReadGate: FreshnessGate {
  /// Whether they show everything up to an index, by its configuration.
  func shows(_ index: ReadIndex) -> Bool

  /// Calls `done` once, on any thread, perhaps before this returns: with `true` when they do, with `false` if that takes too
  /// long.
  func whenShowing(_ index: ReadIndex, _ done: @escaping @Sendable (Bool) -> Void)
}

/// The requests of one event loop that wait until this node is as new as the owner. Belongs to the loop.
///
/// Those that arrive while a question to the owner is under way share the next one. A question costs more than a read.
final class WaitingReads {
  private let gate: any ReadGate
  private let line: IndexLine?
  private let loop: EventLoop
  private let choose: @Sendable (Bool) -> any RequestHandler
  private var arrived: [HeldRequest] = []
  /// Whether a question on the line has no answer yet.
  private var isAsking = false

  /// Creates an empty set.
  ///
  /// - Parameters:
  ///   - line: the loop's own way to the owner. Without one, and while the owner cannot be asked there, the gate asks.
  ///   - choose: returns the handler of a request, which may read the replica if it passed the gate (`true`), and may not
  ///     otherwise. Called on the loop for each request.
  init(
    _ gate: any ReadGate, _ line: IndexLine?, on loop: EventLoop,
    choose: @escaping @Sendable (Bool) -> any RequestHandler
  ) {
    self.gate = gate
    self.line = line
    self.loop = loop
    self.choose = choose
  }

  /// Adds a request, which is handled later.
  func append(_ request: HeldRequest) {
    arrived.append(request)
    if arrived.count == 1, !isAsking { loop.atNextTurn { [self] in ask() } }
  }

  private func ask() {
    guard !isAsking, !arrived.isEmpty else { return }
    let requests = arrived
    arrived = []
    isAsking = line?.ask { [self] index in answered(index, requests) } ?? false
    if !isAsking { askGate(requests) }
  }

  private func answered(_ index: ReadIndex?, _ requests: [HeldRequest]) {
    isAsking = false
    // An answer says nothing of commits that were acknowledged after its question. The next one is asked after the requests
    // of this one are handled, so that more of those that follow share it.
    if !arrived.isEmpty { loop.atNextTurn { [self] in ask() } }
    guard let index else { return askGate(requests) }
    if gate.shows(index) { return Self.handle(requests, by: choose, true, on: loop) }
    gate.whenShowing(index, handler(of: requests))
  }

  private func askGate(_ requests: [HeldRequest]) { gate.whenNewest(handler(of: requests)) }

  /// Returns a function that handles requests, for any thread.
  private func handler(of requests: [HeldRequest]) -> @Sendable (Bool) -> Void {
    let held = LoopBound(requests, to: loop)
    return { [loop, choose] isNewest in
      held.onLoop { Self.handle($0, by: choose, isNewest, on: loop) }
    }
  }

  private static func handle(
    _ requests: [HeldRequest], by choose: @escaping @Sendable (Bool) -> any RequestHandler, _ isNewest: Bool,
    on loop: EventLoop
  ) {
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
