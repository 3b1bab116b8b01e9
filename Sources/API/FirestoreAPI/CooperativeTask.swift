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
    run(exchange, wait: wait, step(isOver, slice, done))
  }

  /// Does the same for a response that is kept in memory until it is complete. A loop produces a few of those at a time.
  static func runWhole<R>(
    _ exchange: Exchange, isOver: @escaping () -> Bool = { false }, wait: @escaping Wait,
    _ slice: @escaping () throws -> R?, _ done: @escaping (Result<R, any Error>) -> Void
  ) {
    exchange.beginWhole { run(exchange, wait: wait, step(isOver, slice, done), exchange.endWhole) }
  }

  private static func step<R>(
    _ isOver: @escaping () -> Bool, _ slice: @escaping () throws -> R?,
    _ done: @escaping (Result<R, any Error>) -> Void
  ) -> () -> Bool {
    {
      guard !isOver() else { return true }
      do {
        guard let result = try slice() else { return false }
        done(.success(result))
      } catch { done(.failure(error)) }
      return true
    }
  }

  /// Calls `step` now and at later turns of the loop until it returns `true` (done) or the client disconnects, then
  /// `ended`. Work that waits has no turns.
  static func run(
    _ exchange: Exchange, wait: @escaping Wait = { _ in false }, _ step: @escaping () -> Bool,
    _ ended: @escaping () -> Void = {}
  ) {
    let work = Work(wait, step, ended)
    guard !exchange.isClosed, !work.step() else { return work.end() }
    // The queries of the work leave the line for their resources at once.
    exchange.onClose { work.end() }
    schedule(exchange, work)
  }

  private static func schedule(_ exchange: Exchange, _ work: Work) {
    let bound = LoopBound(work, to: exchange.loop)
    let waits = work.waits { bound.later { work in turn(exchange, work) } }
    if !waits { exchange.loop.atNextTurn { turn(exchange, work) } }
  }

  private static func turn(_ exchange: Exchange, _ work: Work) {
    guard !exchange.isClosed, !work.step() else { return }
    schedule(exchange, work)
  }

  private final class Work {
    private var slice: (() -> Bool)?
    private var wait: Wait?
    private var ended: (() -> Void)?

    init(_ wait: @escaping Wait, _ slice: @escaping () -> Bool, _ ended: @escaping () -> Void) {
      self.wait = wait
      self.slice = slice
      self.ended = ended
    }

    /// Returns whether the work is done.
    func step() -> Bool {
      guard slice?() ?? true else { return false }
      end()
      return true
    }

    func waits(_ wake: @escaping @Sendable () -> Void) -> Bool { wait?(wake) ?? false }

    /// Releases everything, once.
    func end() {
      slice = nil
      wait = nil
      let ended = ended
      self.ended = nil
      ended?()
    }
  }
}
