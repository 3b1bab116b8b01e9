import Transport

/// Runs the work for a request in slices, so that other requests on the loop are not delayed.
enum CooperativeTask {
  /// Calls `slice` now and at later turns of the loop until it returns a result or throws, and passes that to `done`.
  /// Stops without a result if the client disconnects or `isOver` returns `true`.
  static func run<R>(
    _ exchange: Exchange, isOver: @escaping () -> Bool = { false }, _ slice: @escaping () throws -> R?,
    _ done: @escaping (Result<R, any Error>) -> Void
  ) {
    run(exchange) {
      guard !isOver() else { return true }
      do {
        guard let result = try slice() else { return false }
        done(.success(result))
      } catch { done(.failure(error)) }
      return true
    }
  }

  /// Calls `step` now and at later turns of the loop until it returns `true` (done) or the client disconnects.
  static func run(_ exchange: Exchange, _ step: @escaping () -> Bool) {
    guard !exchange.isClosed, !step() else { return }
    schedule(exchange, LoopBound(step, to: exchange.loop))
  }

  private static func schedule(_ exchange: Exchange, _ step: LoopBound<() -> Bool>) {
    step.later { next in
      guard !exchange.isClosed, !next() else { return }
      schedule(exchange, step)
    }
  }
}
