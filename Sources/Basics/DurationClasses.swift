/// The classes for the durations of requests and commits. Both use the same classes, so their histograms compare.
package enum DurationClasses {
  /// The upper bounds in microseconds, ascending. One more class counts longer durations.
  package static let bounds = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000,
  ]

  /// The number of classes, as a constant against which types of fixed size are checked.
  package static let count = 16

  /// Returns the class of a duration in microseconds, from 0. Cost: one comparison per bound.
  package static func place(of microseconds: Int) -> Int { bounds.count { microseconds > $0 } }
}
