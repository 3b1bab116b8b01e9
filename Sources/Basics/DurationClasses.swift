/// The classes in which durations of requests and of commits are counted, the same ones, so that histograms compare.
package enum DurationClasses {
  /// Upper bounds in microseconds, rising; one class more is for what took longer.
  package static let bounds = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000,
  ]

  /// How many classes there are: a number that types of fixed size can be checked against.
  package static let count = 16

  /// The class of a duration in microseconds, from 0. Cost: a look at each bound.
  package static func place(of microseconds: Int) -> Int { bounds.count { microseconds > $0 } }
}
