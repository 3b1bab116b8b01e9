import Synchronization

/// A time of day that moves only when a test advances it. Pass its ``now`` to a `Clock`.
package final class SteppedTime: Sendable {
  private let microseconds: Atomic<Int64>

  /// Starts at a time in microseconds since 1970, by default 2027-01-15T08:00:00Z.
  package init(_ microseconds: Int64 = 1_800_000_000_000_000) { self.microseconds = Atomic(microseconds) }

  /// The time, in microseconds since 1970.
  package var now: Int64 {
    get { microseconds.load(ordering: .sequentiallyConsistent) }
    set { microseconds.store(newValue, ordering: .sequentiallyConsistent) }
  }

  /// Moves the time forward by `seconds`, or back if negative.
  package func advance(seconds: Int) {
    microseconds.add(Int64(seconds) * 1_000_000, ordering: .sequentiallyConsistent)
  }
}
