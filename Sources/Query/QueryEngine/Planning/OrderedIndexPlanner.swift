import DocumentModel
import DocumentStore
import KeyEncoding

/// Finds the declared indexes that give a query's candidates in the order of the query.
///
/// An index is suitable for an alternative of the filter if the alternative compares the first fields of the index
/// for equality, in any order, and the other fields are those of the query's order, with either the same directions
/// or all of them reversed. Several indexes that end in the same fields can be used together.
struct OrderedIndexPlanner {
  /// The scans that were found.
  struct Result {
    var scans: OrderedIndexIterator
    /// Whether scans read their entries in descending order.
    var isDescending: Bool
    /// Whether the scans guarantee the cursors.
    var coversCursors: Bool
    /// Whether each equality is part of the prefix or the bounds of a scan.
    var coversEqualities: Bool
    /// The fields that every candidate has.
    var fields: Set<FieldPath>
  }

  /// An equality condition of an alternative.
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
  /// Whether the name is in descending order, so that entries are read backwards.
  private let isDescending: Bool

  /// With `reversesNames`, results with equal values of the order's fields come in the opposite order of names.
  init(
    _ query: ResolvedQuery, _ alternatives: [[ResolvedQuery.Condition]], _ indexes: [StoredIndex], isGroup: Bool,
    reversesNames: Bool = false
  ) {
    self.query = query
    self.alternatives = alternatives
    self.indexes = indexes.filter { index in
      index.definition.textLanguage == nil
        && !index.definition.fields.contains { if case .vector = $0.mode { true } else { false } }
    }
    self.isGroup = isGroup
    equalities = alternatives.map { $0.compactMap(Self.equality) }
    isDescending = (query.orders.last?.isDescending ?? false) != reversesNames
  }

  /// Returns the scans, or `nil` if indexes are missing. `collection` is the code of the collection's path, or `nil`
  /// for a collection group.
  func find(in collection: [UInt8]?) -> Result? {
    guard !indexes.isEmpty, query.orders.last?.path.isDocumentName == true else { return nil }
    let orders = query.orders.dropLast()
    if let found = find(orders, in: collection, isWhole: true) { return found }
    // A field that has the same value in all results does not affect their order.
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
      let covered = bounds.covered + used.map(\.condition)
      if !equalities.allSatisfy({ covered.contains($0.condition) }) { coversEqualities = false }
      found.append(
        OrderedIndexIterator.Alternative(
          scans: scans, lower: bounds.lower, upper: bounds.upper, covered: covered,
          subject: .conditions(
            equalities: used.map { ($0.path, $0.isContains) }, bounds: bounds.fields,
            isBetweenCursors: bounds.isBetweenCursors)))
    }
    return Result(
      scans: OrderedIndexIterator(alternatives: found, tail: tail, isGroup: isGroup, parent: query.query.parent),
      isDescending: isDescending,
      coversCursors: coversCursors, coversEqualities: coversEqualities, fields: Set(orders.map(\.path)))
  }

  /// Returns the scans for one alternative: first the index that covers the most equalities, then others that cover
  /// remaining ones.
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
    } while best != nil && used.count < equalities.count
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
    // A truncated code represents all values with the same beginning, and their entries are not in the order of what
    // follows.
    guard OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax) else { return nil }
    return Equality(condition: condition, path: condition.path, isContains: isContains, code: code)
  }
}

extension ResolvedQuery.Condition {
  /// The only value, or array element, that meets the condition, or `nil` if the condition is not an equality.
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

/// The range of the codes of an order's fields that the conditions on these fields and the cursors allow.
private struct TailBounds {
  private(set) var lower: [UInt8] = []
  private(set) var upper: [UInt8]?
  private(set) var covered: [ResolvedQuery.Condition] = []
  /// The bounds on the first fields.
  private(set) var fields: [ValueBounds] = []
  private(set) var isBetweenCursors = false

  /// Narrows the range field by field, as long as all previous fields have a single value.
  init(_ tail: [OrderedIndexIterator.TailField], _ conditions: [ResolvedQuery.Condition]) {
    var prefix: [UInt8] = []
    for field in tail {
      let bounds = ValueBounds(on: field.path, [conditions])
      guard bounds.isBounded else { break }
      covered += bounds.covered
      fields.append(bounds)
      // Two different equalities on a field leave an empty range, which only the bounds show.
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

  /// Returns the range that contains the inverted codes of a range of codes.
  private static func inverted(_ lower: [UInt8], _ upper: [UInt8]?) -> ([UInt8], [UInt8]?) {
    let low = upper.map { QueryPlanner.successor(of: $0.map { ~$0 }) } ?? []
    return (low, lower.isEmpty ? nil : QueryPlanner.successor(of: lower.map { ~$0 }))
  }

  /// Narrows the range to the part between the cursors. Returns whether the range covers them completely.
  mutating func apply(
    _ start: SortBound?, _ end: SortBound?, isDescending: Bool, _ tail: [OrderedIndexIterator.TailField],
    in collection: [UInt8]?
  ) -> Bool {
    var coversCursors = true
    for (bound, isLower) in [(start, !isDescending), (end, isDescending)] {
      guard let bound else { continue }
      let edge = Self.edge(
        bound.plain(isDescending: isDescending), isAfter: bound.isBefore == isDescending, tail, in: collection)
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

  /// Returns the lowest key of entries at or after a position, or only after it; `nil` if no such key is known.
  private static func edge(
    _ position: [UInt8], isAfter: Bool, _ tail: [OrderedIndexIterator.TailField], in collection: [UInt8]?
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
    if name.isEmpty { return isAfter ? QueryPlanner.successor(of: value) : value }
    guard let collection else {
      guard name.last == SortKey.endOfName else { return nil }
      // In names that extend this one, the next byte is greater than zero.
      return value + name.dropLast() + (isAfter ? [0] : [])
    }
    switch NameRange.place(of: name, in: collection) {
    case .before: return value
    case .after: return value.isEmpty ? nil : QueryPlanner.successor(of: value)
    case .at(let id, let isAfterID):
      var key = value
      OrderedCode.append(lastID: id, to: &key)
      if isAfter || isAfterID { key.append(0) }
      return key
    }
  }
}
