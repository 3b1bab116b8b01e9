package import Basics
package import DocumentModel
package import DocumentStore
import KeyEncoding
import KeyValue
import Matching

/// The requirements on a plan, in addition to correct results.
package struct PlanOptions: Sendable {
  /// The access paths that a plan may use.
  package enum Ways: Sendable {
    /// Any access path.
    case all
    /// Only a scan of names in ascending order, which can show any version.
    case names
  }

  package var ways = Ways.all
  /// Whether results must come in the query's order. A sum does not need this.
  package var isOrderNeeded = true
  /// Whether documents are needed, or only their number.
  package var needsDocuments = true
  /// Whether a vector search adds distances to its results. Aggregations need the results as stored.
  package var addsDistances = true
  /// Fields that a document must have to be a result, as if the order contained them.
  package var required: [FieldPath] = []
  /// Terms that every result contains. The plan may use them, but need not.
  package var terms: TextTerms?
  /// The indexes in the snapshot, or `nil` if the planner must read them.
  package var indexes: IndexCatalog?
  /// The number of documents that may change while the query runs before it continues without index entries.
  package var changesMax = 2000
  /// The memory and the temporary files that the query may use to sort its results.
  package var scratch: ScratchSpace

  /// Whether these are the options of a query that returns documents in order, apart from what does not change its plan.
  var isUsual: Bool {
    ways == .all && isOrderNeeded && needsDocuments && required.isEmpty && terms == nil
  }

  /// Requests documents in order, by any access path that the indexes of the snapshot allow. If `indexes` is `nil`,
  /// the planner reads them.
  package init(indexes: IndexCatalog? = nil, scratch: ScratchSpace = .process) {
    self.indexes = indexes
    self.scratch = scratch
  }
}

/// Chooses the access path of a query. Every field of every document has entries, except for exempt fields. In
/// addition, there are the declared indexes.
struct QueryPlanner {
  private let query: ResolvedQuery
  private let options: PlanOptions
  /// The alternatives of the filter that a document can match.
  private var alternatives: [[ResolvedQuery.Condition]]
  private var reader: SnapshotReader
  private let indexes: IndexCatalog
  /// Whether the plan depends on the query and the catalog of indexes alone, so that later runs may use it too.
  private var isLasting = false
  /// The shape of a query of one collection whose plan may be like that of an earlier one, otherwise `nil`.
  private let shape: PlanShape?

  /// Plans a query, or returns the plan of an earlier run.
  static func plan(
    _ query: ResolvedQuery, _ snapshot: any KeyValueSnapshot, _ indexes: IndexCatalog, _ options: PlanOptions
  ) throws -> QueryPlan {
    let memo = options.isUsual ? query.memo : nil
    if let known = memo?.plan(for: indexes) { return known }
    var planner = try QueryPlanner(query, snapshot, options)
    let plan = try planner.plan()
    if planner.isLasting { memo?.keep(plan, for: indexes) }
    return plan
  }

  init(_ query: ResolvedQuery, _ snapshot: any KeyValueSnapshot, _ options: PlanOptions) throws(StorageError) {
    self.query = query
    var reader = SnapshotReader(snapshot)
    indexes = if let indexes = options.indexes { indexes } else { try IndexCatalog(&reader) }
    self.options = options
    alternatives = query.alternatives.filter { !$0.contains(where: \.isNeverMet) }
    shape = options.isUsual ? PlanShape(query, alternatives) : nil
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
    if let known = planLikeEarlier(plan) { return known }
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

  /// Returns the plan that an earlier query of the same shape suggests: with the declared indexes that it used, unless
  /// other values make them unsuitable. Finds nothing in the store, and tries no other index.
  private mutating func planLikeEarlier(_ plan: QueryPlan) -> QueryPlan? {
    guard let shape, let known = indexes.choices[shape], let collectionID = query.query.collectionID else {
      return nil
    }
    let path = query.query.parent.appending(collectionID)
    let code = NameCode.encode(path)
    var plan = plan
    plan.scope = .collection(path, code: code)
    guard let ordered = planOrdered(plan, code, among: known), ordered.isBetterThanAnyPoints else { return nil }
    isLasting = true
    return ordered.plan
  }

  /// Notes the indexes of a lasting plan for later queries of the same shape.
  private func noteChoice(_ ordered: OrderedPlan) {
    guard let shape, ordered.isBetterThanAnyPoints, ordered.plan.isOrdered,
      case .ordered(let scans) = ordered.plan.access
    else { return }
    let numbers = Set(scans.alternatives.lazy.flatMap(\.scans).map(\.index.number))
    // In the order in which the planner tries them, so that it decides alike.
    indexes.choices[shape] = indexes.indexes.filter { numbers.contains($0.number) }
  }

  private var isByName: Bool { query.orders.count == 1 }

  // MARK: Choices

  /// Returns the plan for several collections, which are read in name order, or `nil` if no document can match.
  private mutating func planMany(_ plan: QueryPlan) throws -> QueryPlan? {
    var plan = plan
    plan.isOrdered = isByName && !query.orders[0].isDescending
    let bounds = NameBounds(query, alternatives)
    plan.names = bounds.ranges
    if options.ways == .all, !bounds.isLookup {
      if let byTerms = planTerms(plan, bounds, .collectionGroup) { return byTerms }
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

  /// Returns the plan for one collection, or `nil` if no document can match.
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
    if let byTerms = planTerms(plan, bounds, .collection) { return byTerms }
    let ordered = planOrdered(plan, code) ?? planGrouped(plan, code)
    var byPoints: QueryPlan?
    switch try equalities() {
    case .impossible: return nil
    case .notAll: break
    case .some(let points):
      if let ordered, ordered.isBetter(than: points) {
        isLasting = ordered.isBetterThanAnyPoints
        noteChoice(ordered)
        return ordered.plan
      }
      plan.access = .points(points)
      let hasBounds = query.start != nil || query.end != nil
      if isByName || !(options.isOrderNeeded || hasBounds) { return finish(plan, bounds) }
      if try isSelective(points, in: number) { return finish(plan, bounds) }
      byPoints = finish(plan, bounds)
    }
    if let ordered {
      isLasting = byPoints == nil
      if isLasting { noteChoice(ordered) }
      return ordered.plan
    }
    guard let byValue = try planValues(plan, code: code, number: number) else { return nil }
    return switch byValue {
    case .some(let values)
    where byPoints == nil || ((values.isOrdered || values.isGrouped) && query.query.limit != nil):
      values
    default: byPoints ?? finish(plan, bounds)
    }
  }

  /// Returns a plan that finds documents with the wanted terms in a text index, in name order, or `nil` if the query has
  /// no terms or another order.
  private func planTerms(
    _ plan: QueryPlan, _ bounds: NameBounds, _ scope: IndexDefinition.Scope
  ) -> QueryPlan? {
    guard let terms = options.terms, terms.index.definition.scope == scope, isByName, plan.isOrdered else { return nil }
    let isGroup = scope == .collectionGroup
    let alternative = OrderedIndexIterator.Alternative(
      scans: terms.codes.map { OrderedIndexIterator.Scan(index: terms.index, codes: $0, fieldCount: 1) },
      subject: .terms(terms.text))
    var plan = plan
    plan.access = .ordered(
      OrderedIndexIterator(alternatives: [alternative], tail: [], isGroup: isGroup, parent: query.query.parent))
    if isGroup { plan.names = [.all] }
    plan = finish(plan, bounds)
    if isGroup {
      plan.checks.filter = plan.checks.filter || !query.query.parent.isRoot || !bounds.covered.isEmpty
      plan.checks.bounds = query.start != nil || query.end != nil
    }
    return plan
  }

  /// A plan that uses declared indexes.
  private struct OrderedPlan {
    var plan: QueryPlan
    var coversEqualities: Bool

    /// Whether the plan gives an order that no lookup of equalities gives, and covers these equalities.
    var isBetterThanAnyPoints: Bool {
      guard coversEqualities, case .ordered(let scans) = plan.access else { return false }
      return !scans.tail.isEmpty
    }

    /// Whether the plan is at least as good as looking up the equalities, regardless of their values.
    func isBetter(than points: [[QueryPlan.Point]]) -> Bool {
      guard coversEqualities, case .ordered(let scans) = plan.access else { return false }
      if isBetterThanAnyPoints { return true }
      return zip(scans.alternatives, points).allSatisfy { $0.scans.count < $1.count }
    }
  }

  /// Returns a plan with the declared indexes that give the order, or `nil` if such indexes are missing. `code` is
  /// the code of the collection's path, or `nil` for a collection group. With `choice`, tries only these indexes.
  private func planOrdered(
    _ plan: QueryPlan, _ code: [UInt8]?, among choice: [StoredIndex]? = nil, reversesNames: Bool = false
  ) -> OrderedPlan? {
    guard let id = query.query.collectionID else { return nil }
    let ready = choice ?? indexes.ready(for: id, scope: code == nil ? .collectionGroup : .collection)
    let planner = OrderedIndexPlanner(
      query, alternatives, ready, isGroup: code == nil, reversesNames: reversesNames)
    guard let found = planner.find(in: code) else { return nil }
    var plan = plan
    // The ranges of names apply to these scans only if no field precedes the name in the entries.
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

  /// Returns a plan with the declared indexes that give the order, except that names come in the opposite direction, so
  /// that the results with one value of the first field are sorted. Returns `nil` if such indexes are missing, or the
  /// query does not stop early.
  private func planGrouped(_ plan: QueryPlan, _ code: [UInt8]) -> OrderedPlan? {
    guard query.query.limit != nil, options.isOrderNeeded, query.orders.count > 1, query.start == nil,
      query.end == nil, var found = planOrdered(plan, code, reversesNames: true),
      case .ordered(let scans) = found.plan.access, scans.tail.first?.path == query.orders.first?.path
    else { return nil }
    found.plan.isOrdered = false
    found.plan.isGrouped = true
    return found
  }

  /// Returns a plan with a scan of the entries of one field. This is the first field of the order, whose scan gives
  /// the order itself if the name follows in the same direction; or a field that the filter bounds. Returns
  /// `.some(nil)` if no such scan is useful, and `nil` if no document can match.
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

  /// Returns the bounds on another field of the order if that field is a better choice than the first one. This
  /// requires that the filter does not bound the first field. In addition, either the query does not need an order
  /// up to a limit, so that a scan in order could not stop early, or the other field has few entries in its bounds.
  private mutating func boundsOnAnother(than first: ValueBounds, in collection: UInt64) throws -> ValueBounds? {
    guard !first.isBounded else { return nil }
    let others = query.orders.dropFirst().filter { !$0.path.isDocumentName && mayScan($0.path, .ascendingEntries) }
    guard let other = others.map({ ValueBounds(on: $0.path, alternatives) }).first(where: \.isBounded) else {
      return nil
    }
    guard options.isOrderNeeded, query.query.limit != nil, let number = try reader.fieldNumber(other.path) else {
      return other
    }
    let field = QueryPlan.EntryField(table: .ascendingEntries, number: number, path: other.path)
    var scan = IndexRangeIterator(
      prefix: field.prefix(in: collection), from: other.lower, to: other.upper, isDescending: false)
    try scan.open(reader.snapshot)
    return try scan.skip(selectiveEntries) < selectiveEntries ? other : nil
  }

  /// Completes a plan that gives candidates by name with the checks that remain.
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

  /// Whether every result has the fields of the order and the required fields. A condition on a field guarantees
  /// this: a document without the field does not meet it.
  private func hasFields(besides scanned: Set<FieldPath>) -> Bool {
    let wanted = query.orders.map(\.path).filter { !$0.isDocumentName } + options.required
    return wanted.allSatisfy { path in
      scanned.contains(path) || alternatives.allSatisfy { $0.contains { $0.path == path } }
    }
  }

  // MARK: Equalities

  private enum Equalities {
    /// No document can match, because no document has one of the fields.
    case impossible
    /// At least one alternative has no equality.
    case notAll
    /// The equalities of each alternative.
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

  /// Returns the points of an alternative's equalities, or `nil` if no document has one of the fields, so that
  /// nothing matches the alternative.
  private mutating func points(_ conditions: [ResolvedQuery.Condition]) throws -> [QueryPlan.Point]? {
    var points: [QueryPlan.Point] = []
    for condition in conditions {
      guard let (value, isContains) = condition.equalValue, !condition.path.isDocumentName else { continue }
      let table = isContains ? Table.containmentEntries : .ascendingEntries
      guard mayScan(condition.path, table) else { continue }
      guard let number = try reader.fieldNumber(condition.path) else { return nil }
      var code: [UInt8] = []
      // A truncated code represents all values with the same beginning. The filter distinguishes them, but they are
      // not in name order.
      guard OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax) else { continue }
      points.append(
        QueryPlan.Point(
          field: QueryPlan.EntryField(table: table, number: number, path: condition.path), code: code,
          condition: condition))
    }
    return points
  }

  /// Whether the automatic entries of a field exist in all collections of the query.
  private func mayScan(_ path: FieldPath, _ table: Table) -> Bool {
    indexes.mayScan(path, of: query.query.collectionID, table)
  }

  /// Whether the alternatives match so few documents that sorting them is cheaper than a scan in order.
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

  /// The number of entries that are read and sorted instead of scanning in order. If more documents match, a scan in
  /// order soon finds enough of them.
  private var selectiveEntries: Int { max(64, 8 * min(query.query.limit ?? .max, 64)) }

  /// Returns the lowest code above all codes that begin with `code`.
  static func successor(of code: [UInt8]) -> [UInt8] {
    var successor = code
    while successor.last == 0xFF { successor.removeLast() }
    if let last = successor.indices.last { successor[last] += 1 }
    return successor
  }
}

extension ResolvedQuery.Condition {
  /// The field of the condition, or `__name__`.
  var path: FieldPath {
    switch self {
    case .field(let path, _, _), .unary(let path, _): path
    }
  }

  /// Whether no document can meet the condition (firestore-api.md, section 4.3).
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
