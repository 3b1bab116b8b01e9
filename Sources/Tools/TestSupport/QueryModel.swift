package import DocumentModel

/// A reference implementation of queries on document trees: slow, simple, and sharing only the order of values with
/// the engine.
package struct QueryModel {
  /// A document as a path and a map.
  package typealias Document = (path: ResourcePath, fields: MapValue)

  private let database: DatabaseID

  /// Creates a model of the queries of one database.
  package init(_ database: DatabaseID) { self.database = database }

  /// Whether a document matches a filter (firestore-api.md, section 4.3).
  package func matches(_ filter: QueryFilter, _ document: Document) -> Bool {
    switch filter {
    case .and(let filters): return filters.allSatisfy { matches($0, document) }
    case .or(let filters): return filters.contains { matches($0, document) }
    case .unary(let path, let op):
      guard let bracket = document.fields[path]?.bracket else { return false }
      return switch op {
      case .isNull: bracket == .null
      case .isNaN: bracket == .nan
      case .isNotNull: bracket != .null
      case .isNotNaN: bracket != .null && bracket != .nan
      }
    case .field(let path, let op, let operand):
      guard let value = value(of: path, in: document) else { return false }
      return matches(value, op, operand)
    }
  }

  private func matches(_ value: Value, _ op: FieldOperator, _ operand: Value) -> Bool {
    var elements: [Value] = []
    if case .array(let all) = operand { elements = all }
    var contained: [Value] = []
    if case .array(let all) = value { contained = all }
    switch op {
    case .equal: return isEqual(value, operand)
    case .lessThan: return order(value, operand) == .less
    case .lessThanOrEqual: return [.less, .equal].contains(order(value, operand))
    case .greaterThan: return order(value, operand) == .greater
    case .greaterThanOrEqual: return [.greater, .equal].contains(order(value, operand))
    case .notEqual: return value != .null && operand != .null && Value.compare(value, operand) != .equal
    case .in: return elements.contains { isEqual(value, $0) }
    case .notIn:
      return value != .null && !elements.contains(.null)
        && elements.allSatisfy { Value.compare(value, $0) != .equal }
    case .arrayContains: return operand.bracket != .array && contained.contains { isEqual($0, operand) }
    case .arrayContainsAny:
      return contained.contains { one in elements.contains { $0.bracket != .array && isEqual(one, $0) } }
    }
  }

  /// The order of two values that a range filter can compare: values of one type that are neither null nor NaN.
  private func order(_ value: Value, _ operand: Value) -> Ordering? {
    guard value.bracket == operand.bracket, operand.bracket != .null, operand.bracket != .nan else { return nil }
    return Value.compare(value, operand)
  }

  private func isEqual(_ value: Value, _ operand: Value) -> Bool { order(value, operand) == .equal }

  private func value(of path: FieldPath, in document: Document) -> Value? {
    path.isDocumentName
      ? .reference(database.documentsRoot + "/" + document.path.text) : document.fields[path]
  }

  /// Returns the paths of a query's results in their order. `orders` is the complete order, ending with the name.
  package func results(_ query: Query, orders: [Order], in documents: [Document]) -> [String] {
    var rows: [(key: [Value], path: String)] = []
    for document in documents where isInScope(document.path, of: query) {
      if let filter = query.filter, !matches(filter, document) { continue }
      let key = orders.compactMap { value(of: $0.path, in: document) }
      guard key.count == orders.count else { continue }
      if let start = query.start, !start.values.isEmpty {
        let order = compare(key, start.values, orders)
        if order == .less || order == .equal && !start.isBefore { continue }
      }
      if let end = query.end, !end.values.isEmpty {
        let order = compare(key, end.values, orders)
        if order == .greater || order == .equal && end.isBefore { continue }
      }
      rows.append((key, document.path.text))
    }
    rows.sort { compare($0.key, $1.key, orders) == .less }
    return rows.dropFirst(query.offset).prefix(query.limit ?? .max).map(\.path)
  }

  /// Returns the values by which a query orders a document, for use in a cursor.
  package func position(of document: Document, orders: [Order]) -> [Value] {
    orders.compactMap { value(of: $0.path, in: document) }
  }

  private func isInScope(_ path: ResourcePath, of query: Query) -> Bool {
    let collection = path.parent
    if let id = query.collectionID, !collection.lastSegment.elementsEqual(id.utf8) { return false }
    return query.includesDescendants ? collection.parent.isAtOrBelow(query.parent) : collection.parent == query.parent
  }

  private func compare(_ key: [Value], _ prefix: [Value], _ orders: [Order]) -> Ordering {
    for (index, value) in prefix.enumerated() {
      let order = Value.compare(key[index], value)
      if order != .equal { return orders[index].isDescending ? order.reversed : order }
    }
    return .equal
  }
}
