import Synchronization

/// Requests of a loop, or a target of a listener, that wait until this node is as new as the owner. They are
/// answered once, together.
final class FreshnessWaiter: Sendable {
  /// The time at which they are refused, in microseconds of `BootTime`.
  let deadline: Int64
  private let done: Mutex<(@Sendable (Bool) -> Void)?>

  init(deadline: Int64, _ done: @escaping @Sendable (Bool) -> Void) {
    self.deadline = deadline
    self.done = Mutex(done)
  }

  /// Whether it was answered.
  var isAnswered: Bool { done.withLock { $0 == nil } }

  /// Answers, unless it was answered before.
  func answer(_ isNewest: Bool) {
    let done = done.withLock { done in
      defer { done = nil }
      return done
    }
    done?(isNewest)
  }
}
