import DocumentModel

/// Parses the conditions of `--where`: `age >= 18`, `tags contains "home" and (done == false or done is null)`.
struct ConditionText {
  static let operators =
    "==, !=, <, <=, >, >=, in, not-in, contains, contains-any, is null, is nan, is not null, is not nan"

  private var values: ValueText

  /// Returns the filter that a text describes.
  /// - Throws: ``CommandFailure`` if the text is malformed; the message names the position and what was expected there.
  static func filter(_ text: String, in collection: ResourcePath, of database: DatabaseID) throws -> QueryFilter {
    var reader = ConditionText(values: ValueText(text, option: "where", in: collection, of: database))
    let filter = try reader.alternatives(depth: 0)
    try reader.values.expectEnd(or: "'and' or 'or'")
    return filter
  }

  private static let depthMax = 20

  /// Parses conditions that are joined by `or`, which binds less tightly than `and`.
  private mutating func alternatives(depth: Int) throws -> QueryFilter {
    var filters = [try conjunction(depth: depth)]
    while values.take(word: "or") { filters.append(try conjunction(depth: depth)) }
    return filters.count == 1 ? filters[0] : .or(filters)
  }

  private mutating func conjunction(depth: Int) throws -> QueryFilter {
    var filters = [try term(depth: depth)]
    while values.take(word: "and") { filters.append(try term(depth: depth)) }
    return filters.count == 1 ? filters[0] : .and(filters)
  }

  private mutating func term(depth: Int) throws -> QueryFilter {
    guard values.take(symbol: "(") else { return try condition() }
    guard depth < Self.depthMax else { throw values.failure("conditions are nested deeper than \(Self.depthMax)") }
    let filter = try alternatives(depth: depth + 1)
    guard values.take(symbol: ")") else { throw values.failure("expected ')', 'and' or 'or'") }
    return filter
  }

  private mutating func condition() throws -> QueryFilter {
    let path = try values.fieldPath()
    for (symbol, op) in Self.symbols where values.take(symbol: symbol) { return try comparison(path, op) }
    if values.take(symbol: "=") { throw values.failure("write == instead of =") }
    if values.take(word: "is") { return .unary(path, try test()) }
    for (word, op) in Self.words where values.take(word: word) { return try comparison(path, op) }
    if values.take(word: "not") {
      guard values.take(word: "in") else { throw values.failure("expected 'in' after 'not'") }
      return try comparison(path, .notIn)
    }
    throw values.failure("expected an operator after \(path.text): \(Self.operators)")
  }

  private static let symbols: [(String, FieldOperator)] = [
    ("==", .equal), ("!=", .notEqual), ("<=", .lessThanOrEqual), (">=", .greaterThanOrEqual), ("<", .lessThan),
    (">", .greaterThan),
  ]

  private static let words: [(String, FieldOperator)] = [
    ("in", .in), ("not-in", .notIn), ("contains-any", .arrayContainsAny), ("contains", .arrayContains),
    ("array-contains-any", .arrayContainsAny), ("array-contains", .arrayContains),
  ]

  private mutating func test() throws -> UnaryOperator {
    let isNegated = values.take(word: "not")
    if values.take(word: "null") { return isNegated ? .isNotNull : .isNull }
    if values.take(word: "nan") || values.take(word: "NaN") { return isNegated ? .isNotNaN : .isNaN }
    throw values.failure("expected 'null' or 'nan' after 'is'")
  }

  private mutating func comparison(_ path: FieldPath, _ op: FieldOperator) throws -> QueryFilter {
    let value = path.isDocumentName ? try values.name() : try values.value()
    switch (op, value) {
    case (.in, .array), (.notIn, .array), (.arrayContainsAny, .array): break
    case (.in, _), (.notIn, _), (.arrayContainsAny, _):
      throw values.failure("expected a list such as [1, 2] after 'in', 'not-in' or 'contains-any'")
    // Like the client libraries, send equality with null as a test: as a comparison it would match nothing.
    case (.equal, .null): return .unary(path, .isNull)
    case (.notEqual, .null): return .unary(path, .isNotNull)
    case (.equal, .double(let number)) where number.isNaN: return .unary(path, .isNaN)
    case (.notEqual, .double(let number)) where number.isNaN: return .unary(path, .isNotNaN)
    default: break
    }
    return .field(path, op, value)
  }
}
