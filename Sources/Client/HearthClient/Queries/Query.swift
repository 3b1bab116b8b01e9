import Foundation

/// A query of a collection or a collection group. The methods of ``Queryable`` add conditions, orders and limits.
public struct Query: Sendable, Queryable {
  /// The database.
  public let client: Hearth
  let parent: String
  let collectionID: String
  let isGroup: Bool
  var filters: [Filter] = []
  var orders: [Order] = []
  var start: Bound?
  var end: Bound?
  var limit: Int?
  /// Whether the limit keeps the last results instead of the first.
  var isFromEnd = false
  var offset: Int?
  var selection: [FieldPath]?
  var nearest: JSON?

  /// The order of one field.
  struct Order: Sendable {
    let path: FieldPath
    let isDescending: Bool
  }

  /// A position in the order.
  struct Bound: Sendable {
    let values: [Value]
    /// Whether the position is directly before the documents with these values, or directly after them.
    let isBefore: Bool
  }

  init(_ client: Hearth, parent: String, collectionID: String, isGroup: Bool) {
    (self.client, self.parent, self.collectionID, self.isGroup) = (client, parent, collectionID, isGroup)
  }

  /// The query itself.
  public var query: Query { self }

  // MARK: - The form of the API

  /// The orders with those that the API adds: the fields of inequalities, then the name (firestore-api.md, section
  /// 4.2).
  var completeOrders: [Order] {
    var complete = orders
    let isDescending = orders.last?.isDescending ?? false
    let inequalities = filters.flatMap(\.inequalityPaths).filter { $0 != .documentID }
    for path in inequalities.sorted(by: { $0.description.utf8.lexicographicallyPrecedes($1.description.utf8) })
    where !complete.contains(where: { $0.path == path }) {
      complete.append(Order(path: path, isDescending: isDescending))
    }
    if !complete.contains(where: { $0.path == .documentID }) {
      complete.append(Order(path: .documentID, isDescending: isDescending))
    }
    return complete
  }

  /// The StructuredQuery. A limit on the last results becomes a limit in the reverse order.
  var json: JSON {
    let orders = isFromEnd ? completeOrders.map { Order(path: $0.path, isDescending: !$0.isDescending) } : orders
    let (start, end) = isFromEnd ? (end?.reversed, start?.reversed) : (start, end)
    return .of([
      "select": selection.map { .of(["fields": .array(($0.isEmpty ? [.documentID] : $0).map(\.reference))]) },
      "from": .array([
        .of(["collectionId": .string(collectionID), "allDescendants": isGroup ? .boolean(true) : nil])
      ]),
      "where": filters.isEmpty ? nil : filters.count == 1 ? filters[0].json : Filter.and(filters).json,
      "orderBy": orders.isEmpty ? nil : .array(orders.map(\.json)),
      "startAt": start?.json, "endAt": end?.json,
      "offset": offset.map { .number(String($0)) }, "limit": limit.map { .number(String($0)) },
      "findNearest": nearest,
    ])
  }
}

extension FieldPath {
  /// The path as a FieldReference.
  var reference: JSON { .of(["fieldPath": .string(description)]) }
}

extension Query.Order {
  fileprivate var json: JSON {
    .of(["field": path.reference, "direction": .string(isDescending ? "DESCENDING" : "ASCENDING")])
  }
}

extension Query.Bound {
  fileprivate var json: JSON { .of(["values": .array(values.map(\.json)), "before": isBefore ? .boolean(true) : nil]) }
  fileprivate var reversed: Query.Bound { Query.Bound(values: values, isBefore: !isBefore) }
}
