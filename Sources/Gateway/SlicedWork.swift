import Transport

/// Work for one request that is done in slices, so that others on the loop get their turn, and answered at its end.
final class SlicedWork: @unchecked Sendable {
  // Sendable, so that the loop can call it again: it is only touched on the thread of its exchange's loop.

  private let exchange: Exchange
  private let step: () -> Bool

  private init(_ exchange: Exchange, _ step: @escaping () -> Bool) {
    self.exchange = exchange
    self.step = step
  }

  /// Calls `step` now and then at later turns of the loop, until it returns `true` for done or the client is gone.
  static func run(_ exchange: Exchange, _ step: @escaping () -> Bool) {
    SlicedWork(exchange, step).go()
  }

  private func go() {
    guard !exchange.isClosed, !step() else { return }
    exchange.loop.execute { self.go() }
  }
}
