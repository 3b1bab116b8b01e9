import Glibc

/// A source of the time of day. Tests supply their own.
package struct Clock: Sendable {
  private let read: @Sendable () -> Int64

  /// Creates a clock from a function that returns microseconds since 1970.
  package init(_ read: @escaping @Sendable () -> Int64) { self.read = read }

  /// Returns the current time in microseconds since 1970-01-01T00:00:00Z.
  package func now() -> Int64 { read() }

  /// The system's clock. It may step backward; versions never do, see ``CommitWriter``.
  package static let system = Clock {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }
}
