package import DocumentModel
import KeyEncoding
package import WireFormat

/// A checked and completed query: its order ends in the name, its cursors are encoded, and its filter is expanded
/// into alternatives.
package final class ResolvedQuery: Sendable {
  /// The query as the client sent it.
  package let query: Query
  /// The database it runs in.
  package let database: DatabaseID
  /// The complete order, which ends in `__name__` (firestore-api.md, section 4.2).
  package let orders: [Order]
  /// The filter as alternatives, each a list of conditions that must all hold. Without a filter: one empty
  /// alternative.
  let alternatives: [[Condition]]
  /// The positions at which results start and end, as codes of the first fields of the order.
  let start: SortBound?
  let end: SortBound?
  /// The plan of earlier runs, or `nil` if it is not kept.
  let memo: PlanMemo?

  /// One condition of an alternative.
  enum Condition: Hashable, Sendable {
    case field(FieldPath, FieldOperator, Value)
    case unary(FieldPath, UnaryOperator)
  }

  /// Checks and completes a query.
  ///
  /// If a limit or an offset selects results, the `aggregated` fields are added to the order, after the requested
  /// fields and before the name, as in the indexes of production. An enterprise database orders only by the
  /// requested fields and then by name (firestore-api.md, section 4.2). With `keepsPlan`, all copies of the query share
  /// their plan, if the plan permits; use it for a query that is run several times.
  /// - Throws: ``QueryError`` for the first rule that the query violates, with the documented text.
  package init(
    _ query: Query, in database: DatabaseID, edition: Edition = .standard, aggregated: [FieldPath] = [],
    keepsPlan: Bool = false
  ) throws(QueryError) {
    memo = keepsPlan ? PlanMemo() : nil
    self.query = query
    self.database = database
    if let limit = query.limit, limit < 0 { throw .negativeLimit }
    if query.offset < 0 { throw .negativeOffset }
    // The checks below take time and memory proportional to the square of this number.
    let writtenParts = query.orders.count + (query.filter?.conditionCount ?? 0)
    guard writtenParts <= QueryLimits.writtenPartsMax else { throw .tooComplex(writtenParts) }
    try query.findNearest?.check(in: query)
    var checker = FilterChecker(database: database)
    if let filter = query.filter { try checker.check(filter, isInOr: false) }
    try checker.finish()
    alternatives = try FilterChecker.expand(query.filter).filter { !FilterChecker.contradictsItself($0) }
    let isCounted = query.limit != nil || query.offset > 0
    switch edition {
    case .standard:
      orders = try Self.complete(
        query.orders, inequalityFields: checker.inequalityFields, aggregated: isCounted ? aggregated.sorted() : [])
    case .enterprise: orders = try Self.appendName(to: query.orders)
    }
    let partsOfEach = query.orders.count + (query.parent.isRoot ? 0 : 1)
    let parts = alternatives.reduce(0) { $0 + $1.count + partsOfEach }
    guard parts <= QueryLimits.partsMax else { throw .tooComplex(parts) }
    start = try Self.bound(query.start, orders, database)
    end = try Self.bound(query.end, orders, database)
  }

  /// Makes a query that lists the scope of a plain query in a complete order, starting after a position in it.
  package init(
    listing query: Query, orders: [Order], after place: [UInt8]?, limit: Int, in database: DatabaseID
  ) {
    var query = query
    query.orders = orders
    query.limit = limit
    memo = nil
    self.query = query
    self.database = database
    self.orders = orders
    alternatives = [[]]
    start = place.map { SortBound(code: $0, isBefore: false) }
    end = nil
  }

  /// Returns the position of a document in the order, for ``init(listing:orders:behind:limit:in:)``, or `nil` if the
  /// document lacks a field of the order.
  /// - Throws: ``WireError`` if the stored bytes are malformed.
  package func place(of key: DocumentKey, _ fields: EncodedMap) throws(WireError) -> [UInt8]? {
    var place: [UInt8] = []
    return try SortKey.append(orders, fields, name: NameCode.encode(key.path), to: &place) ? place : nil
  }

  private static func complete(
    _ asked: [Order], inequalityFields: [FieldPath], aggregated: [FieldPath]
  ) throws(QueryError) -> [Order] {
    var orders: [Order] = []
    for order in asked {
      if orders.last?.path.isDocumentName == true { throw .orderAfterName }
      orders.append(order)
    }
    let hasName = orders.last?.path.isDocumentName == true
    let isDescending = asked.last?.isDescending ?? false
    for field in inequalityFields where !orders.contains(where: { $0.path == field }) && !field.isDocumentName {
      if hasName { throw .orderAfterName }
      orders.append(Order(field, isDescending: isDescending))
    }
    if hasName { return orders }
    for field in aggregated where !orders.contains(where: { $0.path == field }) {
      orders.append(Order(field, isDescending: isDescending))
    }
    orders.append(Order(FieldPath(field: "__name__"), isDescending: isDescending))
    return orders
  }

  private static func appendName(to asked: [Order]) throws(QueryError) -> [Order] {
    if asked.dropLast().contains(where: \.path.isDocumentName) { throw .orderAfterName }
    if asked.last?.path.isDocumentName == true { return asked }
    return asked + [Order(FieldPath(field: "__name__"))]
  }

  private static func bound(
    _ bound: QueryBound?, _ orders: [Order], _ database: DatabaseID
  ) throws(QueryError) -> SortBound? {
    guard let bound, !bound.values.isEmpty else { return nil }
    guard bound.values.count <= orders.count else { throw .cursorTooLong }
    var code: [UInt8] = []
    for (value, order) in zip(bound.values, orders) {
      let start = code.count
      if order.path.isDocumentName {
        guard let name = NameCode.path(of: value, in: database) else { throw .cursorNameNotReference }
        code.append(contentsOf: name)
        code.append(SortKey.endOfName)
      } else {
        _ = OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax)
      }
      if order.isDescending { SortKey.invert(&code, from: start) }
    }
    return SortBound(code: code, isBefore: bound.isBefore)
  }
}

extension QueryFilter {
  /// The number of conditions as written, including repeated ones.
  fileprivate var conditionCount: Int {
    switch self {
    case .field, .unary: 1
    case .and(let filters), .or(let filters): filters.reduce(0) { $0 + $1.conditionCount }
    }
  }
}

/// Checks a filter by the rules of firestore-api.md, section 4.4, and collects its inequality fields.
private struct FilterChecker {
  let database: DatabaseID
  /// Sorted, without duplicates.
  private(set) var inequalityFields: [FieldPath] = []
  private var negations = 0
  private var hasNotIn = false
  private var hasDisjunction = false
  private var hasNameEquality = false

  init(database: DatabaseID) { self.database = database }

  mutating func check(_ filter: QueryFilter, isInOr: Bool) throws(QueryError) {
    switch filter {
    case .and(let filters):
      for filter in filters { try check(filter, isInOr: isInOr) }
    case .or(let filters):
      hasDisjunction = true
      for filter in filters { try check(filter, isInOr: true) }
    case .unary(let path, let op):
      if op == .isNotNaN || op == .isNotNull {
        negations += 1
        noteInequality(path)
      }
    case .field(let path, let op, let value): try check(path, op, value)
    }
  }

  private mutating func check(_ path: FieldPath, _ op: FieldOperator, _ value: Value) throws(QueryError) {
    var operands = [value]
    switch op {
    case .in, .arrayContainsAny, .notIn:
      guard case .array(let elements) = value else { throw .operandNotArray(op) }
      guard !elements.isEmpty else { throw .emptyOperand(op) }
      let max = op == .notIn ? QueryLimits.notInOperandsMax : QueryLimits.inOperandsMax
      guard elements.count <= max else { throw .tooManyOperands(op, max: max) }
      if op == .notIn { hasNotIn = true } else { hasDisjunction = true }
      operands = elements
    default: break
    }
    if op == .notEqual || op == .notIn { negations += 1 }
    if op.isInequality { noteInequality(path) }
    guard path.isDocumentName else { return }
    if op == .equal || op == .in { hasNameEquality = true }
    for operand in operands {
      guard case .reference(let name) = operand else { throw .nameOperandNotReference }
      guard NameCode.path(of: operand, in: database) != nil else { throw .otherDatabase(name) }
    }
  }

  private mutating func noteInequality(_ path: FieldPath) {
    guard !inequalityFields.contains(path) else { return }
    inequalityFields.append(path)
    inequalityFields.sort()
  }

  func finish() throws(QueryError) {
    if negations > 1 { throw .severalNegations }
    if hasNotIn, hasDisjunction { throw .notInMixed }
    if hasNameEquality, !inequalityFields.isEmpty, !inequalityFields.contains(where: \.isDocumentName) {
      throw .nameEqualityBesideInequality
    }
    guard inequalityFields.count <= QueryLimits.inequalityFieldsMax else {
      throw .tooManyInequalityFields(inequalityFields.count)
    }
  }

  /// Expands a filter, including IN and ARRAY_CONTAINS_ANY, into alternatives. No alternative occurs twice, and no
  /// condition occurs twice in an alternative.
  static func expand(_ filter: QueryFilter?) throws(QueryError) -> [[ResolvedQuery.Condition]] {
    guard let filter else { return [[]] }
    let alternatives = try alternatives(of: filter)
    for alternative in alternatives { try checkAlternative(alternative) }
    return alternatives
  }

  private static func alternatives(of filter: QueryFilter) throws(QueryError) -> [[ResolvedQuery.Condition]] {
    switch filter {
    case .unary(let path, let op): return [[.unary(path, op)]]
    case .field(let path, .in, .array(let elements)): return try distinct(elements.map { [.field(path, .equal, $0)] })
    case .field(let path, .arrayContains, let value): return [[containing(path, value)]]
    case .field(let path, .arrayContainsAny, .array(let elements)):
      return try distinct(elements.map { [containing(path, $0)] })
    case .field(let path, let op, let value): return [[.field(path, op, value)]]
    case .or(let filters):
      var all: [[ResolvedQuery.Condition]] = []
      for filter in filters { all = try distinct(all + alternatives(of: filter)) }
      return filters.isEmpty ? [[]] : all
    case .and(let filters):
      if let conditions = conditions(of: filters) { return [conditions] }
      var product: [[ResolvedQuery.Condition]] = [[]]
      for filter in filters {
        let parts = try alternatives(of: filter)
        product = try distinct(product.flatMap { head in parts.map { head + $0 } })
      }
      return product
    }
  }

  /// Returns the conditions of filters that must all match, without repeated ones, if each filter is one condition
  /// and they are few; otherwise `nil`.
  private static func conditions(of filters: [QueryFilter]) -> [ResolvedQuery.Condition]? {
    guard filters.count <= comparedMax else { return nil }
    var conditions: [ResolvedQuery.Condition] = []
    for filter in filters {
      let condition: ResolvedQuery.Condition
      switch filter {
      case .unary(let path, let op): condition = .unary(path, op)
      case .field(_, .in, _), .field(_, .arrayContainsAny, _), .and, .or: return nil
      case .field(let path, .arrayContains, let value): condition = containing(path, value)
      case .field(let path, let op, let value): condition = .field(path, op, value)
      }
      if !conditions.contains(condition) { conditions.append(condition) }
    }
    return conditions
  }

  /// The number of conditions up to which comparing them all costs less than their hashes.
  private static let comparedMax = 8

  /// An array-contains with null, NaN or an array matches nothing. All such conditions on a field are represented by
  /// one.
  private static func containing(_ path: FieldPath, _ value: Value) -> ResolvedQuery.Condition {
    let isNothing = value.bracket == .null || value.bracket == .nan || value.bracket == .array
    return .field(path, .arrayContains, isNothing ? .null : value)
  }

  /// Removes repeated alternatives and checks that there are not too many.
  private static func distinct(
    _ alternatives: [[ResolvedQuery.Condition]]
  ) throws(QueryError) -> [[ResolvedQuery.Condition]] {
    var known: Set<Set<ResolvedQuery.Condition>> = []
    var distinct: [[ResolvedQuery.Condition]] = []
    for conditions in alternatives {
      var seen: Set<ResolvedQuery.Condition> = []
      let once = conditions.filter { seen.insert($0).inserted }
      if known.insert(seen).inserted { distinct.append(once) }
    }
    if distinct.count > QueryLimits.disjunctionsMax { throw .tooManyDisjunctions(distinct.count) }
    return distinct
  }

  /// Whether an alternative requires a field to equal two different values. Such alternatives do not count towards
  /// the limit on the parts of a query.
  static func contradictsItself(_ conditions: [ResolvedQuery.Condition]) -> Bool {
    var wanted: [FieldPath: [UInt8]] = [:]
    for case .field(let path, .equal, let value) in conditions {
      let code = OrderedCode.encode(value)
      if let other = wanted.updateValue(code, forKey: path), other != code { return true }
    }
    return false
  }

  private static func checkAlternative(_ conditions: [ResolvedQuery.Condition]) throws(QueryError) {
    let containing = conditions.count { condition in
      if case .field(_, .arrayContains, _) = condition { true } else { false }
    }
    if containing > 1 { throw .severalArrayContains }
  }
}
