import Transport

/// Runs the work for a request in slices, so that other requests on the loop are not delayed.
enum CooperativeTask {
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
