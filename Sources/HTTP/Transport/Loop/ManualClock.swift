import Synchronization

/// A clock that moves only when it is told to. Loops given one take every deadline from it.
package final class ManualClock: Sendable {
  private let elapsed = Atomic<Int>(0)

  /// Creates a clock.
  package init() {}

  /// Milliseconds since the clock was made.
  package var milliseconds: Int { elapsed.load(ordering: .acquiring) }

  /// Moves the clock forward. Loops notice at their next sweep; see `HTTPServer.sweepDeadlines`.
  package func advance(milliseconds: Int) {
    elapsed.wrappingAdd(milliseconds, ordering: .acquiringAndReleasing)
  }
}
