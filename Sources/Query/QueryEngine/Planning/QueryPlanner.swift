package import DocumentModel
package import DocumentStore
import KeyEncoding
import KeyValue
import Matching

/// What is wanted of a plan besides the right results.
package struct PlanOptions: Sendable {
  /// The ways a plan may take.
  package enum Ways: Sendable {
    /// Whatever is best.
    case all
    /// Only names in ascending order, whose scan shows any version.
    case names
  }

  /// The ways it may take.
  package var ways = Ways.all
  /// Whether results have to come in the query's order: a sum needs none.
  package var isOrderNeeded = true
  /// Whether documents are wanted, or only how many there are.
  package var needsDocuments = true
  /// Whether a vector search adds distances to its results: what is computed over results sees them as stored.
  package var addsDistances = true
  /// Fields that a document must have to be a result, as if the order named them.
  package var required: [FieldPath] = []
  /// The indexes that the snapshot shows; `nil` to read them.
  package var indexes: IndexCatalog?
  /// Documents that may change while the query runs before it goes on without entries.
  package var changesMax = 2000

  /// Wants documents in order, in the best way that the indexes of a snapshot allow; `nil` to read which these are.
  package init(indexes: IndexCatalog? = nil) { self.indexes = indexes }
}

/// Picks the way to answer a query from what is indexed: every field of every document has its entries, but for those
/// that are exempt; and there are the indexes that were declared.
struct QueryPlanner {
  private let query: ResolvedQuery
  private let options: PlanOptions
  /// The alternatives that something can match.
  private var alternatives: [[ResolvedQuery.Condition]]
  private var reader: SnapshotReader
  private let indexes: IndexCatalog

  init(_ query: ResolvedQuery, _ snapshot: any KeyValueSnapshot, _ options: PlanOptions) throws(StorageError) {
    self.query = query
    var reader = SnapshotReader(snapshot)
    indexes = if let indexes = options.indexes { indexes } else { try IndexCatalog(&reader) }
    self.options = options
    alternatives = query.alternatives.filter { !$0.contains(where: \.isNeverMet) }
    self.reader = reader
  }

  mutating func plan() throws -> QueryPlan {
    let nothing = QueryPlan(
      scope: .none, access: .names, checks: .none, isGroup: query.query.includesDescendants, orders: query.orders,
      limit: query.query.limit)
    if query.query.limit == 0 || alternatives.isEmpty { return nothing }
    var plan = nothing
    plan.checks = QueryPlan.Checks()
    plan.isSorted = options.isOrderNeeded
    guard let collectionID = query.query.collectionID, !query.query.includesDescendants else {
      plan.scope = .collections(QueryScope(query.query))
      return try planMany(plan) ?? nothing
    }
    let path = query.query.parent.appending(collectionID)
    guard let row = try reader.collection(path) else { return nothing }
    let code = NameCode.encode(path)
    plan.scope = .collection(path, code: code)
    return try planOne(plan, code: code, number: row.number) ?? nothing
  }

  private var isByName: Bool { query.orders.count == 1 }

  // MARK: Choices

  /// The plan for several collections, which come in name order; `nil` where nothing can match.
  private mutating func planMany(_ plan: QueryPlan) throws -> QueryPlan? {
    var plan = plan
    plan.isOrdered = isByName && !query.orders[0].isDescending
    let bounds = NameBounds(query, alternatives)
    plan.names = bounds.ranges
    if options.ways == .all, !bounds.isLookup {
      if query.query.collectionID != nil, query.query.includesDescendants, let ordered = planOrdered(plan, nil) {
        return ordered.plan
      }
      switch try equalities() {
      case .impossible: return nil
      case .some(let points): plan.access = .points(points)
      case .notAll: break
      }
    }
    return finish(plan, bounds)
  }

  /// The plan for one collection; `nil` where nothing can match.
  private mutating func planOne(_ plan: QueryPlan, code: [UInt8], number: UInt64) throws -> QueryPlan? {
    let bounds = NameBounds(query, alternatives)
    var plan = plan
    plan.names = bounds.ranges
    plan.isOrdered = isByName
    plan.isDescending = isByName && query.orders[0].isDescending && options.ways == .all
    if plan.isDescending { plan.names.reverse() }
    if options.ways == .names {
      plan.isOrdered = isByName && !query.orders[0].isDescending
      return finish(plan, bounds)
    }
    if bounds.isLookup { return finish(plan, bounds) }
    let ordered = planOrdered(plan, code)
    var byPoints: QueryPlan?
    switch try equalities() {
    case .impossible: return nil
    case .notAll: break
    case .some(let points):
      if let ordered, ordered.isBetter(than: points) { return ordered.plan }
      plan.access = .points(points)
      let hasBounds = query.start != nil || query.end != nil
      if isByName || !(options.isOrderNeeded || hasBounds) { return finish(plan, bounds) }
      if try isSelective(points, in: number) { return finish(plan, bounds) }
      byPoints = finish(plan, bounds)
    }
    if let ordered { return ordered.plan }
    guard let byValue = try planValues(plan, code: code, number: number) else { return nil }
    return switch byValue {
    case .some(let values)
    where byPoints == nil || ((values.isOrdered || values.isGrouped) && query.query.limit != nil):
      values
    default: byPoints ?? finish(plan, bounds)
    }
  }

  /// A plan with declared indexes.
  private struct OrderedPlan {
    var plan: QueryPlan
    var coversEqualities: Bool

    /// Whether it is at least as good as looking up equalities, whatever these name.
    func isBetter(than points: [[QueryPlan.Point]]) -> Bool {
      guard coversEqualities, case .ordered(let scans) = plan.access else { return false }
      if !scans.tail.isEmpty { return true }
      return zip(scans.alternatives, points).allSatisfy { $0.scans.count < $1.count }
    }
  }

  /// The scans of declared indexes that give the order; `nil` where these are missing. `code` is that of the path of
  /// the one collection, if it is one.
  private func planOrdered(_ plan: QueryPlan, _ code: [UInt8]?) -> OrderedPlan? {
    guard let id = query.query.collectionID else { return nil }
    let ready = indexes.ready(for: id, scope: code == nil ? .collectionGroup : .collection)
    let planner = OrderedIndexPlanner(query, alternatives, ready, isGroup: code == nil)
    guard let found = planner.find(in: code) else { return nil }
    var plan = plan
    // Names are looked at in these scans only where nothing else stands before them.
    if !found.scans.tail.isEmpty || code == nil { plan.names = [.all] }
    plan.access = .ordered(found.scans)
    plan.isOrdered = true
    plan.isDescending = found.isDescending
    plan.checks.bounds = !found.coversCursors
    plan.checks.fields = !hasFields(besides: found.fields)
    plan.checks.filter = !query.query.parent.isRoot && code == nil
    for (conditions, alternative) in zip(alternatives, found.scans.alternatives)
    where !conditions.allSatisfy(alternative.covered.contains) { plan.checks.filter = true }
    return OrderedPlan(plan: plan, coversEqualities: found.coversEqualities)
  }

  /// A scan of the entries of one field: the first of the order, which gives the order itself where the name follows
  /// in the same direction, or one that the filter bounds. `.some(nil)` where no such scan is of use, `nil` where
  /// nothing can match.
  private mutating func planValues(_ plan: QueryPlan, code: [UInt8], number: UInt64) throws -> QueryPlan?? {
    var plan = plan
    plan.names = [.all]
    guard let first = query.orders.first, !first.path.isDocumentName else { return .some(nil) }
    var bounds = ValueBounds(on: first.path, alternatives)
    let givesOrder = query.orders.count == 2 && query.orders[1].isDescending == first.isDescending
    plan.isDescending = first.isDescending
    plan.isGrouped = !givesOrder && options.isOrderNeeded
    if givesOrder {
      bounds.apply(query.start, query.end, isDescending: first.isDescending, in: code)
    } else if let other = try boundsOnAnother(than: bounds, in: number) {
      bounds = other
      plan.isDescending = false
      plan.isGrouped = false
    } else {
      bounds.applyFirst(query.start, query.end, isDescending: first.isDescending)
    }
    if !bounds.isBounded, !options.isOrderNeeded, options.needsDocuments { return .some(nil) }
    guard mayScan(bounds.path, .ascendingEntries) else { return .some(nil) }
    guard let field = try reader.fieldNumber(bounds.path) else { return nil }
    plan.isOrdered = givesOrder
    plan.access = .values(
      QueryPlan.ValueRange(
        field: QueryPlan.EntryField(table: .ascendingEntries, number: field, path: bounds.path), lower: bounds.lower,
        upper: bounds.upper, text: bounds.text))
    plan.checks.bounds = !bounds.coversCursors && (query.start != nil || query.end != nil)
    plan.checks.filter = !(alternatives.count == 1 && alternatives[0].allSatisfy(bounds.covered.contains))
    plan.checks.fields = !hasFields(besides: [bounds.path])
    return plan
  }

  /// The bounds on another field of the order, where they are a better choice than the order's first one: that is
  /// bounded by nothing, and is not walked until a limit, or the other names few entries.
  private mutating func boundsOnAnother(than first: ValueBounds, in collection: UInt64) throws -> ValueBounds? {
    guard !first.isBounded else { return nil }
    let others = query.orders.dropFirst().filter { !$0.path.isDocumentName && mayScan($0.path, .ascendingEntries) }
    guard let other = others.map({ ValueBounds(on: $0.path, alternatives) }).first(where: \.isBounded) else { return nil }
    guard options.isOrderNeeded, query.query.limit != nil, let number = try reader.fieldNumber(other.path) else {
      return other
    }
    let field = QueryPlan.EntryField(table: .ascendingEntries, number: number, path: other.path)
    var scan = IndexRangeIterator(prefix: field.prefix(in: collection), from: other.lower, to: other.upper, isDescending: false)
    try scan.open(reader.snapshot)
    return try scan.skip(selectiveEntries) < selectiveEntries ? other : nil
  }

  /// Fills in what is left to check when candidates come by name.
  private func finish(_ plan: QueryPlan, _ names: NameBounds) -> QueryPlan {
    var plan = plan
    plan.checks.bounds = (query.start != nil || query.end != nil) && !names.coversCursors
    plan.checks.fields = !hasFields(besides: [])
    var covered = names.covered
    if case .points(let alternatives) = plan.access {
      for point in alternatives.joined() { covered.insert(point.condition) }
    }
    plan.checks.filter = !alternatives.allSatisfy { $0.allSatisfy(covered.contains) }
    return plan
  }

  /// Whether every result has the fields of the order and the required ones. A condition on a field is not met where
  /// there is none.
  private func hasFields(besides scanned: Set<FieldPath>) -> Bool {
    let wanted = query.orders.map(\.path).filter { !$0.isDocumentName } + options.required
    return wanted.allSatisfy { path in
      scanned.contains(path) || alternatives.allSatisfy { $0.contains { $0.path == path } }
    }
  }

  // MARK: Equalities

  private enum Equalities {
    /// Nothing can match: no document has one of the fields.
    case impossible
    /// Some alternative has no equality.
    case notAll
    /// Those of each alternative.
    case some([[QueryPlan.Point]])
  }

  private mutating func equalities() throws -> Equalities {
    var found: [[QueryPlan.Point]] = []
    var possible: [[ResolvedQuery.Condition]] = []
    for conditions in alternatives {
      guard let points = try points(conditions) else { continue }
      found.append(points)
      possible.append(conditions)
    }
    alternatives = possible
    if found.isEmpty { return .impossible }
    return found.contains(where: \.isEmpty) ? .notAll : .some(found)
  }

  /// The points of an alternative's equalities; `nil` where one is on a field that no document has, so that nothing
  /// matches the alternative.
  private mutating func points(_ conditions: [ResolvedQuery.Condition]) throws -> [QueryPlan.Point]? {
    var points: [QueryPlan.Point] = []
    for condition in conditions {
      guard let (value, isContains) = condition.equalValue, !condition.path.isDocumentName else { continue }
      let table = isContains ? Table.containmentEntries : .ascendingEntries
      guard mayScan(condition.path, table) else { continue }
      guard let number = try reader.fieldNumber(condition.path) else { return nil }
      var code: [UInt8] = []
      // A code that was cut stands for all values that begin like it: the filter tells them apart, but not in name
      // order.
      guard OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax) else { continue }
      points.append(
        QueryPlan.Point(
          field: QueryPlan.EntryField(table: table, number: number, path: condition.path), code: code,
          condition: condition))
    }
    return points
  }

  /// Whether the automatic entries of a field are there in all collections of the query.
  private func mayScan(_ path: FieldPath, _ table: Table) -> Bool {
    indexes.mayScan(path, of: query.query.collectionID, table)
  }

  /// Whether the alternatives name few enough documents to sort them rather than to walk an order.
  private func isSelective(_ alternatives: [[QueryPlan.Point]], in collection: UInt64) throws -> Bool {
    var left = selectiveEntries
    for points in alternatives {
      guard let point = points.first else { return false }
      var scan = IndexRangeIterator(prefix: point.field.prefix(in: collection) + point.code, isDescending: false)
      try scan.open(reader.snapshot)
      left -= try scan.skip(left)
      if left == 0 { return false }
    }
    return true
  }

  /// So many entries are read and sorted rather than an order walked, which finds what is no rarer soon enough.
  private var selectiveEntries: Int { max(64, 8 * min(query.query.limit ?? .max, 64)) }

  /// The lowest code above everything that starts with one.
  static func successor(of code: [UInt8]) -> [UInt8] {
    var successor = code
    while successor.last == 0xFF { successor.removeLast() }
    if let last = successor.indices.last { successor[last] += 1 }
    return successor
  }
}

extension ResolvedQuery.Condition {
  /// The field, or `__name__`.
  var path: FieldPath {
    switch self {
    case .field(let path, _, _), .unary(let path, _): path
    }
  }

  /// Whether no document meets it (firestore-api.md, section 4.3).
  var isNeverMet: Bool {
    guard case .field(let path, let op, let value) = self, !path.isDocumentName else { return false }
    let isNothing = value.bracket == .null || value.bracket == .nan
    switch op {
    case .notEqual: return value.bracket == .null
    case .arrayContains: return isNothing || value.bracket == .array
    case .notIn, .in, .arrayContainsAny: return false
    default: return isNothing
    }
  }
}
