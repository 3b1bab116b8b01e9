import DocumentModel
import KeyEncoding

/// The names that the filter and the cursors of a query allow.
struct NameBounds {
  /// Disjoint ranges in ascending order.
  private(set) var ranges: [NameRange] = [.all]
  /// Whether each range is a single name.
  private(set) var isLookup = false
  /// The conditions that the ranges guarantee.
  private(set) var covered: Set<ResolvedQuery.Condition> = []
  /// Whether the ranges guarantee the cursors.
  private(set) var coversCursors = false

  init(_ query: ResolvedQuery, _ alternatives: [[ResolvedQuery.Condition]]) {
    var cursors = NameRange.all
    if query.orders.count == 1 {
      coversCursors = Self.apply(query.start, query.end, isDescending: query.orders[0].isDescending, to: &cursors)
    }
    if let names = lookUp(alternatives, query.database) {
      ranges = names.map { name in
        var range = NameRange(only: name)
        range.raise(to: cursors.lower)
        if let upper = cursors.upper { range.reduce(to: upper) }
        return range
      }
      isLookup = true
    } else {
      if alternatives.count == 1 { narrow(&cursors, alternatives[0], query.database) }
      ranges = [cursors]
    }
    ranges.removeAll(where: \.isEmpty)
  }

  /// Returns the codes of the names if every alternative compares the name for equality, or `nil`.
  private mutating func lookUp(
    _ alternatives: [[ResolvedQuery.Condition]], _ database: DatabaseID
  ) -> [[UInt8]]? {
    var names: Set<[UInt8]> = []
    for conditions in alternatives {
      let name = conditions.lazy.compactMap { Self.name($0, .equal, database) }.first
      guard let name else { return nil }
      names.insert(name)
    }
    // If an alternative has other conditions too, its name must be checked together with them: the candidate may
    // come from the name of another alternative.
    if alternatives.allSatisfy({ $0.count == 1 }) || names.count == 1 {
      for condition in alternatives.joined() {
        guard let name = Self.name(condition, .equal, database), names.contains(name) else { continue }
        covered.insert(condition)
      }
    }
    return names.sorted { Ordering.raw($0, $1) == .less }
  }

  private mutating func narrow(
    _ range: inout NameRange, _ conditions: [ResolvedQuery.Condition], _ database: DatabaseID
  ) {
    for condition in conditions {
      guard case .field(let path, let op, _) = condition, path.isDocumentName,
        let name = Self.name(condition, op, database)
      else { continue }
      switch op {
      case .greaterThan: range.raise(to: NameRange.key(after: name))
      case .greaterThanOrEqual: range.raise(to: NameRange.key(name))
      case .lessThan: range.reduce(to: NameRange.key(name))
      case .lessThanOrEqual: range.reduce(to: NameRange.key(after: name))
      default: continue
      }
      covered.insert(condition)
    }
  }

  private static func name(
    _ condition: ResolvedQuery.Condition, _ wanted: FieldOperator, _ database: DatabaseID
  ) -> [UInt8]? {
    guard case .field(let path, wanted, let value) = condition, path.isDocumentName else { return nil }
    return NameCode.path(of: value, in: database)
  }

  private static func apply(
    _ start: SortBound?, _ end: SortBound?, isDescending: Bool,
    to range: inout NameRange
  ) -> Bool {
    func name(_ bound: SortBound) -> [UInt8]? {
      let code = bound.plain(isDescending: isDescending)
      return code.last == SortKey.endOfName ? code.dropLast() : nil
    }
    for (bound, isLower) in [(start, !isDescending), (end, isDescending)] {
      guard let bound else { continue }
      guard let name = name(bound) else { return false }
      // In descending order, "before" a name means above it in ascending order.
      let key = bound.isBefore == isDescending ? NameRange.key(after: name) : NameRange.key(name)
      if isLower { range.raise(to: key) } else { range.reduce(to: key) }
    }
    return true
  }
}

/// The values of one field that the conditions on the field and the cursors of a query allow.
struct ValueBounds {
  let path: FieldPath
  /// Codes of values, possibly followed by names. The upper one is exclusive.
  private(set) var lower: [UInt8] = []
  private(set) var upper: [UInt8]?
  /// The conditions that the bounds guarantee.
  private(set) var covered: [ResolvedQuery.Condition] = []
  /// Whether the bounds guarantee the cursors.
  private(set) var coversCursors = false
  /// The operators of the conditions, for their text form; `nil` for "is not null".
  private var operators: [FieldOperator?] = []
  /// The complete code of the only value that the conditions allow, if one of them is an equality.
  private(set) var point: [UInt8]?

  /// Collects the conditions on a field if the filter has a single alternative.
  init(on path: FieldPath, _ alternatives: [[ResolvedQuery.Condition]]) {
    self.path = path
    guard alternatives.count == 1 else { return }
    for condition in alternatives[0] where condition.path == path { add(condition) }
  }

  /// Whether a condition bounds the field.
  var isBounded: Bool { !operators.isEmpty }

  /// The conditions in text form.
  var text: String {
    let path = path.text
    let texts = operators.map { $0.map { "\(path) \($0.symbol) …" } ?? "\(path) != null" }
    return (texts.isEmpty ? path : texts.joined(separator: " and ")) + (isBetweenCursors ? " between cursors" : "")
  }

  private var isBetweenCursors = false

  private mutating func add(_ condition: ResolvedQuery.Condition) {
    switch condition {
    case .unary(_, .isNotNull):
      raise(to: QueryPlanner.successor(of: [TypeBracket.null.rawValue]))
      covered.append(condition)
      operators.append(nil)
    case .unary(_, let op) where op == .isNull || op == .isNaN:
      add(.equal, op == .isNull ? .null : .double(.nan), condition)
    case .unary: break
    case .field(_, let op, let value): add(op, value, condition)
    }
  }

  private mutating func add(_ op: FieldOperator, _ value: Value, _ condition: ResolvedQuery.Condition) {
    var code: [UInt8] = []
    let isWhole = OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax)
    // The filter compares truncated values itself. The range only has to be wide enough.
    let stem = isWhole ? code : Array(code.dropLast(2))
    let bracket = [value.bracket.rawValue]
    let after = QueryPlanner.successor(of: stem)
    switch op {
    case .greaterThan, .greaterThanOrEqual:
      raise(to: op == .greaterThan && isWhole ? after : stem)
      reduce(to: QueryPlanner.successor(of: bracket))
    case .lessThan, .lessThanOrEqual:
      raise(to: bracket)
      reduce(to: op == .lessThan && isWhole ? stem : after)
    case .equal:
      raise(to: stem)
      reduce(to: after)
      if isWhole { point = code }
    default: return
    }
    if isWhole { covered.append(condition) }
    operators.append(op)
  }

  /// Narrows the range to the part between the cursors, for an order of this field and the name in the same
  /// direction.
  mutating func apply(
    _ start: SortBound?, _ end: SortBound?, isDescending: Bool, in collection: [UInt8]
  ) {
    coversCursors = true
    for (bound, isLower) in [(start, !isDescending), (end, isDescending)] {
      guard let bound else { continue }
      guard
        let edge = Self.edge(
          bound.plain(isDescending: isDescending), isAfter: bound.isBefore == isDescending, in: collection)
      else {
        coversCursors = false
        continue
      }
      if isLower { raise(to: edge) } else { reduce(to: edge) }
      isBetweenCursors = true
    }
  }

  /// Narrows the range by the first values of the cursors, for an order with further fields.
  mutating func applyFirst(_ start: SortBound?, _ end: SortBound?, isDescending: Bool) {
    for (bound, isLower) in [(start, !isDescending), (end, isDescending)] {
      guard let bound, let value = Self.split(bound.plain(isDescending: isDescending))?.value else { continue }
      if isLower { raise(to: value) } else { reduce(to: QueryPlanner.successor(of: value)) }
      isBetweenCursors = true
    }
  }

  /// Splits a position into the code of its first value and the rest. Returns `nil` if the position does not begin
  /// with a value.
  private static func split(_ position: [UInt8]) -> (value: [UInt8], rest: [UInt8])? {
    let left = position.withUnsafeBytes { bytes -> Int? in
      var rest = bytes
      return OrderedCode.skipValue(&rest) == nil ? nil : rest.count
    }
    return left.map { (Array(position.dropLast($0)), Array(position.suffix($0))) }
  }

  /// Returns the lowest key of the entries at or after a position, or only after it; `nil` if the position does not
  /// begin with a value.
  private static func edge(_ position: [UInt8], isAfter: Bool, in collection: [UInt8]) -> [UInt8]? {
    guard let (value, rest) = split(position) else { return nil }
    if rest.isEmpty { return isAfter ? QueryPlanner.successor(of: value) : value }
    switch NameRange.place(of: rest, in: collection) {
    case .before: return value
    case .after: return QueryPlanner.successor(of: value)
    case .at(let id, let isAfterID):
      var key = value
      OrderedCode.append(lastID: id, to: &key)
      if isAfter || isAfterID { key.append(0) }
      return key
    }
  }

  private mutating func raise(to code: [UInt8]) {
    if Ordering.raw(lower, code) == .less { lower = code }
  }

  private mutating func reduce(to code: [UInt8]) {
    if upper.map({ Ordering.raw(code, $0) == .less }) ?? true { upper = code }
  }
}
