import Synchronization

/// Counts the changes that can invalidate tokens before they expire, and reports them.
package final class TokenRevocations: Sendable {
  /// The users whose tokens may be invalid since a change.
  package enum Concerned: Equatable, Sendable {
    case users(Set<String>)
    /// The tokens of all users and service keys.
    case everyone
  }

  private let number = Atomic<UInt64>(0)
  private let observers = Mutex<[@Sendable (Concerned) -> Void]>([])

  /// Creates a counter without observers.
  package init() {}

  /// The number of changes. A verification result holds while it stays the same. Cost: one atomic load.
  package var count: UInt64 { number.load(ordering: .acquiring) }

  /// Calls `notify` after every change, on the thread that makes it. It must return quickly.
  package func observe(_ notify: @escaping @Sendable (Concerned) -> Void) { observers.withLock { $0.append(notify) } }

  /// Notes a change that was stored.
  package func note(_ concerned: Concerned) {
    number.add(1, ordering: .acquiringAndReleasing)
    for notify in observers.withLock({ $0 }) { notify(concerned) }
  }
}
