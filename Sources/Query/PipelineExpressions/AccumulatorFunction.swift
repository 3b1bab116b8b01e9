/// The accumulators of `aggregate`, by their names on the wire.
///
/// Source: pipelines.md, section 4.13.
package enum AccumulatorFunction: String, CaseIterable, Sendable {
  /// Without an argument the number of rows, otherwise that of the values that are neither null nor absent.
  case count
  /// The number of rows whose argument is true.
  case countIf = "count_if"
  /// The number of distinct values that are neither null nor absent.
  case countDistinct = "count_distinct"
  /// The sum of the numbers.
  case sum
  /// The average of the numbers.
  case average
  case minimum
  case maximum
  /// The value of the first row.
  case first
  /// The value of the last row.
  case last
  /// The values of all rows.
  case arrayAgg = "array_agg"
  /// The distinct values of all rows, in the order of their first appearance.
  case arrayAggDistinct = "array_agg_distinct"

  /// Whether the accumulator takes this number of arguments.
  package func accepts(argumentCount: Int) -> Bool {
    self == .count ? argumentCount <= 1 : argumentCount == 1
  }

  /// Whether the accumulator keeps values, so that its memory depends on the rows.
  package var keepsValues: Bool {
    switch self {
    case .count, .countIf, .sum, .average: false
    default: true
    }
  }

  /// Whether the result depends on the order of the rows.
  package var dependsOnOrder: Bool {
    switch self {
    case .first, .last, .arrayAgg, .arrayAggDistinct: true
    default: false
    }
  }
}
