import Basics
package import DocumentModel
import DocumentStore
import KeyEncoding
package import KeyValue
import Matching
import WireFormat

/// A query that runs in slices, each on its own snapshot, and shows the same version throughout.
///
/// Between slices it holds no snapshot, only positions. The work of a slice is limited even if it finds no results,
/// so a long query does not block others. If documents have changed since the version, ``ChangeOverlay`` finds them
/// and the query reads their old states. Memory: the results to be sorted, in scratch space (``RowSorter``), and the
/// positions of a limited number of changed documents. A query may have to wait for scratch space (``wait(_:)``).
package final class QueryExecution {
  /// The plan in use. It changes if so many documents have changed that entries are no longer useful.
  package private(set) var plan: QueryPlan
  /// The number of results skipped because of the offset.
  package private(set) var skipped = 0
  /// The number of results returned or counted.
  package private(set) var returned = 0
  /// The documents and index entries read so far.
  package private(set) var work = QueryCost()
  /// Whether all results have been returned.
  package private(set) var isAtEnd = false

  /// The work of a slice that does not keep others waiting: some hundred microseconds.
  package static let sliceUnits = 8192

  private let query: ResolvedQuery
  let options: PlanOptions
  private let version: Int64
  private let indexGeneration: UInt64
  private let wanted: [FieldPath]
  private var matcher: DocumentMatcher
  private var source: CandidateIterator
  private var isSourceAtEnd = false
  private var overlay: ChangeOverlay
  /// Results that changed since the version and were not returned yet, in reverse order.
  private var pending: [(key: [UInt8], group: [UInt8], path: [UInt8])] = []
  /// The source in use until too many changes made it useless, and the results left in ``pending`` at that time.
  private var former: (source: CandidateIterator, left: Set<[UInt8]>)?
  /// The names of documents that changed since the version and were added to the sorter.
  private var sortedChanges: Set<[UInt8]> = []
  /// The memory and the file of the sorter; `nil` until something is sorted.
  private var scratch: Scratch?
  private var sorter: RowSorter?
  private var sorted: SortedEntries?
  /// The code of the order's first field of the results being sorted, if candidates are grouped by that field.
  private var sortedGroup: [UInt8] = []

  /// The iterator that a plain scan reads.
  private var scanned: CollectionCandidateIterator?

  // The match found last.
  private var document: StoredDocument?
  private var path: [UInt8] = []
  private var key: [UInt8] = []
  /// The part of ``key`` for the first field of the order, if candidates are grouped by that field.
  private var group: [UInt8] = []
  private var name: [UInt8] = []

  /// Plans a query that shows the state at `version`. The version must be readable on every snapshot that a slice
  /// uses.
  /// - Throws: ``StorageError`` if a read fails.
  package init(
    _ query: ResolvedQuery, _ snapshot: any KeyValueSnapshot, at version: Int64, _ options: PlanOptions = PlanOptions()
  ) throws {
    self.query = query
    self.version = version
    wanted = query.orders.map(\.path).filter { !$0.isDocumentName } + options.required
    matcher = DocumentMatcher(query.query.filter, in: query.database)
    var options = options
    var reader = SnapshotReader(snapshot)
    let indexes = if let known = options.indexes { known } else { try IndexCatalog(&reader) }
    options.indexes = indexes
    self.options = options
    indexGeneration = indexes.generation
    plan = try QueryPlanner.plan(query, snapshot, indexes, options)
    source = CandidateIterator(plan, at: version)
    overlay = ChangeOverlay(plan.scope, since: version, changesMax: options.changesMax)
  }

  deinit { scratch?.end() }

  // MARK: Slices

  /// Runs a slice; see ``QueryResults/slice(_:units:_:)``. A slice makes at least one step, so that a query ends
  /// even if `units` is 0.
  /// - Throws: ``StorageError`` if a read fails, ``WireError`` if a stored document is malformed, ``ScratchError`` if
  ///   there is no scratch space for sorting, and any error of `found`.
  package func slice(
    _ snapshot: any KeyValueSnapshot, units: Int, _ found: (DocumentKey, StoredDocument) throws -> Bool
  ) throws {
    try run(snapshot, units: units) { meter, reader in
      try emit(&meter, &reader, found)
    }
  }

  /// Runs a slice as ``slice(_:units:_:)`` does, but passes only documents. During a call of `found`,
  /// ``withPath(_:)`` gives the path. A scan of names then costs no more than its documents.
  /// - Throws: The errors of ``slice(_:units:_:)``.
  package func sliceDocuments(
    _ snapshot: any KeyValueSnapshot, units: Int, _ found: (StoredDocument) throws -> Bool
  ) throws {
    try run(snapshot, units: units) { meter, reader in
      guard isPlain, let scan = try source.plainScan(&meter) else {
        return try emit(&meter, &reader) { _, document in try found(document) }
      }
      scanned = scan
      defer { scanned = nil }
      let checksFilter = plan.checks.filter
      var count = 0
      defer { returned += count }
      let mayContinue = try scan.forEach(&meter) { document in
        if checksFilter, try !matcher.matches(EncodedMap(documentFields: document.fields), named: []) { return true }
        count += 1
        return try found(document)
      }
      if !mayContinue { (isSourceAtEnd, isAtEnd) = (true, true) }
    }
  }

  /// Whether a scan of names needs no checks but the filter of fields.
  private var isPlain: Bool {
    guard case .names = plan.access, query.query.limit == nil, query.query.offset == 0 else { return false }
    return !isSorting && sorted == nil && pending.isEmpty && former == nil && !plan.checks.fields
      && !plan.checks.bounds && !(plan.checks.filter && matcher.usesName)
  }

  /// Whether the query can be divided: a scan of the names of one collection that checks each document by itself.
  private var isDivisible: Bool {
    guard case .collection = plan.scope else { return false }
    return isPlain && !plan.isDescending && plan.names == [.all]
  }

  /// Divides the documents that the query has not visited yet into at most `countMax` parts, in name order.
  /// Returns none if the query cannot be divided, or has not visited any document. Other executions of the same query
  /// can read the parts; this one is not changed. Call it between slices.
  /// - Throws: ``StorageError`` if a read fails.
  package func parts(_ countMax: Int, _ snapshot: any KeyValueSnapshot) throws(StorageError) -> [QueryPart] {
    guard isDivisible, !isAtEnd, let visited = source.current, !visited.idCode.isEmpty else { return [] }
    return try QueryPart.parts(
      of: visited.number, code: visited.code, after: visited.idCode, snapshot, countMax: countMax)
  }

  /// Restricts a query without slices so far to a part of the same query. Returns `false` if the query cannot be
  /// divided.
  package func restrict(to part: QueryPart) -> Bool {
    guard isDivisible else { return false }
    plan.names = [part.range]
    source = CandidateIterator(plan, at: version)
    return true
  }

  /// Calls `body` with the path of the document that ``sliceDocuments(_:units:_:)`` has found.
  /// - Throws: any error of `body`.
  package func withPath<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    if let scanned {
      scanned.takeScannedID()
      takePath()
    }
    return try path.withUnsafeBytes(body)
  }

  /// Runs a slice as ``slice(_:units:_:)`` does, but only counts results. It does not read documents if the plan
  /// permits.
  /// - Throws: The errors of ``slice(_:units:_:)``.
  package func count(_ snapshot: any KeyValueSnapshot, upTo countMax: Int = .max, units: Int) throws {
    try run(snapshot, units: units) { meter, reader in
      while returned < countMax, !isAtEnd {
        if let limit = query.query.limit, returned >= limit { return isAtEnd = true }
        if canSkip, skipped >= query.query.offset {
          let room = min(query.query.limit ?? .max, countMax) - returned
          guard let step = try skip(room, &meter) else { return }
          returned += step
        } else {
          guard case .found = try nextResult(&meter, &reader) else { return }
          returned += 1
        }
        if meter.isSpent { return }
      }
    }
  }

  private func run(
    _ snapshot: any KeyValueSnapshot, units: Int, _ body: (inout SliceBudget, inout SnapshotReader) throws -> Void
  ) throws {
    guard !isAtEnd else { return }
    try scratch?.begin()
    defer { endSlice() }
    try sorted?.relieve()
    var reader = SnapshotReader(snapshot)
    var meter = SliceBudget(units: units, after: work)
    defer {
      work = meter.work
      document = nil
    }
    guard !isSourceAtEnd else { return try body(&meter, &reader) }
    try takeChanges(&reader)
    try source.open(snapshot)
    defer { source.close() }
    try body(&meter, &reader)
  }

  /// Lets others use the scratch space if they need it more. At the end of the query, frees it.
  private func endSlice() {
    guard isAtEnd else { return scratch?.pause() ?? () }
    sorter = nil
    sorted = nil
    scratch?.end()
  }

  /// Whether the query waits for scratch space. If so, calls `wake` once, on any thread, when the next slice can
  /// continue, or fails because the query has waited too long.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { scratch?.wait(wake) ?? false }

  private func emit(
    _ meter: inout SliceBudget, _ reader: inout SnapshotReader, _ found: (DocumentKey, StoredDocument) throws -> Bool
  ) throws {
    while !isAtEnd {
      if let limit = query.query.limit, returned >= limit { return isAtEnd = true }
      guard case .found = try nextResult(&meter, &reader) else { return }
      guard let document else { continue }
      returned += 1
      let wantsMore = try found(DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: path)), document)
      if let limit = query.query.limit, returned >= limit { isAtEnd = true }
      if !wantsMore || meter.isSpent { return }
    }
  }

  // MARK: Results

  /// Moves to the next match after the offset. Sets ``isAtEnd`` if no match is left.
  private func nextResult(_ meter: inout SliceBudget, _ reader: inout SnapshotReader) throws -> IteratorStep {
    while skipped < query.query.offset {
      if canSkip {
        guard let step = try skip(query.query.offset - skipped, &meter) else { return isAtEnd ? .end : .paused }
        skipped += step
        if isAtEnd { return .end }
      } else {
        let step = try nextMatch(&meter, &reader)
        guard step == .found else { return step }
        skipped += 1
      }
      if meter.isSpent { return .paused }
    }
    return try nextMatch(&meter, &reader)
  }

  private func nextMatch(_ meter: inout SliceBudget, _ reader: inout SnapshotReader) throws -> IteratorStep {
    let step = isSorting || sorted != nil ? try nextSorted(&meter, &reader) : try nextCandidateMatch(&meter, &reader)
    if step == .end { isAtEnd = true }
    return step
  }

  private func nextSorted(_ meter: inout SliceBudget, _ reader: inout SnapshotReader) throws -> IteratorStep {
    while true {
      if sorted == nil {
        guard try fillSorter(&meter) else { return .paused }
      }
      while let next = try sorted?.next() {
        if try read(next, &meter, &reader) { return .found }
      }
      if isSourceAtEnd, pending.isEmpty { return .end }
      sorted = nil
    }
  }

  /// Moves to the next match in order: from the source, or from the documents that changed since the version.
  private func nextCandidateMatch(_ meter: inout SliceBudget, _ reader: inout SnapshotReader) throws -> IteratorStep {
    while true {
      if !isSourceAtEnd {
        switch try source.next(loads: true, &meter) {
        case .paused: return .paused
        case .end: isSourceAtEnd = true
        case .found:
          guard try acceptCandidate() else {
            if meter.isSpent, !isSourceAtEnd { return .paused }
            continue
          }
        }
      }
      if let first = pending.last, isSourceAtEnd || (plan.isOrdered && Ordering.raw(first.key, key) == .less) {
        if !isSourceAtEnd { source.hold() }
        pending.removeLast()
        if try read(first.path, &meter, &reader) { return .found }
        continue
      }
      if isSourceAtEnd { return .end }
      takePath()
      return .found
    }
  }

  /// Assembles the path of the candidate in ``path``.
  private func takePath() {
    guard let current = source.current else { return }
    path.removeAll(keepingCapacity: true)
    path.append(contentsOf: current.path.bytes)
    path.append(UInt8(ascii: "/"))
    current.idCode.withUnsafeBytes { code in _ = OrderedCode.decode(lastID: code, into: &path) }
  }

  /// Reads a document by its path, as it was at the version. Returns `false` if it did not exist.
  private func read(_ path: [UInt8], _ meter: inout SliceBudget, _ reader: inout SnapshotReader) throws -> Bool {
    let key = DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: path))
    guard let row = try reader.collection(key.collection),
      let found = try reader.document(key.id, in: row.number, at: version)
    else { return false }
    meter.readDocument(bytes: found.fields.count)
    document = found
    self.path = path
    return true
  }

  // MARK: Checks

  private var isSorting: Bool { !plan.isOrdered && plan.isSorted }

  /// Whether the candidate is a result. A candidate after the end cursor of an ordered query also ends the source.
  private func acceptCandidate() throws -> Bool {
    guard let current = source.current, let candidate = current.document else { return false }
    // The overlay supplies documents that changed since the version.
    guard candidate.updateVersion <= version else { return false }
    let needsName = isSorting || plan.checks.bounds || !pending.isEmpty || former != nil || matcher.usesName
    if needsName {
      name.removeAll(keepingCapacity: true)
      current.appendName(to: &name)
    }
    let fields = EncodedMap(documentFields: candidate.fields)
    if former != nil, sortedChanges.contains(name) { return false }
    if let former, try former.source.hasPassed(name, idCode: current.idCode, fields), !former.source.holds(name),
      !former.left.contains(name)
    {
      return false
    }
    document = candidate
    return try accept(fields, needsKey: isSorting || plan.checks.bounds || !pending.isEmpty)
  }

  /// Whether a document named ``name`` is a result. If needed, leaves its position in the order in ``key``.
  private func accept(_ fields: EncodedMap, needsKey: Bool) throws -> Bool {
    if plan.checks.filter, try !matcher.matches(fields, named: name) { return false }
    if plan.checks.fields {
      for field in wanted where try fields.value(at: field) == nil { return false }
    }
    guard needsKey else { return true }
    key.removeAll(keepingCapacity: true)
    guard try SortKey.append(query.orders, fields, name: name, to: &key) else { return false }
    try takeGroup(fields)
    guard plan.checks.bounds else { return true }
    guard SortKey.isWithin(key, start: query.start, end: nil) else { return false }
    if SortKey.isWithin(key, start: nil, end: query.end) { return true }
    if plan.isOrdered { isSourceAtEnd = true }
    return false
  }

  /// Copies the first part of ``key`` to ``group``.
  private func takeGroup(_ fields: EncodedMap) throws {
    guard plan.isGrouped, let first = query.orders.first, let value = try fields.value(at: first.path) else { return }
    group.removeAll(keepingCapacity: true)
    try OrderedCode.append(value, to: &group)
    if first.isDescending { SortKey.invert(&group, from: 0) }
  }

  // MARK: Sorting

  /// Sorts the results of the source. If candidates are grouped by the first field of the order, it sorts only the
  /// results with one value of that field. Returns `false` if the slice ends first, or if the query must wait.
  private func fillSorter(_ meter: inout SliceBudget) throws -> Bool {
    var sorter = self.sorter.take() ?? makeSorter()
    guard try sorter.resume() else {
      self.sorter = sorter
      return false
    }
    while true {
      if !isSourceAtEnd {
        let step = try source.next(loads: true, &meter)
        isSourceAtEnd = step == .end
        if try step == .paused || (step == .found && !acceptCandidate()) {
          guard step == .paused || meter.isSpent else { continue }
          self.sorter = sorter
          return false
        }
      }
      let past = pending.last.flatMap { isSourceAtEnd || Ordering.raw($0.group, group) != .greater ? $0 : nil }
      let isAtEnd = isSourceAtEnd && past == nil
      let next = past?.group ?? group
      if isAtEnd || (plan.isGrouped && !sortedGroup.isEmpty && sortedGroup != next) {
        if !isSourceAtEnd { source.hold() }
        sortedGroup = []
        sorted = try sorter.finish()
        return true
      }
      sortedGroup = next
      var hasRoom = true
      if let past {
        if !isSourceAtEnd { source.hold() }
        pending.removeLast()
        sortedChanges.insert(NameCode.encode(ResourcePath(uncheckedBytes: past.path)))
        hasRoom = try sorter.add(past.key, path: past.path)
      } else {
        takePath()
        hasRoom = try sorter.add(key, path: path)
      }
      if !hasRoom || meter.isSpent {
        self.sorter = sorter
        return false
      }
    }
  }

  private func makeSorter() -> RowSorter {
    let scratch = self.scratch ?? Scratch(options.scratch)
    self.scratch = scratch
    // The results with another value of the first field have all been returned.
    scratch.clear()
    return RowSorter(scratch, keptMax: keptMax)
  }

  /// The number of results still to be found, including those to be skipped for the offset, or `nil` without a
  /// limit.
  private var keptMax: Int? {
    guard let limit = query.query.limit else { return nil }
    let (sum, overflow) = (limit - returned).addingReportingOverflow(query.query.offset - skipped)
    return overflow ? nil : sum
  }
}

// MARK: - Counting

extension QueryExecution {
  /// Whether every candidate is a result, so that candidates can be skipped without being inspected.
  fileprivate var canSkip: Bool {
    plan.checks.isEmpty && !isSorting && sorted == nil && overlay.isEmpty && former == nil && pending.isEmpty
  }

  /// Skips up to `countMax` results and returns how many, or `nil` at the end of the slice or of the query.
  fileprivate func skip(_ countMax: Int, _ meter: inout SliceBudget) throws -> Int? {
    let wanted = min(countMax, meter.entriesLeft)
    if let count = try source.skip(wanted, &meter) {
      if count < wanted { isAtEnd = true }
      return count
    }
    switch try source.next(loads: false, &meter) {
    case .found: return 1
    case .paused: return nil
    case .end:
      isAtEnd = true
      return nil
    }
  }
}

// MARK: - Changes since the version

extension QueryExecution {
  /// Reads the changes since the last slice and adds the old states of these documents to ``pending``.
  fileprivate func takeChanges(_ reader: inout SnapshotReader) throws {
    guard !plan.showsPast, !isSourceAtEnd else { return }
    // If an index was removed since the query was planned, its entries may be missing.
    guard try reader.meta(.indexGeneration) == indexGeneration else { return try giveUpEntries(reader.snapshot) }
    guard let changed = try overlay.take(&reader) else { return try giveUpEntries(reader.snapshot) }
    guard !changed.isEmpty else { return }
    for (changed, collection) in changed {
      var id: [UInt8] = []
      guard changed.idCode.withUnsafeBytes({ OrderedCode.decode(lastID: $0, into: &id) }),
        let past = try reader.document(id, in: changed.collection, at: version)
      else { continue }
      let fields = EncodedMap(documentFields: past.fields)
      let path = collection.appending(id)
      name = NameCode.encode(path)
      guard try !source.hasPassed(name, idCode: changed.idCode, fields) else { continue }
      guard try acceptPast(fields) else { continue }
      pending.append((key, group, path.bytes))
    }
    pending.sort { Ordering.raw($0.key, $1.key) == .greater }
  }

  /// Whether a document of the version is a result. Unlike ``accept(_:needsKey:)``, it makes all checks, even those
  /// that the source guarantees.
  private func acceptPast(_ fields: EncodedMap) throws -> Bool {
    guard try matcher.matches(fields, named: name) else { return false }
    for field in wanted where try fields.value(at: field) == nil { return false }
    key.removeAll(keepingCapacity: true)
    guard try SortKey.append(query.orders, fields, name: name, to: &key) else { return false }
    try takeGroup(fields)
    return SortKey.isWithin(key, start: query.start, end: query.end)
  }

  /// Continues with a scan of names at the version, which omits the results already returned.
  private func giveUpEntries(_ snapshot: any KeyValueSnapshot) throws {
    var options = options
    options.ways = .names
    var planner = try QueryPlanner(query, snapshot, options)
    plan = try planner.plan()
    former = (source, Set(pending.map { NameCode.encode(ResourcePath(uncheckedBytes: $0.path)) }))
    pending = []
    source = CandidateIterator(plan, at: version)
    isSourceAtEnd = false
  }
}
