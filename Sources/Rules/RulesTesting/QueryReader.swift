import DocumentModel
import FixtureTree
import WireFormat

/// Reads the query of a case.
struct QueryReader {
  let text: TestFileText
  let test: String

  static let operators: [(String, FieldOperator)] = [
    ("==", .equal), ("!=", .notEqual), ("<", .lessThan), ("<=", .lessThanOrEqual), (">", .greaterThan),
    (">=", .greaterThanOrEqual), ("array-contains", .arrayContains), ("in", .in),
    ("array-contains-any", .arrayContainsAny), ("not-in", .notIn),
  ]

  /// Returns `base` with the conditions, orders and limits of the case.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if the query is malformed.
  func query(_ base: Query, _ tree: JSONTree?) throws(FixtureTreeError) -> Query {
    guard let tree else { return base }
    var query = base
    let members = try text.members(tree, "a query", known: ["where", "orderBy", "limit", "offset"], in: test)
    if let conditions = members["where"] {
      let filters = try self.filters(conditions, base)
      query.filter = filters.count == 1 ? filters.first : .and(filters)
    }
    if let orders = members["orderBy"] {
      for element in try text.elements(orders, "\"orderBy\"", in: test) { query.orders.append(try order(element)) }
    }
    if let limit = members["limit"] { query.limit = try text.count(limit, "\"limit\"", in: test) }
    if let offset = members["offset"] { query.offset = try text.count(offset, "\"offset\"", in: test) }
    return query
  }

  private func filters(_ tree: JSONTree, _ query: Query) throws(FixtureTreeError) -> [QueryFilter] {
    var filters: [QueryFilter] = []
    for element in try text.elements(tree, "\"where\"", in: test) { filters.append(try filter(element, query)) }
    return filters
  }

  /// Reads `["field", "op", value]`, `{"or": […]}` or `{"and": […]}`. The JSON reader limits the nesting.
  private func filter(_ tree: JSONTree, _ query: Query) throws(FixtureTreeError) -> QueryFilter {
    if case .object = tree.kind {
      let members = try text.members(tree, "a condition", known: ["and", "or"], in: test)
      guard members.count == 1 else {
        throw text.failure(tree, in: test, "a condition must have either \"and\" or \"or\"")
      }
      if let all = members["and"] { return .and(try filters(all, query)) }
      if let any = members["or"] { return .or(try filters(any, query)) }
    }
    guard case .array(let parts) = tree.kind, parts.count == 3, case .string(let field) = parts[0].kind,
      case .string(let word) = parts[1].kind
    else {
      throw text.failure(tree, in: test, "a condition must be [\"field\", \"==\", value], or {\"or\": [conditions]}")
    }
    guard let operation = Self.operators.first(where: { $0.0 == word })?.1 else {
      let names = Self.operators.map(\.0)
      throw text.failure(
        parts[1], in: test, "unknown operator \"\(word)\"; use one of \(names.joined(separator: ", "))")
    }
    let path = try path(field, parts[0])
    var value = try text.value(parts[2], in: test)
    if path.isDocumentName { value = name(value, query) }
    switch (operation, value) {
    case (.equal, .null): return .unary(path, .isNull)
    case (.notEqual, .null): return .unary(path, .isNotNull)
    case (.equal, .double(let number)) where number.isNaN: return .unary(path, .isNaN)
    case (.notEqual, .double(let number)) where number.isNaN: return .unary(path, .isNotNaN)
    default: return .field(path, operation, value)
    }
  }

  /// Converts document IDs to references to documents of the collection.
  private func name(_ value: Value, _ query: Query) -> Value {
    switch value {
    case .string(let id):
      let collection = query.collectionID.map { query.parent.appending($0) } ?? query.parent
      let path = id.contains("/") ? id : collection.appending(id).text
      return .reference("\(TestFileText.database.documentsRoot)/\(path)")
    case .array(let elements): return .array(elements.map { name($0, query) })
    default: return value
    }
  }

  private func order(_ tree: JSONTree) throws(FixtureTreeError) -> Order {
    var words: [Substring] = []
    if case .string(let written) = tree.kind { words = written.split(separator: " ") }
    if case .array(let parts) = tree.kind {
      for part in parts { words.append(try text.string(part, "an order", in: test)[...]) }
    }
    let isKnown = words.count == 1 || words.count == 2 && ["asc", "desc"].contains(words[1])
    guard isKnown, let field = words.first else {
      throw text.failure(tree, in: test, "an order must be \"field\" or \"field desc\"")
    }
    return Order(try path(String(field), tree), isDescending: words.count == 2 && words[1] == "desc")
  }

  private func path(_ field: String, _ tree: JSONTree) throws(FixtureTreeError) -> FieldPath {
    do throws(ModelError) {
      return try FieldPath(field)
    } catch { throw text.failure(tree, in: test, "\"\(field)\" is not a field path: \(error)") }
  }
}
