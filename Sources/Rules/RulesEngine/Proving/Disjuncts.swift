import DocumentModel

/// A query's filter as alternatives, each a list of conditions that all hold (disjunctive normal form).
enum Disjuncts {
  /// One condition on a field.
  struct Condition {
    let path: FieldPath
    let test: Test
  }

  /// What a condition asks of the value.
  enum Test {
    case field(FieldOperator, Value)
    case unary(UnaryOperator)
  }

  /// The most alternatives a query may have before it is refused; queries themselves are limited to 30.
  static let countMax = 100

  /// The alternatives of a filter; `nil` when they are too many.
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
