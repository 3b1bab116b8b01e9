import Synchronization

/// A clock that moves only when a test advances it. A loop created with one takes all times from it.
package final class ManualClock: Sendable {
  private let elapsed = Atomic<Int>(0)

  package init() {}

  /// Milliseconds since the clock was created.
  package var milliseconds: Int { elapsed.load(ordering: .acquiring) }

  /// Moves the clock forward. Loops notice at their next sweep; see `HTTPServer.sweepDeadlines`.
  package func advance(milliseconds: Int) {
    elapsed.wrappingAdd(milliseconds, ordering: .acquiringAndReleasing)
  }
}
