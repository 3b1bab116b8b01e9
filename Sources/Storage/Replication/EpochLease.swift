import Glibc
import Synchronization

/// The right of this node to answer reads as the owner in one epoch, for any thread to look at.
///
/// Cost of a look: one atomic load and one reading of the clock.
package final class EpochLease: Sendable {
  /// The epoch of the ownership.
  package let epoch: UInt64
  /// The time until which the lease holds, in microseconds of ``BootTime``; `Int64.min` after the end of the epoch.
  private let until: Atomic<Int64>
  private let now: @Sendable () -> Int64

  init(epoch: UInt64, until: Int64, now: @escaping @Sendable () -> Int64) {
    self.epoch = epoch
    self.until = Atomic(until)
    self.now = now
  }

  /// Whether the lease holds now.
  package var holds: Bool { now() < until.load(ordering: .sequentiallyConsistent) }

  /// The time for which the lease holds, in microseconds; not positive if it does not.
  package var remaining: Int64 {
    let until = until.load(ordering: .sequentiallyConsistent)
    return until == .min ? 0 : until - now()
  }

  /// Whether this node is not the owner in this epoch any more.
  package var isOver: Bool { until.load(ordering: .sequentiallyConsistent) == .min }

  /// Extends the lease. Only the member calls it, with a lock held.
  func extend(until time: Int64) { until.store(time, ordering: .sequentiallyConsistent) }

  /// Ends the epoch.
  func end() { until.store(.min, ordering: .sequentiallyConsistent) }
}

/// The clock that runs while the machine sleeps.
package enum BootTime {
  /// The time since the machine started, in microseconds.
  package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }
}
