import Basics
import DocumentModel
import KeyEncoding
import KeyValue
import WireFormat

/// Applies commits inside a write transaction: validates each against the stored state, then writes it.
///
/// A database has one, owned by its ``CommitQueue``, so the cache of the catalog and the scratch memory are reused.
struct CommitWriter {
  /// A commit that waits to be written.
  struct Member: Sendable {
    var request: CommitRequest
    /// The plan made on the caller's thread, or `nil` if the writer must make it.
    var plan: CommitPlan?
    /// The version up to which the caller's thread found no conflict with the transaction's reads.
    var checkedVersion: Int64
    /// The time that server timestamps of this commit carry.
    var requestTime: Timestamp
    /// When the commit arrived, in microseconds since 1970. It becomes the commit time if the order of commits allows.
    var arrival: Int64
  }

  var catalog = CatalogWriter()
  var key = StorageKey()
  var row: [UInt8] = []
  /// The indexes for which entries are written.
  private(set) var indexes = IndexCatalog.none
  private let indexCache: IndexCatalogCache
  private var fieldNumbers: [UInt64] = []
  /// Collections changed in this transaction, with the version of the change.
  private var touched: [ResourcePath: (number: UInt64, version: Int64)] = [:]
  /// The version of the last commit that changed a document.
  private var storedVersion: Int64 = 0
  /// The highest version assigned so far. A commit that changes nothing also has a version, which no other may take.
  private(set) var lastVersion: Int64 = 0
  private var changeLogCount: UInt64 = 0
  private var useChange = DocumentUseChange()
  private var recentCommits = RecentCommits()
  /// The bytes of documents in the quota of the project, or `nil` if no quota applies to the writes.
  private let use: DocumentUse?

  /// Creates a writer. `use` limits the growth of the documents.
  init(indexCache: IndexCatalogCache, use: DocumentUse? = nil) {
    self.indexCache = indexCache
    self.use = use
  }

  /// Starts a group: reads the state that the members share from the transaction.
  ///
  /// All versions of the group are above `floor`.
  mutating func begin(_ transaction: any KeyValueTransaction, floor: Int64 = .min) throws(StorageError) {
    var reader = SnapshotReader(transaction)
    storedVersion = try reader.lastVersion()
    lastVersion = max(storedVersion, floor)
    changeLogCount = try reader.meta(.changeLogCount)
    indexes = try indexCache.catalog(&reader)
    useChange.begin(try DocumentUse.stored(&reader))
    touched.removeAll(keepingCapacity: true)
    recentCommits.forget()
  }

  /// Applies one member. Its rows follow those of the member before, and the rows in the change log are the last of each
  /// change; see ``CommitGroup``.
  ///
  /// - Throws: ``CommitError``. If it is ``CommitError/storage(_:)``, roll back the whole transaction. Any other
  ///   error leaves the transaction as it was, because every check precedes the first write.
  mutating func apply(
    _ member: Member, _ transaction: any KeyValueTransaction
  ) throws(CommitError) -> CommitOutcome {
    if let id = member.request.id,
      let outcome = try recentCommits.outcome(of: id, digest: member.request.digest, in: transaction)
    {
      return outcome
    }
    var reader = SnapshotReader(transaction)
    if let reads = member.request.reads, storedVersion > member.checkedVersion {
      try ConflictCheck.run(reads, on: transaction, checked: member.checkedVersion)
    }
    let plan = try validPlan(member, &reader)
    // The commit time is the arrival time if the order of commits allows it, and never before the commit's own
    // server timestamps.
    let version = max(member.arrival, member.requestTime.microseconds, lastVersion + 1)
    if !plan.changes.isEmpty {
      do throws(QuotaError) {
        try useChange.add(plan.changes.reduce(0) { $0 + $1.growth }, use)
      } catch { throw .overQuota(error) }
      do throws(StorageError) {
        for (position, change) in plan.changes.enumerated() {
          try write(change, position: position, version: version, transaction)
        }
      } catch { throw .storage(error) }
      storedVersion = version
    }
    if let mark = member.request.mark {
      do throws(StorageError) { try transaction.put(.lastMark, mark) } catch { throw .storage(error) }
    }
    lastVersion = version
    let outcome = outcome(of: plan, version: version)
    if let id = member.request.id {
      do throws(StorageError) {
        try recentCommits.put(outcome, of: id, digest: member.request.digest, at: member.arrival, transaction)
      } catch { throw .storage(error) }
    }
    return outcome
  }

  /// Ends a group: writes the rows that are written once per transaction.
  mutating func finish(_ transaction: any KeyValueTransaction) throws(StorageError) {
    guard !touched.isEmpty else { return }
    for (path, change) in touched {
      try catalog.setLastChange(path, number: change.number, version: change.version, transaction)
    }
    try transaction.put(.lastVersion, UInt64(bitPattern: storedVersion))
    try transaction.put(.changeLogCount, changeLogCount)
    if let bytes = useChange.bytes { try DocumentUse.store(bytes, version: storedVersion, transaction) }
  }

  /// Counts the documents of a group that is durable in the quota.
  mutating func noteCommitted() { useChange.commit(use) }

  /// Stores the bytes of all documents, which were counted in a snapshot from before this writer's first commit.
  mutating func storeUse(counted bytes: Int, _ transaction: any KeyValueTransaction) throws(StorageError) {
    var reader = SnapshotReader(transaction)
    // A database that was cleared meanwhile knows its bytes.
    guard try DocumentUse.stored(&reader) == nil else { return }
    try DocumentUse.store(bytes + useChange.uncounted, version: try reader.lastVersion(), transaction)
  }

  /// Drops the cached catalog. Call it after other code changed the catalog.
  mutating func forgetCatalog() {
    catalog.forget()
  }

  /// Forgets what a transaction changed that was rolled back.
  mutating func rollBack() {
    forgetCatalog()
    useChange.rollBack(use)
  }

  /// Stores a document in a database without readers: no history, no change log, no comparison with a stored row, whose
  /// fields have `storedFieldsBytes`.
  mutating func load(
    _ key: DocumentKey, _ fields: EncodedFields, insteadOf storedFieldsBytes: Int?, index: IndexChanges,
    version: Int64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    let collection = try catalog.collectionNumber(key.collection, transaction)
    touched[key.collection] = (collection, version)
    storedVersion = version
    let change = CommitPlan.Change(
      key: key, fields: fields, createVersion: nil, storedFieldsBytes: storedFieldsBytes, index: index)
    useChange.add(change.growth)
    try writeIndex(change, collection: collection, transaction)
    try writeDocument(change, collection: collection, version: version, transaction)
  }

  /// Stores a document that does not exist yet as ``load(_:_:insteadOf:index:version:_:)`` does, but adds its entries to
  /// `puts`.
  mutating func stage(
    _ documentKey: DocumentKey, _ fields: EncodedFields, index: IndexChanges, version: Int64,
    into puts: inout SortedPuts, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    let collection = try catalog.collectionNumber(documentKey.collection, transaction)
    touched[documentKey.collection] = (collection, version)
    storedVersion = version
    try stage(index, of: documentKey, collection: collection, into: &puts, transaction)
    key.begin(.documents)
    key.append(number: collection)
    key.append(lastID: documentKey.id)
    encodeRow(fields, create: version, update: version)
    useChange.add(DocumentUse.bytes(path: documentKey.path.bytes.count, fields: fields.bytes.count))
    puts.add(key, row)
  }

  /// Stores the row of a document as another copy of the database has it, or removes the document if `row` is `nil`,
  /// and applies the index entries of the change.
  mutating func copy(
    _ change: CommitPlan.Change, row stored: [UInt8]?, collection: UInt64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    try writeIndex(change, collection: collection, transaction)
    key.begin(.documents)
    key.append(number: collection)
    key.append(lastID: change.key.id)
    if let stored { try transaction.put(key, stored) } else { try transaction.remove(key) }
  }

  /// Adds the new index entries of a document to `puts`.
  mutating func stage(
    _ index: IndexChanges, of documentKey: DocumentKey, collection: UInt64, into puts: inout SortedPuts,
    _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    try numberFields(of: index, transaction)
    for entry in index.entries where entry.isAddition {
      makeKey(of: entry, in: index, collection: collection, id: documentKey.id)
      puts.add(key, [])
    }
    for entry in index.composites where entry.isAddition {
      makeKey(of: entry, in: index, collection: collection, documentKey)
      puts.add(key, row)
    }
  }

  private func validPlan(_ member: Member, _ reader: inout SnapshotReader) throws(CommitError) -> CommitPlan {
    if let plan = member.plan, plan.indexGeneration == indexes.generation {
      var isFresh = true
      for (key, version) in plan.bases where try version != Self.version(of: key, &reader) {
        isFresh = false
        break
      }
      if isFresh { return plan }
    }
    return try CommitPlan(member.request, reader: &reader, indexes: indexes, requestTime: member.requestTime)
  }

  private static func version(of key: DocumentKey, _ reader: inout SnapshotReader) throws(CommitError) -> Int64 {
    do { return try reader.document(key)?.updateVersion ?? 0 } catch { throw .storage(error) }
  }

  private func outcome(of plan: CommitPlan, version: Int64) -> CommitOutcome {
    let time = Timestamp(uncheckedMicroseconds: version)
    return CommitOutcome(
      version: time,
      results: plan.results.map { result in
        switch result.time {
        case .commit: WriteResult(updateTime: time, transformResults: result.transformResults)
        case .earlier(let earlier):
          WriteResult(
            updateTime: Timestamp(uncheckedMicroseconds: earlier), transformResults: result.transformResults)
        case .none: WriteResult(updateTime: nil, transformResults: result.transformResults)
        }
      })
  }

  // MARK: Writing one change

  private mutating func write(
    _ change: CommitPlan.Change, position: Int, version: Int64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    let collection = try catalog.collectionNumber(change.key.collection, transaction)
    touched[change.key.collection] = (collection, version)
    try keepBeforeImage(of: change.key, collection: collection, version: version, transaction)
    try writeIndex(change, collection: collection, transaction)
    try writeDocument(change, collection: collection, version: version, transaction)
    try log(change, position: position, collection: collection, version: version, transaction)
  }

  private mutating func writeDocument(
    _ change: CommitPlan.Change, collection: UInt64, version: Int64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    key.begin(.documents)
    key.append(number: collection)
    key.append(lastID: change.key.id)
    if let fields = change.fields {
      encodeRow(fields, create: change.createVersion ?? version, update: version)
      try transaction.put(key, row)
    } else {
      try transaction.remove(key)
    }
  }

  /// Encodes the row of the document whose storage key is ``key`` into ``row``.
  private mutating func encodeRow(_ fields: EncodedFields, create: Int64, update: Int64) {
    key.bytes.withUnsafeBytes { key in
      fields.bytes.withUnsafeBytes { fields in
        StoredDocument.encode(key: key, create: create, update: update, fields: fields, into: &row)
      }
    }
  }

  /// Copies the stored row, if any, to the history.
  private mutating func keepBeforeImage(
    of documentKey: DocumentKey, collection: UInt64, version: Int64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    key.begin(.documents)
    key.append(number: collection)
    key.append(lastID: documentKey.id)
    let wasThere = try key.withBytes { (key) throws(StorageError) in
      guard let stored = try transaction.value(for: key) else { return false }
      row.removeAll(keepingCapacity: true)
      row.append(raw: stored)
      return true
    }
    guard wasThere else { return }
    key.begin(.history)
    key.append(number: collection)
    key.append(segment: documentKey.id)
    key.append(version: version)
    try transaction.put(key, row)
  }

  private mutating func writeIndex(
    _ change: CommitPlan.Change, collection: UInt64, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    let index = change.index
    try numberFields(of: index, transaction)
    for entry in index.entries {
      makeKey(of: entry, in: index, collection: collection, id: change.key.id)
      if entry.isAddition {
        try transaction.put(key, [])
      } else {
        try transaction.remove(key)
      }
    }
    for entry in index.composites {
      makeKey(of: entry, in: index, collection: collection, change.key)
      if entry.isAddition {
        try transaction.put(key, row)
      } else {
        try transaction.remove(key)
      }
    }
  }

  /// Builds the key of an entry in ``key`` and its value in ``row``: the length of the name at the end of the key.
  private mutating func makeKey(
    of entry: IndexChanges.CompositeEntry, in index: IndexChanges, collection: UInt64, _ documentKey: DocumentKey
  ) {
    key.begin(entry.table)
    key.append(number: entry.index)
    if entry.table == .compositeEntries { key.append(number: collection) }
    key.append(raw: index.bytes[entry.code])
    let count = key.bytes.count
    if entry.table == .compositeEntries {
      key.append(lastID: documentKey.id)
    } else {
      key.append(path: documentKey.path)
    }
    row.removeAll(keepingCapacity: true)
    OrderedCode.append(number: UInt64(key.bytes.count - count), to: &row)
  }

  private mutating func makeKey(
    of entry: IndexChanges.Entry, in index: IndexChanges, collection: UInt64, id: ArraySlice<UInt8>
  ) {
    key.begin(entry.table)
    key.append(number: collection)
    key.append(number: fieldNumbers[entry.field])
    key.append(raw: index.bytes[entry.code])
    key.append(lastID: id)
  }

  /// Looks up the numbers of all fields and assigns missing ones.
  private mutating func numberFields(
    of index: IndexChanges, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    fieldNumbers.removeAll(keepingCapacity: true)
    for field in index.fields {
      let parent = field.parent.map { fieldNumbers[$0] } ?? 0
      var number: UInt64 = 0
      var failure: StorageError?
      index.bytes.withUnsafeBytes { bytes in
        do throws(StorageError) {
          number = try catalog.fieldNumber(
            UnsafeRawBufferPointer(rebasing: bytes[field.name]), parent: parent, transaction)
        } catch { failure = error }
      }
      if let failure { throw failure }
      fieldNumbers.append(number)
    }
  }

  private mutating func log(
    _ change: CommitPlan.Change, position: Int, collection: UInt64, version: Int64,
    _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    let kind: ChangeKind = change.fields == nil ? .removed : (change.createVersion == nil ? .created : .updated)
    row.removeAll(keepingCapacity: true)
    row.append(kind.rawValue)
    OrderedCode.append(number: collection, to: &row)
    OrderedCode.append(lastID: change.key.id, to: &row)
    key.begin(.changeLog)
    key.append(version: version)
    key.append(number: UInt64(position))
    try transaction.put(key, row)
    key.begin(.collectionChanges)
    key.append(number: collection)
    key.append(version: version)
    key.append(lastID: change.key.id)
    try transaction.put(key, [kind.rawValue])
    changeLogCount += 1
  }
}

/// The kind of change that a commit made to a document. The numbers are on disk.
package enum ChangeKind: UInt8, Sendable {
  case created = 1
  case updated = 2
  case removed = 3
}
