/// One number computed over the results of a query (`StructuredAggregationQuery.Aggregation`).
package struct Aggregation: Hashable, Sendable {
  /// What is computed.
  package enum Operator: Hashable, Sendable {
    /// How many results there are, counted up to a bound where one is given.
    case count(upTo: Int?)
    /// The sum of a field's numbers.
    case sum(FieldPath)
    /// The average of a field's numbers.
    case average(FieldPath)
  }

  /// What is computed.
  package var op: Operator
  /// The name of the number in the answer.
  package var alias: String

  /// Creates an aggregation.
  package init(_ op: Operator, alias: String) {
    self.op = op
    self.alias = alias
  }

  /// The field that is read; `nil` for a count.
  package var field: FieldPath? {
    switch op {
    case .count: nil
    case .sum(let path), .average(let path): path
    }
  }
}
