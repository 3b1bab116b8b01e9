import DocumentModel
import DocumentStore
import FieldMatch
import KeyValueStore

/// Picks the way to answer a query from what is indexed: every field of every document has its entries.
struct QueryPlanner {
  private let query: ResolvedQuery
  private var reader: DocumentReader
  /// Entries or documents of the past are not in the tables of now.
  private let readsPast: Bool
  private let isSorted: Bool

  init(_ query: ResolvedQuery, _ snapshot: any KeyValueSnapshot, readsPast: Bool, isSorted: Bool) {
    self.query = query
    self.readsPast = readsPast
    self.isSorted = isSorted
    reader = DocumentReader(snapshot)
  }

  mutating func plan() throws -> QueryPlan {
    if query.query.limit == 0 { return make(.nothing, isOrdered: true) }
    guard let collectionID = query.query.collectionID, !query.query.includesDescendants else {
      return try planManyCollections()
    }
    let path = query.query.parent.appending(collectionID)
    guard let row = try reader.collection(path) else { return make(.nothing, isOrdered: true) }
    if !readsPast {
      if let plan = try planEntries(path, row.number) { return plan }
    }
    return planNames(path)
  }

  private func make(_ source: QueryPlan.Source, isOrdered: Bool, isDescending: Bool = false) -> QueryPlan {
    QueryPlan(
      source: source, isOrdered: isOrdered, isSorted: isSorted, isDescending: isDescending,
      isGroup: query.query.includesDescendants, orders: query.orders, limit: query.query.limit)
  }

  private func planNames(_ path: ResourcePath) -> QueryPlan {
    let byName = query.orders.count == 1 && !query.orders[0].isDescending
    return make(.names(path), isOrdered: byName)
  }

  private mutating func planManyCollections() throws -> QueryPlan {
    let byName = query.orders.count == 1 && !query.orders[0].isDescending
    if query.query.collectionID == nil, query.query.includesDescendants {
      return make(.walk(below: query.query.parent), isOrdered: byName)
    }
    var paths: [ResourcePath] = []
    if let id = query.query.collectionID {
      paths = try collections(ofGroup: id)
    } else {
      var segments = try SubtreeSegments(reader.snapshot, below: query.query.parent)
      while let segment = try segments.next() { paths.append(query.query.parent.appending(segment)) }
    }
    return make(paths.isEmpty ? .nothing : .collections(paths), isOrdered: paths.isEmpty)
  }

  /// The collections of an id at or below the parent, in no particular order.
  private mutating func collections(ofGroup id: String) throws -> [ResourcePath] {
    try reader.collections(ofGroup: Array(id.utf8)).filter { $0.parent.isAtOrBelow(query.query.parent) }
  }

  // MARK: Entries

  private mutating func planEntries(_ path: ResourcePath, _ number: UInt64) throws -> QueryPlan? {
    // Names come in order in every point range, so equalities serve any order on the name alone.
    let byName = query.orders.count == 1
    var alternatives: [[QueryPlan.EntryUse]] = []
    for conditions in query.alternatives {
      guard let uses = try equalities(conditions, number) else { continue }
      alternatives.append(uses)
    }
    if alternatives.isEmpty { return make(.nothing, isOrdered: true) }
    let usable = alternatives.allSatisfy { !$0.isEmpty }
    if usable, byName { return point(path, alternatives, isOrdered: true, isDescending: query.orders[0].isDescending) }
    if usable, try isSelective(alternatives) { return point(path, alternatives, isOrdered: false, isDescending: false) }
    if let plan = try planOrderedEntries(path, number) { return plan }
    return usable ? point(path, alternatives, isOrdered: false, isDescending: false) : nil
  }

  private func point(
    _ path: ResourcePath, _ alternatives: [[QueryPlan.EntryUse]], isOrdered: Bool, isDescending: Bool
  ) -> QueryPlan {
    let source: QueryPlan.Source =
      if alternatives.count > 1 {
        .union(path, alternatives)
      } else if alternatives[0].count > 1 {
        .intersection(path, alternatives[0])
      } else {
        .entries(path, alternatives[0][0])
      }
    return make(source, isOrdered: isOrdered, isDescending: isDescending)
  }

  /// The point ranges of an alternative's equalities; `nil` where one is on a field that no document has, so that
  /// nothing matches the alternative.
  private mutating func equalities(
    _ conditions: [ResolvedQuery.Condition], _ collection: UInt64
  ) throws -> [QueryPlan.EntryUse]? {
    var uses: [QueryPlan.EntryUse] = []
    for condition in conditions {
      let path: FieldPath
      let value: Value
      var table = Table.ascendingEntries
      switch condition {
      case .field(let field, .equal, let operand): (path, value) = (field, operand)
      case .field(let field, .arrayContains, let operand):
        (path, value) = (field, operand)
        table = .containmentEntries
      case .unary(let field, .isNull): (path, value) = (field, .null)
      case .unary(let field, .isNaN): (path, value) = (field, .double(.nan))
      default: continue
      }
      if path.isDocumentName { continue }
      guard let field = try reader.fieldNumber(path) else { return nil }
      var code: [UInt8] = []
      // A code that was cut stands for all values that begin like it: the filter tells them apart, but not in name
      // order.
      guard OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax) else { continue }
      uses.append(
        QueryPlan.EntryUse(
          range: EntryRange(
            table: table, collection: collection, field: field, lower: code, upper: successor(of: code), isPoint: true),
          path: path, text: "\(path.text) \(table == .ascendingEntries ? "==" : "contains") …"))
    }
    return uses
  }

  /// Whether the alternatives name few enough documents to sort them rather than to walk an order.
  private func isSelective(_ alternatives: [[QueryPlan.EntryUse]]) throws -> Bool {
    var left = Self.selectiveEntriesMax
    for uses in alternatives {
      guard let use = uses.first else { return false }
      let scan = try EntryScan(reader.snapshot, use.range, isDescending: false)
      while left > 0, try scan.next() != nil { left -= 1 }
    }
    return left > 0
  }

  private static let selectiveEntriesMax = 500

  /// A scan of the entries of the first field of the order, which gives the order itself where the name follows in the
  /// same direction.
  private mutating func planOrderedEntries(_ path: ResourcePath, _ number: UInt64) throws -> QueryPlan? {
    guard let first = query.orders.first, !first.path.isDocumentName else { return nil }
    guard let field = try reader.fieldNumber(first.path) else { return make(.nothing, isOrdered: true) }
    let bounds = range(of: first.path)
    let use = QueryPlan.EntryUse(
      range: EntryRange(
        table: .ascendingEntries, collection: number, field: field, lower: bounds.lower, upper: bounds.upper,
        isPoint: false),
      path: first.path, text: bounds.text.isEmpty ? first.path.text : bounds.text)
    let isOrdered = query.orders.count == 2 && query.orders[1].isDescending == first.isDescending
    return make(.entries(path, use), isOrdered: isOrdered, isDescending: first.isDescending)
  }

  /// The range of codes that the conditions on a field leave, where all alternatives agree on it.
  private func range(of path: FieldPath) -> (lower: [UInt8], upper: [UInt8]?, text: String) {
    guard query.alternatives.count == 1 else { return ([], nil, "") }
    var lower: [UInt8] = []
    var upper: [UInt8]?
    var texts: [String] = []
    for case .field(path, let op, let value) in query.alternatives[0] {
      var code: [UInt8] = []
      let isWhole = OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax)
      // What was cut is compared by the filter; the range only has to be wide enough.
      let stem = isWhole ? code : Array(code.dropLast(2))
      let bracket = [value.bracket.rawValue]
      switch op {
      case .greaterThan, .greaterThanOrEqual:
        raise(&lower, to: stem)
        reduce(&upper, to: successor(of: bracket))
      case .lessThan, .lessThanOrEqual:
        raise(&lower, to: bracket)
        reduce(&upper, to: successor(of: stem))
      case .equal:
        raise(&lower, to: stem)
        reduce(&upper, to: successor(of: stem))
      default: continue
      }
      texts.append("\(path.text) \(op.symbol) …")
    }
    return (lower, upper, texts.joined(separator: " and "))
  }

  private func raise(_ lower: inout [UInt8], to code: [UInt8]) {
    if Ordering.bytes(lower, code) == .less { lower = code }
  }

  private func reduce(_ upper: inout [UInt8]?, to code: [UInt8]) {
    if upper.map({ Ordering.bytes(code, $0) == .less }) ?? true { upper = code }
  }

  /// The lowest code above everything that starts with one.
  private func successor(of code: [UInt8]) -> [UInt8] {
    var successor = code
    while successor.last == 0xFF { successor.removeLast() }
    if let last = successor.indices.last { successor[last] += 1 }
    return successor
  }
}

extension FieldOperator {
  /// The operator as people write it.
  package var symbol: String {
    switch self {
    case .lessThan: "<"
    case .lessThanOrEqual: "<="
    case .greaterThan: ">"
    case .greaterThanOrEqual: ">="
    case .equal: "=="
    case .notEqual: "!="
    case .arrayContains: "contains"
    case .in: "in"
    case .arrayContainsAny: "contains-any"
    case .notIn: "not-in"
    }
  }
}
