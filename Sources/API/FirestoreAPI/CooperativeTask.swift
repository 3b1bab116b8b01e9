import Transport

/// Runs the work for a request in slices, so that other requests on the loop are not delayed.
enum CooperativeTask {
  /// Calls `slice` now and at later turns of the loop until it returns a result or throws, and passes that to `done`.
  /// Stops without a result if the client disconnects or `isOver` returns `true`.
  static func run<R>(
    _ exchange: Exchange, isOver: @escaping () -> Bool = { false }, _ slice: @escaping () throws -> R?,
    _ done: @escaping (Result<R, any Error>) -> Void
  ) {
    run(exchange, step(isOver, slice, done))
  }

  /// Does the same for a response that is kept in memory until it is complete. A loop produces a few of those at a time.
  static func runWhole<R>(
    _ exchange: Exchange, isOver: @escaping () -> Bool = { false }, _ slice: @escaping () throws -> R?,
    _ done: @escaping (Result<R, any Error>) -> Void
  ) {
    exchange.beginWhole { run(exchange, step(isOver, slice, done), exchange.endWhole) }
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
  /// `ended`.
  static func run(_ exchange: Exchange, _ step: @escaping () -> Bool, _ ended: @escaping () -> Void = {}) {
    guard !exchange.isClosed, !step() else { return ended() }
    exchange.loop.atNextTurn { run(exchange, step, ended) }
  }
}
