/// A query: which documents, in what order, how many (`StructuredQuery`).
///
/// As a client asks it: nothing is checked or completed yet, `QueryEngine` does that.
package struct Query: Hashable, Sendable {
  /// The root or document below which the documents lie.
  package var parent: ResourcePath
  /// The collections: of this id, or all where it is `nil`.
  package var collectionID: String?
  /// Whether collections at any depth below ``parent`` count, not only those directly below it.
  package var includesDescendants: Bool
  /// Which documents; `nil` for all.
  package var filter: QueryFilter?
  /// The order as asked; the engine completes it.
  package var orders: [Order] = []
  /// Where the results start.
  package var start: QueryBound?
  /// Where they end.
  package var end: QueryBound?
  /// How many documents to pass over.
  package var offset = 0
  /// The most documents to return; `nil` for no limit.
  package var limit: Int?
  /// The fields to return; `nil` for all, empty for none.
  package var projection: FieldMask?
  /// The search among the documents that everything above leaves; `nil` for none.
  package var findNearest: FindNearest?

  /// Asks for all documents of a collection, or of all collections of that id below `parent`.
  package init(parent: ResourcePath = .root, collectionID: String?, includesDescendants: Bool = false) {
    self.parent = parent
    self.collectionID = collectionID
    self.includesDescendants = includesDescendants
  }
}

/// A condition on a document.
package indirect enum QueryFilter: Hashable, Sendable {
  /// A field compared with a value.
  case field(FieldPath, FieldOperator, Value)
  /// A field tested by itself.
  case unary(FieldPath, UnaryOperator)
  /// All of these; nothing is no condition.
  case and([QueryFilter])
  /// Any of these.
  case or([QueryFilter])
}

/// How a field is compared; the raw values are the wire's numbers.
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
}

/// How a field is tested; the raw values are the wire's numbers.
package enum UnaryOperator: Int, Sendable, CaseIterable {
  case isNaN = 2
  case isNull = 3
  case isNotNaN = 4
  case isNotNull = 5
}

/// One field of an order, and its direction.
package struct Order: Hashable, Sendable {
  /// The field, or `__name__`.
  package var path: FieldPath
  /// Whether it runs from high to low.
  package var isDescending: Bool

  /// Creates an order.
  package init(_ path: FieldPath, isDescending: Bool = false) {
    self.path = path
    self.isDescending = isDescending
  }
}

/// A position in the order of a query (`Cursor`).
package struct QueryBound: Hashable, Sendable {
  /// Values of the first fields of the order.
  package var values: [Value]
  /// Whether the position lies before documents that have exactly these values, else behind them.
  package var isBefore: Bool

  /// Creates a position.
  package init(_ values: [Value], isBefore: Bool) {
    self.values = values
    self.isBefore = isBefore
  }
}
