import DocumentStore
import Replication
import Transport

/// Knows whether the databases of this node show what a read must show.
protocol ReadGate: FreshnessGate {
  /// Whether they show everything up to an index, by its configuration.
  func shows(_ index: ReadIndex) -> Bool

  /// Calls `done` once, on any thread, perhaps before this returns: with `true` when they do, with `false` if that takes too
  /// long or will not be.
  func whenShowing(_ index: ReadIndex, _ done: @escaping @Sendable (Bool) -> Void)
}

/// Asks the owner how far the log is. Belongs to a loop.
protocol IndexSource: AnyObject {
  /// Asks a question. `done` is called later with the answer, or with `nil` if the owner does not give one. Returns `false` if
  /// the owner cannot be asked now.
  func ask(_ done: @escaping (ReadIndex?) -> Void) -> Bool
}

/// The requests of one event loop that wait until this node is as new as the owner. Belongs to the loop.
///
/// A question costs more than a read. So one is under way at a time, until its requests are to be handled, and those that
/// arrive meanwhile share the next one.
final class WaitingReads {
  private let gate: any ReadGate
  private let line: (any IndexSource)?
  private let loop: EventLoop
  private let choose: @Sendable (Bool) -> any RequestHandler
  private var arrived: [HeldRequest] = []
  /// Whether the requests of a question wait, or the next question is about to be asked.
  private var isBusy = false

  /// Creates an empty set.
  ///
  /// - Parameters:
  ///   - line: the loop's own way to the owner. Without one, and while the owner cannot be asked there, the gate asks.
  ///   - choose: returns the handler of a request, which may read the replica if it passed the gate (`true`), and may not
  ///     otherwise. Called on the loop for each request.
  init(
    _ gate: any ReadGate, _ line: (any IndexSource)?, on loop: EventLoop,
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
    askSoon()
  }

  /// Asks at the end of the turn, so that the other requests of the turn share the question.
  private func askSoon() {
    guard !isBusy, !arrived.isEmpty else { return }
    isBusy = true
    loop.atNextTurn { [self] in ask() }
  }

  private func ask() {
    let requests = arrived
    arrived = []
    // An answer says nothing of commits that were acknowledged after its question.
    let isAsked = line?.ask { [self] index in answered(index, requests) } ?? false
    if !isAsked { gate.whenNewest(handler(of: requests)) }
  }

  private func answered(_ index: ReadIndex?, _ requests: [HeldRequest]) {
    guard let index else { return gate.whenNewest(handler(of: requests)) }
    if gate.shows(index) { return handle(requests, isNewest: true) }
    gate.whenShowing(index, handler(of: requests))
  }

  /// Returns a function that handles requests, for any thread.
  private func handler(of requests: [HeldRequest]) -> @Sendable (Bool) -> Void {
    let held = LoopBound((self, requests), to: loop)
    return { isNewest in held.onLoop { reads, requests in reads.handle(requests, isNewest: isNewest) } }
  }

  private func handle(_ requests: [HeldRequest], isNewest: Bool) {
    // The clients that get these responses send their next requests soon. Those share the next question, too.
    loop.atNextTurn { [self] in
      isBusy = false
      askSoon()
    }
    for request in requests {
      // A large batch does not delay the sockets.
      if loop.hasTime {
        request.handle(by: choose(isNewest))
      } else {
        loop.atNextTurn { [choose] in request.handle(by: choose(isNewest)) }
      }
    }
  }
}
