package import DocumentModel
package import DocumentStore
import FieldMatch
package import KeyValueStore
import WireFormat

/// A query that runs on a snapshot: results are pulled from it one by one.
package final class QueryExecution {
  /// How it is answered.
  package let plan: QueryPlan
  /// Documents that were passed over for the offset.
  package private(set) var skipped = 0
  /// Documents that were returned.
  package private(set) var returned = 0

  private let query: ResolvedQuery
  /// Fields that a result must have beside those of the order.
  let required: [FieldPath]
  /// Whether results must come in the order of the query.
  private let inOrder: Bool
  private let snapshot: any KeyValueSnapshot
  private let version: Int64?
  private var matcher: DocumentMatcher
  private var source: (any RowSource)?
  private var sorted: SortedEntries?
  private var reader: DocumentReader
  private var key: [UInt8] = []

  /// Plans a query; `version` is `nil` to read what the snapshot shows.
  ///
  /// Documents that lack one of the `required` fields are no results, as if the order named them. With `inOrder` false
  /// and neither limit nor offset the results come as their source gives them, unsorted.
  package init(
    _ query: ResolvedQuery, _ snapshot: any KeyValueSnapshot, at version: Int64? = nil,
    requiring required: [FieldPath] = [], inOrder: Bool = true
  ) throws {
    self.query = query
    self.required = required
    self.snapshot = snapshot
    self.version = version
    reader = DocumentReader(snapshot)
    matcher = DocumentMatcher(query.query.filter, in: query.database)
    self.inOrder = inOrder || query.query.limit != nil || query.query.offset > 0
    var planner = QueryPlanner(query, snapshot, readsPast: version != nil, isSorted: self.inOrder)
    plan = try planner.plan()
  }

  /// What was read so far.
  package var work: QueryWork { source?.work ?? QueryWork() }

  /// The next result, or `nil` at the end. Its fields are valid as long as the snapshot.
  package func next() throws -> (key: DocumentKey, document: StoredDocument)? {
    if let limit = query.query.limit, returned >= limit { return nil }
    while let row = try nextMatch() {
      if skipped < query.query.offset {
        skipped += 1
        continue
      }
      guard let key = DocumentKey(row.path) else { continue }
      returned += 1
      return (key, row.document)
    }
    return nil
  }

  private func nextMatch() throws -> Row? {
    if source == nil { source = try makeSource() }
    if plan.isOrdered { return try nextCandidate(behindEndIsEnd: true) }
    if !inOrder { return try nextCandidate(behindEndIsEnd: false) }
    if sorted == nil { sorted = try sortAll() }
    guard let entry = try sorted?.next() else { return nil }
    let path = ResourcePath(uncheckedBytes: entry.path)
    guard let key = DocumentKey(path), let row = try reader.collection(key.collection) else { return nil }
    let document: StoredDocument? =
      if let version {
        try reader.document(key.id, in: row.number, at: version)
      } else {
        try reader.document(key.id, in: row.number)
      }
    return document.map { Row(path: path, document: $0) }
  }

  /// The next candidate that matches and lies within the bounds; leaves its place in ``key``.
  private func nextCandidate(behindEndIsEnd: Bool) throws -> Row? {
    while let row = try source?.next() {
      let fields = EncodedMap(documentFields: row.document.fields)
      guard try matcher.matches(fields, at: row.path) else { continue }
      key.removeAll(keepingCapacity: true)
      guard try SortKey.append(query.orders, fields, row.path, to: &key) else { continue }
      guard SortKey.isWithin(key, start: query.start, end: nil) else { continue }
      var hasRequired = true
      for field in required where try fields.value(at: field) == nil { hasRequired = false }
      guard hasRequired else { continue }
      guard SortKey.isWithin(key, start: nil, end: query.end) else {
        if behindEndIsEnd { return nil }
        continue
      }
      return row
    }
    return nil
  }

  private func sortAll() throws -> SortedEntries {
    let kept = query.query.limit.map { $0.addingReportingOverflow(query.query.offset) }
    var sorter = RowSorter(keptMax: kept.flatMap { $0.overflow ? nil : $0.partialValue })
    while let row = try nextCandidate(behindEndIsEnd: false) { try sorter.add(key, path: row.path.bytes) }
    return try sorter.finish()
  }

  // MARK: Sources

  private func makeSource() throws -> any RowSource {
    switch plan.source {
    case .nothing: return ConcatenatedSource([])
    case .names(let path): return try names(path)
    case .walk(let path): return try WalkSource(snapshot, below: path, after: nil, at: version)
    case .collections(let paths): return ConcatenatedSource(try paths.map { try names($0) })
    case .entries(let path, let use):
      let scan = try EntryScan(snapshot, use.range, isDescending: plan.isDescending)
      return try documents(path, scan)
    case .intersection(let path, let uses):
      return try documents(
        path, try EntryIntersection(snapshot, uses.map(\.range), isDescending: plan.isDescending))
    case .union(let path, let alternatives):
      let parts = try alternatives.map { uses -> any EntrySource in
        try EntryIntersection(snapshot, uses.map(\.range), isDescending: plan.isDescending)
      }
      return try documents(path, EntryUnion(parts, isDescending: plan.isDescending))
    }
  }

  private func documents(_ path: ResourcePath, _ entries: any EntrySource) throws -> any RowSource {
    guard let row = try reader.collection(path) else { return ConcatenatedSource([]) }
    return EntryDocuments(snapshot, path, number: row.number, entries)
  }

  private func names(_ path: ResourcePath) throws -> any RowSource {
    guard let row = try reader.collection(path) else { return ConcatenatedSource([]) }
    return try CollectionSource(snapshot, path, number: row.number, from: .beginning, at: version) { _ in false }
  }
}
