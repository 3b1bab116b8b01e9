import Transport

/// Runs the work for a request in slices, so that other requests on the loop are not delayed.
enum CooperativeTask {
  /// A function that tells whether work waits for a resource of the server. If so, it calls the closure once, on any
  /// thread, when the next slice can continue.
  typealias Wait = (_ wake: @escaping @Sendable () -> Void) -> Bool

  /// Calls `slice` now and at later turns of the loop until it returns a result or throws, and passes that to `done`.
  /// Stops without a result if the client disconnects or `isOver` returns `true`. Work that waits has no turns.
  static func run<R>(
    _ exchange: Exchange, isOver: @escaping () -> Bool = { false }, wait: @escaping Wait,
    _ slice: @escaping () throws -> R?, _ done: @escaping (Result<R, any Error>) -> Void
  ) {
    run(exchange, wait: wait) {
      guard !isOver() else { return true }
      do {
        guard let result = try slice() else { return false }
        done(.success(result))
      } catch { done(.failure(error)) }
      return true
    }
  }

  /// Calls `step` now and at later turns of the loop until it returns `true` (done) or the client disconnects. Work
  /// that waits has no turns.
  static func run(_ exchange: Exchange, wait: @escaping Wait = { _ in false }, _ step: @escaping () -> Bool) {
    let work = Work(wait, step)
    guard !exchange.isClosed, !work.step() else { return }
    // The queries of the work leave the line for their resources at once.
    exchange.onClose { work.cancel() }
    schedule(exchange, work)
  }

  private static func schedule(_ exchange: Exchange, _ work: Work) {
    let bound = LoopBound(work, to: exchange.loop)
    let turn: @Sendable () -> Void = {
      bound.later { work in
        guard !exchange.isClosed, !work.step() else { return }
        schedule(exchange, work)
      }
    }
    if !work.waits(turn) { turn() }
  }

  private final class Work {
    private var slice: (() -> Bool)?
    private var wait: Wait?

    init(_ wait: @escaping Wait, _ slice: @escaping () -> Bool) {
      self.wait = wait
      self.slice = slice
    }

    /// Returns whether the work is done.
    func step() -> Bool {
      guard slice?() ?? true else { return false }
      cancel()
      return true
    }

    func waits(_ wake: @escaping @Sendable () -> Void) -> Bool { wait?(wake) ?? false }

    func cancel() {
      slice = nil
      wait = nil
    }
  }
}
