import DocumentModel
import DocumentStore
import KeyEncoding

/// Finds the declared indexes that give a query's candidates in its order.
///
/// An index serves an alternative of the filter where its first fields are compared for equality there, in any order,
/// and the rest are the fields of the query's order in their directions, or all of them against. Several indexes with
/// the same rest serve together.
struct OrderedIndexPlanner {
  /// What was found.
  struct Result {
    var scans: OrderedIndexIterator
    /// Whether scans read their entries from the highest to the lowest.
    var isDescending: Bool
    /// Whether the scans see to the cursors.
    var coversCursors: Bool
    /// Whether every equality is one that a scan starts with or is bounded by.
    var coversEqualities: Bool
    /// Fields that every candidate has.
    var fields: Set<FieldPath>
  }

  /// An equality of an alternative.
  private struct Equality {
    var condition: ResolvedQuery.Condition
    var path: FieldPath
    var isContains: Bool
    var code: [UInt8]
  }

  private let query: ResolvedQuery
  private let alternatives: [[ResolvedQuery.Condition]]
  private let indexes: [StoredIndex]
  private let isGroup: Bool
  private let equalities: [[Equality]]
  /// Whether the name descends, so that entries are read backwards.
  private let isDescending: Bool

  init(_ query: ResolvedQuery, _ alternatives: [[ResolvedQuery.Condition]], _ indexes: [StoredIndex], isGroup: Bool) {
    self.query = query
    self.alternatives = alternatives
    self.indexes = indexes.filter { index in
      !index.definition.fields.contains { if case .vector = $0.mode { true } else { false } }
    }
    self.isGroup = isGroup
    equalities = alternatives.map { $0.compactMap(Self.equality) }
    isDescending = query.orders.last?.isDescending ?? false
  }

  /// The scans, or `nil` where indexes are missing. `collection` is the code of the path of the one collection, if
  /// it is one.
  func find(in collection: [UInt8]?) -> Result? {
    guard !indexes.isEmpty, query.orders.last?.path.isDocumentName == true else { return nil }
    let orders = query.orders.dropLast()
    if let found = find(orders, in: collection, isWhole: true) { return found }
    // A field that has one value in all results takes no part in their order.
    let fixed = orders.filter { isFixed($0.path) }.map(\.path)
    guard !fixed.isEmpty else { return nil }
    return find(orders.filter { !fixed.contains($0.path) }[...], in: collection, isWhole: false)
  }

  private func isFixed(_ path: FieldPath) -> Bool {
    let codes = Set(equalities.map { $0.first { $0.path == path && !$0.isContains }?.code })
    return codes.count == 1 && codes.first != .some(nil)
  }

  private func find(_ orders: ArraySlice<Order>, in collection: [UInt8]?, isWhole: Bool) -> Result? {
    let tail = orders.map { OrderedIndexIterator.TailField(path: $0.path, isInverted: $0.isDescending != isDescending) }
    var found: [OrderedIndexIterator.Alternative] = []
    var coversEqualities = true
    var coversCursors = isWhole || (query.start == nil && query.end == nil)
    for (conditions, equalities) in zip(alternatives, equalities) {
      guard let (scans, used) = scans(equalities, tail) else { return nil }
      var bounds = TailBounds(tail, conditions)
      if isWhole {
        let isCovered = bounds.apply(query.start, query.end, isDescending: isDescending, tail, in: collection)
        coversCursors = coversCursors && isCovered
      }
      let covered = bounds.covered.union(used.map(\.condition))
      if !equalities.allSatisfy({ covered.contains($0.condition) }) { coversEqualities = false }
      var texts = used.map { "\($0.path.text) \($0.isContains ? "contains" : "==") …" } + bounds.texts
      if texts.isEmpty { texts = ["all"] }
      found.append(
        OrderedIndexIterator.Alternative(
          scans: scans, lower: bounds.lower, upper: bounds.upper, covered: covered,
          text: texts.joined(separator: " and ") + (bounds.isBetweenCursors ? " between cursors" : "")))
    }
    return Result(
      scans: OrderedIndexIterator(alternatives: found, tail: tail, isGroup: isGroup, parent: query.query.parent),
      isDescending: isDescending,
      coversCursors: coversCursors, coversEqualities: coversEqualities, fields: Set(orders.map(\.path)))
  }

  /// The scans for one alternative: the index that sees to most equalities, then others that see to more of them.
  private func scans(
    _ equalities: [Equality], _ tail: [OrderedIndexIterator.TailField]
  ) -> ([OrderedIndexIterator.Scan], used: [Equality])? {
    var scans: [OrderedIndexIterator.Scan] = []
    var used: [Equality] = []
    var best: (scan: OrderedIndexIterator.Scan, used: [Equality])?
    repeat {
      best = nil
      for index in indexes {
        guard let (scan, equalities) = match(index, equalities, tail) else { continue }
        let fresh = equalities.filter { one in !used.contains { $0.condition == one.condition } }
        guard scans.isEmpty || !fresh.isEmpty, fresh.count > best?.used.count ?? -1 else { continue }
        best = (scan, fresh)
      }
      if let best {
        scans.append(best.scan)
        used += best.used
      }
    } while best != nil
    return scans.isEmpty ? nil : (scans, used)
  }

  private func match(
    _ index: StoredIndex, _ equalities: [Equality], _ tail: [OrderedIndexIterator.TailField]
  ) -> (OrderedIndexIterator.Scan, [Equality])? {
    let fields = index.definition.fields
    let headCount = fields.count - tail.count
    guard headCount >= 0 else { return nil }
    for (field, wanted) in zip(fields[headCount...], tail) {
      guard field.path == wanted.path, field.mode == (wanted.isInverted ? .descending : .ascending) else { return nil }
    }
    var codes: [UInt8] = []
    var used: [Equality] = []
    for field in fields[..<headCount] {
      let isContains = field.mode == .contains
      guard let equality = equalities.first(where: { $0.path == field.path && $0.isContains == isContains }) else {
        return nil
      }
      let start = codes.count
      codes += equality.code
      if field.mode == .descending { OrderedCode.invert(&codes, from: start) }
      used.append(equality)
    }
    return (OrderedIndexIterator.Scan(index: index, codes: codes, fieldCount: headCount), used)
  }

  private static func equality(_ condition: ResolvedQuery.Condition) -> Equality? {
    guard let (value, isContains) = condition.equalValue, !condition.path.isDocumentName else { return nil }
    var code: [UInt8] = []
    // A code that was cut stands for all values that begin like it, which the order does not keep apart.
    guard OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax) else { return nil }
    return Equality(condition: condition, path: condition.path, isContains: isContains, code: code)
  }
}

extension ResolvedQuery.Condition {
  /// The one value, or array element, that meets the condition; `nil` for what is no equality.
  var equalValue: (value: Value, isContains: Bool)? {
    switch self {
    case .field(_, .equal, let value): (value, false)
    case .field(_, .arrayContains, let value): (value, true)
    case .unary(_, .isNull): (.null, false)
    case .unary(_, .isNaN): (.double(.nan), false)
    default: nil
    }
  }
}

/// What the conditions on the fields of an order, and the cursors, leave of the codes of these fields.
private struct TailBounds {
  private(set) var lower: [UInt8] = []
  private(set) var upper: [UInt8]?
  private(set) var covered: Set<ResolvedQuery.Condition> = []
  private(set) var texts: [String] = []
  private(set) var isBetweenCursors = false

  /// Narrows the codes field by field, as long as the fields before have one value.
  init(_ tail: [OrderedIndexIterator.TailField], _ conditions: [ResolvedQuery.Condition]) {
    var prefix: [UInt8] = []
    for field in tail {
      let bounds = ValueBounds(on: field.path, [conditions])
      guard bounds.isBounded else { break }
      covered.formUnion(bounds.covered)
      texts.append(bounds.text)
      // Two equalities on one field leave nothing, which their bounds tell.
      if let point = bounds.point, bounds.lower == point, bounds.upper == QueryPlanner.successor(of: point) {
        let start = prefix.count
        prefix += point
        if field.isInverted { OrderedCode.invert(&prefix, from: start) }
        lower = prefix
        upper = QueryPlanner.successor(of: prefix)
        continue
      }
      let (low, high) = field.isInverted ? Self.inverted(bounds.lower, bounds.upper) : (bounds.lower, bounds.upper)
      lower = prefix + low
      upper = high.map { prefix + $0 } ?? (prefix.isEmpty ? nil : QueryPlanner.successor(of: prefix))
      break
    }
  }

  /// The range of the inverted codes of what lies in a range of codes.
  private static func inverted(_ lower: [UInt8], _ upper: [UInt8]?) -> ([UInt8], [UInt8]?) {
    let low = upper.map { QueryPlanner.successor(of: $0.map { ~$0 }) } ?? []
    return (low, lower.isEmpty ? nil : QueryPlanner.successor(of: lower.map { ~$0 }))
  }

  /// Narrows the range to what lies between cursors; returns whether that is all there is to them.
  mutating func apply(
    _ start: SortBound?, _ end: SortBound?, isDescending: Bool, _ tail: [OrderedIndexIterator.TailField],
    in collection: [UInt8]?
  ) -> Bool {
    var coversCursors = true
    for (bound, isLower) in [(start, !isDescending), (end, isDescending)] {
      guard let bound else { continue }
      let edge = Self.edge(
        bound.plain(isDescending: isDescending), isBehind: bound.isBefore == isDescending, tail, in: collection)
      guard let edge else {
        coversCursors = false
        continue
      }
      isBetweenCursors = true
      if isLower {
        if Ordering.raw(lower, edge) == .less { lower = edge }
      } else if upper.map({ Ordering.raw(edge, $0) == .less }) ?? true {
        upper = edge
      }
    }
    return coversCursors
  }

  /// The lowest key of entries at or behind a position, or only behind it; `nil` where it is none.
  private static func edge(
    _ position: [UInt8], isBehind: Bool, _ tail: [OrderedIndexIterator.TailField], in collection: [UInt8]?
  ) -> [UInt8]? {
    var valueCount = 0
    for field in tail where valueCount < position.count {
      let rest = position[valueCount...].map { field.isInverted ? ~$0 : $0 }
      let left = rest.withUnsafeBytes { bytes -> Int? in
        var bytes = bytes
        return OrderedCode.skipValue(&bytes) == nil ? nil : bytes.count
      }
      guard let left else { return nil }
      valueCount = position.count - left
    }
    let value = Array(position[..<valueCount])
    let name = Array(position[valueCount...])
    if name.isEmpty { return isBehind ? QueryPlanner.successor(of: value) : value }
    guard let collection else {
      guard name.last == SortKey.endOfName else { return nil }
      // Names that extend this one go on with more than a zero byte.
      return value + name.dropLast() + (isBehind ? [0] : [])
    }
    switch NameRange.place(of: name, in: collection) {
    case .before: return value
    case .behind: return value.isEmpty ? nil : QueryPlanner.successor(of: value)
    case .at(let id, let isBehindID):
      var key = value
      OrderedCode.append(lastID: id, to: &key)
      if isBehind || isBehindID { key.append(0) }
      return key
    }
  }
}
