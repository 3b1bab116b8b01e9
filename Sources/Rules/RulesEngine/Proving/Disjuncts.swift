import DocumentModel

/// Converts a query's filter to disjunctive normal form: alternatives, each a list of conditions that must all hold.
enum Disjuncts {
  struct Condition {
    let path: FieldPath
    let test: Test
  }

  /// The predicate on the field's value.
  enum Test {
    case field(FieldOperator, Value)
    case unary(UnaryOperator)
  }

  /// The greatest number of alternatives. A query with more is denied. Queries themselves are limited to 30.
  static let countMax = 100

  /// Returns the alternatives of a filter, or `nil` if there are too many.
  static func of(_ filter: QueryFilter?) -> [[Condition]]? {
    guard let filter else { return [[]] }
    switch filter {
    case .unary(let path, let test): return [[Condition(path: path, test: .unary(test))]]
    case .field(let path, let operation, let value):
      func each(_ operation: FieldOperator) -> [[Condition]] {
        guard case .array(let values) = value else { return [] }
        return values.map { [Condition(path: path, test: .field(operation, $0))] }
      }
      let alternatives =
        switch operation {
        case .in: each(.equal)
        case .arrayContainsAny: each(.arrayContains)
        default: [[Condition(path: path, test: .field(operation, value))]]
        }
      return alternatives.count <= countMax ? alternatives : nil
    case .or(let filters):
      var all: [[Condition]] = []
      for filter in filters {
        guard let alternatives = of(filter), all.count + alternatives.count <= countMax else { return nil }
        all += alternatives
      }
      return all
    case .and(let filters):
      var all: [[Condition]] = [[]]
      for filter in filters {
        guard let alternatives = of(filter), all.count * alternatives.count <= countMax else { return nil }
        all = all.flatMap { before in alternatives.map { before + $0 } }
      }
      return all
    }
  }
}
