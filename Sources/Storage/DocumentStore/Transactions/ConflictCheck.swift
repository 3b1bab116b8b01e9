import DocumentModel
import KeyEncoding
import KeyValue
import Matching
import WireFormat

/// Checks whether commits changed anything that a transaction read.
///
/// Documents read by name must still have the same version. Query results must be the same: every document in the
/// change log since the transaction's version is matched against each query, as it was then and as it is now.
/// States in between do not matter.
struct ConflictCheck {
  /// The reads that changes in one collection can affect.
  private struct AffectedReads {
    var path: ResourcePath
    /// Whether any change in the collection conflicts.
    var conflictsAlways = false
    /// The indices of the queries that cover the collection.
    var ranges: [Int] = []
    /// Ancestors of the collection that a listing shows even if they do not exist.
    var ancestors: [DocumentKey] = []
  }

  private let reads: ReadSet
  private var ranges: [QueryRange]
  private var affectedByCollection: [UInt64: AffectedReads] = [:]
  private var reader: SnapshotReader
  private var oldKey: [UInt8] = []
  private var newKey: [UInt8] = []

  /// The most documents that are looked up one by one, which costs less than a search of the log.
  private static let documentLookupsMax = 64

  private init(_ reads: ReadSet, _ snapshot: any KeyValueSnapshot) {
    self.reads = reads
    ranges = reads.ranges
    reader = SnapshotReader(snapshot)
  }

  /// Checks the reads against a snapshot or the open write transaction.
  ///
  /// `checked` is a version up to which an earlier check found no conflict, or `nil`. Cost: two lookups per
  /// document read, or one step per change in the log since. Reads with queries always cost one step per change,
  /// plus three lookups per change in a collection that a query covers.
  /// - Throws: ``CommitError/aborted(conflicting:)`` if a read changed, or if reads with queries need the log or the
  ///   history and it no longer reaches back far enough; ``CommitError/storage(_:)`` if the engine fails. Without
  ///   queries, a truncated log only means that each document is looked up.
  static func run(
    _ reads: ReadSet, on snapshot: any KeyValueSnapshot, checked: Int64? = nil
  ) throws(CommitError) {
    var check = ConflictCheck(reads, snapshot)
    let outcome: Outcome
    do throws(StorageError) { outcome = try check.outcome(checked: checked) } catch { throw .storage(error) }
    if case .changed(let path) = outcome { throw .aborted(conflicting: path) }
  }

  private enum Outcome {
    case unchanged
    /// Something changed: its path, if known.
    case changed(ResourcePath?)
  }

  private mutating func outcome(checked: Int64?) throws(StorageError) -> Outcome {
    let from = checked ?? reads.readVersion
    let isLogTruncated = Int64(bitPattern: try reader.meta(.changeLogFrom)) > from
    if reads.searchesLog {
      let isHistoryTruncated = Int64(bitPattern: try reader.meta(.historyFrom)) > reads.readVersion
      if isLogTruncated || isHistoryTruncated { return .changed(nil) }
    }
    let looksUpDocuments = checked == nil || isLogTruncated || reads.documents.count <= Self.documentLookupsMax
    if looksUpDocuments {
      for (key, version) in reads.documents where try reader.document(key)?.updateVersion ?? 0 != version {
        return .changed(key.path)
      }
    }
    guard reads.searchesLog || !looksUpDocuments else { return .unchanged }
    return try searchLog(after: from, forDocuments: !looksUpDocuments)
  }

  // MARK: The log

  private mutating func searchLog(after version: Int64, forDocuments: Bool) throws(StorageError) -> Outcome {
    var key = StorageKey()
    key.begin(.changeLog)
    let rows = PrefixCursor(try reader.snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: version + 1)
    try rows.seek(key)
    var id: [UInt8] = []
    while try rows.suffix() != nil {
      let row = rows.cursor.value
      guard let kind = row.first.flatMap(ChangeKind.init) else { throw Self.damagedLog }
      var idCode = UnsafeRawBufferPointer(rebasing: row.dropFirst())
      guard let collection = OrderedCode.takeNumber(&idCode) else { throw Self.damagedLog }
      let affected = try affectedReads(of: collection)
      if affected.conflictsAlways { return .changed(affected.path) }
      if forDocuments || !affected.ranges.isEmpty {
        id.removeAll(keepingCapacity: true)
        guard OrderedCode.decode(lastID: idCode, into: &id) else { throw Self.damagedLog }
        let path = affected.path.appending(id)
        if forDocuments, let key = DocumentKey(path), reads.documents[key] != nil { return .changed(path) }
        if try isChanged(affected.ranges, path, id, in: collection) { return .changed(path) }
      }
      if kind != .updated {
        for document in affected.ancestors where try hasGainedOrLostDescendants(document) {
          return .changed(document.path)
        }
      }
      rows.consume()
    }
    return .unchanged
  }

  private static let damagedLog = StorageError.corruption(path: "changeLog", detail: "malformed change-log row")

  private mutating func affectedReads(of collection: UInt64) throws(StorageError) -> AffectedReads {
    if let known = affectedByCollection[collection] { return known }
    let path = try reader.collectionPath(collection)
    var affected = AffectedReads(path: path)
    affected.conflictsAlways = reads.scopes.contains { $0.contains(path) }
    for (index, range) in ranges.enumerated() {
      if range.scope.contains(path) { affected.ranges.append(index) }
      if range.includesMissing, case .collection(let listed) = range.scope, path != listed, path.isAtOrBelow(listed) {
        let ancestor = path.segments.prefix(listed.segmentCount + 1).joined(
          separator: CollectionOfOne(UInt8(ascii: "/")))
        let ancestorPath = ResourcePath(uncheckedBytes: Array(ancestor))
        if let key = DocumentKey(ancestorPath), range.spansName(ancestorPath) { affected.ancestors.append(key) }
      }
    }
    affectedByCollection[collection] = affected
    return affected
  }

  // MARK: One document

  /// Returns whether a changed document is or was in one of the ranges, and the change affects the result.
  private mutating func isChanged(
    _ indices: [Int], _ path: ResourcePath, _ id: [UInt8], in collection: UInt64
  ) throws(StorageError) -> Bool {
    guard !indices.isEmpty else { return false }
    let now = try reader.document(id, in: collection)
    let before = try reader.document(id, in: collection, at: reads.readVersion)
    do throws(WireError) {
      for index in indices where try isChanged(index, path, from: before, to: now) { return true }
    } catch { throw .corruption(path: "documents", detail: "\(path): \(error.description)") }
    return false
  }

  private mutating func isChanged(
    _ index: Int, _ path: ResourcePath, from before: StoredDocument?, to now: StoredDocument?
  ) throws(WireError) -> Bool {
    let before = before.map { EncodedMap(documentFields: $0.fields) }
    let now = now.map { EncodedMap(documentFields: $0.fields) }
    var was = false
    if let before { was = try ranges[index].place(of: before, at: path, into: &oldKey) }
    var isNow = false
    if let now { isNow = try ranges[index].place(of: now, at: path, into: &newKey) }
    guard case .values(let fields, let comparesPositions) = ranges[index].observation, was, isNow, let before, let now
    else { return isNow || was }
    if comparesPositions, oldKey != newKey { return true }
    for field in fields {
      // A document in the range has every field that was aggregated.
      guard let old = try before.value(at: field), let new = try now.value(at: field) else { return true }
      if old.bytes.count != new.bytes.count || !old.bytes.elementsEqual(new.bytes) { return true }
    }
    return false
  }

  /// Returns whether a document that does not exist gained its first descendant or lost its last one.
  ///
  /// If the document exists now or existed at the read version, it is a result itself, and `isChanged` compares it.
  private mutating func hasGainedOrLostDescendants(_ key: DocumentKey) throws(StorageError) -> Bool {
    if let row = try reader.collection(key.collection) {
      if try reader.document(key.id, in: row.number) != nil { return false }
      if try reader.document(key.id, in: row.number, at: reads.readVersion) != nil { return false }
    }
    var now = try SubtreeSegments(reader.snapshot, below: key.path)
    var before = try SubtreeSegments(reader.snapshot, below: key.path, at: reads.readVersion)
    return try (now.next() == nil) != (before.next() == nil)
  }
}
