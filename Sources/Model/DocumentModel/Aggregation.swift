/// One number that a query computes over its results (`StructuredAggregationQuery.Aggregation`).
package struct Aggregation: Hashable, Sendable {
  /// The function to compute.
  package enum Operator: Hashable, Sendable {
    /// The number of results; with a limit, counting stops there.
    case count(upTo: Int?)
    /// The sum of the numbers in a field.
    case sum(FieldPath)
    /// The average of the numbers in a field.
    case average(FieldPath)
  }

  package var op: Operator
  /// The name of the number in the response.
  package var alias: String

  package init(_ op: Operator, alias: String) {
    self.op = op
    self.alias = alias
  }

  /// The field to read, or `nil` for a count.
  package var field: FieldPath? {
    switch op {
    case .count: nil
    case .sum(let path), .average(let path): path
    }
  }
}
