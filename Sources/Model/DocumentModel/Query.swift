/// A query as the client sent it (`StructuredQuery`).
///
/// It is not validated, and its order is not complete: `QueryEngine` does both.
package struct Query: Hashable, Sendable {
  /// The root or the document that contains the collections.
  package var parent: ResourcePath
  /// The ID of the collections, or `nil` for all collections.
  package var collectionID: String?
  /// Whether the query includes collections at any depth below ``parent``, not only those directly below it.
  package var includesDescendants: Bool
  /// The condition that documents must meet, or `nil` for all documents.
  package var filter: QueryFilter?
  /// The requested order. The query engine completes it.
  package var orders: [Order] = []
  /// The position of the first result, or `nil` for the beginning.
  package var start: QueryBound?
  /// The position after the last result, or `nil` for the end.
  package var end: QueryBound?
  /// The number of documents to skip.
  package var offset = 0
  /// The maximum number of documents to return, or `nil` for no limit.
  package var limit: Int?
  /// The fields to return: `nil` for all, empty for none.
  package var projection: FieldMask?
  /// The search among the documents that the rest of the query selects, or `nil` for none.
  package var findNearest: FindNearest?

  /// Creates a query for all documents of a collection, or of all collections with the ID below `parent`.
  package init(parent: ResourcePath = .root, collectionID: String?, includesDescendants: Bool = false) {
    self.parent = parent
    self.collectionID = collectionID
    self.includesDescendants = includesDescendants
  }
}

/// A condition on a document.
package indirect enum QueryFilter: Hashable, Sendable {
  /// Compares a field with a value.
  case field(FieldPath, FieldOperator, Value)
  /// Tests a field without an operand.
  case unary(FieldPath, UnaryOperator)
  /// All of these conditions. An empty list is always true.
  case and([QueryFilter])
  /// At least one of these conditions.
  case or([QueryFilter])
}

/// A comparison of a field with a value. The raw values are the numbers on the wire.
package enum FieldOperator: Int, Sendable, CaseIterable {
  case lessThan = 1
  case lessThanOrEqual = 2
  case greaterThan = 3
  case greaterThanOrEqual = 4
  case equal = 5
  case notEqual = 6
  case arrayContains = 7
  case `in` = 8
  case arrayContainsAny = 9
  case notIn = 10

  /// The names in the API, by raw value. The first is that of no operator.
  package static let wireNames: [StaticString] = [
    "OPERATOR_UNSPECIFIED", "LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "EQUAL",
    "NOT_EQUAL", "ARRAY_CONTAINS", "IN", "ARRAY_CONTAINS_ANY", "NOT_IN",
  ]
  private static let symbols = [
    "", "<", "<=", ">", ">=", "==", "!=", "contains", "in", "contains-any", "not-in",
  ]

  /// The name of the operator in the API.
  package var wireName: String { Self.wireNames[rawValue].description }

  /// The symbol of the operator in plans, logs and conditions of the command line.
  package var symbol: String { Self.symbols[rawValue] }
}

/// A test of a field without an operand. The raw values are the numbers on the wire.
package enum UnaryOperator: Int, Sendable, CaseIterable {
  case isNaN = 2
  case isNull = 3
  case isNotNaN = 4
  case isNotNull = 5
}

/// One field of a query's order, with its direction.
package struct Order: Hashable, Sendable {
  /// The field, or `__name__`.
  package var path: FieldPath
  package var isDescending: Bool

  package init(_ path: FieldPath, isDescending: Bool = false) {
    self.path = path
    self.isDescending = isDescending
  }
}

/// A position in the order of a query (`Cursor`).
package struct QueryBound: Hashable, Sendable {
  /// The values of the first fields of the order.
  package var values: [Value]
  /// Whether the position is before, not after, the documents that have exactly these values.
  package var isBefore: Bool

  package init(_ values: [Value], isBefore: Bool) {
    self.values = values
    self.isBefore = isBefore
  }
}
