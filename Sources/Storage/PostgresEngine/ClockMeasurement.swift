/// The difference between a node's clock and PostgreSQL's, as one exchange measured it.
///
/// PostgreSQL reads its clock between the moments at which the node sends a request and receives the answer, so the
/// difference is known to half of that time.
package struct ClockMeasurement: Equatable, Sendable {
  /// By how much PostgreSQL's clock is ahead of the node's, in microseconds; negative if it is behind.
  package let difference: Int64
  /// The greatest error of ``difference``, in microseconds.
  package let error: Int64
  /// The time of the measurement by a clock that never steps, in microseconds.
  private let time: Int64
  /// The latest time of PostgreSQL's clock at that time, in microseconds since 1970.
  private let tables: Int64

  /// Notes an exchange. `sent` and `received` are times of the node's clock, `tables` is that of PostgreSQL's, in
  /// microseconds since 1970. `time` is that of a clock that never steps.
  package init(sent: Int64, tables: Int64, received: Int64, at time: Int64) {
    error = (received - sent) / 2 + 1
    difference = tables - sent - (received - sent) / 2
    self.time = time
    self.tables = tables + (received - sent)
  }

  /// Whether the clocks certainly differ by at most `limit` microseconds.
  package func isWithin(_ limit: Int64) -> Bool { abs(difference) + error <= limit }

  /// Whether the clocks certainly differ by more than `limit` microseconds.
  package func isBeyond(_ limit: Int64) -> Bool { abs(difference) - error > limit }

  /// The latest time of PostgreSQL's clock at a time of the clock that never steps, if neither was set in between.
  package func latest(at now: Int64) -> Int64 { tables + (now - time) + (now - time) / 1000 }

  /// Returns the better one of this measurement and a newer one. A measurement loses a millisecond a second, more
  /// than clocks drift. If the two contradict each other, a clock was set in between, and the newer one is right.
  package func improved(by newer: ClockMeasurement) -> ClockMeasurement {
    let aged = error + (newer.time - time) / 1000
    guard abs(newer.difference - difference) <= aged + newer.error else { return newer }
    return newer.error <= aged ? newer : self
  }
}
