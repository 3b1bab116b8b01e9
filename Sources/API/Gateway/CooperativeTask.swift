import Transport

/// Work for one request that is done in slices, so that others on the loop get their turn, and answered at its end.
enum CooperativeTask {
  /// Calls `step` now and then at later turns of the loop, until it returns `true` for done or the client is gone.
  static func run(_ exchange: Exchange, _ step: @escaping () -> Bool) {
    guard !exchange.isClosed, !step() else { return }
    goOn(exchange, LoopBound(step, to: exchange.loop))
  }

  private static func goOn(_ exchange: Exchange, _ step: LoopBound<() -> Bool>) {
    step.later { next in
      guard !exchange.isClosed, !next() else { return }
      goOn(exchange, step)
    }
  }
}
