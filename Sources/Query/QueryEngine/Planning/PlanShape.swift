import DocumentModel
import DocumentStore
import KeyEncoding

/// The part of a query that decides which declared indexes suit it: everything but values, the limit and the parent.
///
/// An app sends queries that differ only in values, such as the ID of a user or the position of a page. The planner
/// tries the indexes that it chose for one of them first for the others. It checks that they suit, so two shapes with
/// the same hash by chance only cost time.
struct PlanShape {
  fileprivate let hash: Int

  /// Takes the shape of a query and of the alternatives of its filter; `nil` if the query is not over one collection.
  init?(_ query: ResolvedQuery, _ alternatives: [[ResolvedQuery.Condition]]) {
    guard let collectionID = query.query.collectionID, !query.query.includesDescendants else { return nil }
    var hasher = Hasher()
    hasher.combine(collectionID)
    for order in query.orders {
      hasher.combine(order.path)
      hasher.combine(order.isDescending)
    }
    for conditions in alternatives {
      hasher.combine(conditions.count)
      for condition in conditions {
        hasher.combine(condition.path)
        switch condition {
        case .field(_, let op, _): hasher.combine(op)
        case .unary(_, let op): hasher.combine(op)
        }
      }
    }
    hasher.combine(query.start?.isBefore)
    hasher.combine(query.end?.isBefore)
    hash = hasher.finalize()
  }
}

extension IndexChoices {
  /// The indexes that suited the latest query of a shape, or `nil` if none is known.
  subscript(shape: PlanShape) -> [StoredIndex]? {
    get { indexes(of: shape.hash) }
    set { if let newValue { set(newValue, of: shape.hash) } }
  }
}
