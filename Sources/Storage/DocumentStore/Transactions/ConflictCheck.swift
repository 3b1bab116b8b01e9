import DocumentModel
import KeyEncoding
import KeyValue
import Matching
import WireFormat

/// Finds out whether a commit changed what a transaction read.
///
/// Documents that were asked for by name must have the version they had. The results of queries must be what they
/// were: every document that the change log names since is tried on each query as it was at the transaction's version
/// and as it is. Of what happened in between nothing shows.
struct ConflictCheck {
  /// Which parts of what was read a collection's changes can touch.
  private struct Bearing {
    var path: ResourcePath
    /// Any change conflicts.
    var isWhole = false
    /// Queries that look here.
    var ranges: [Int] = []
    /// Documents above it that a listing shows even while they are missing.
    var ancestors: [DocumentKey] = []
  }

  private let reads: ReadSet
  private var ranges: [QueryRange]
  private var bearings: [UInt64: Bearing] = [:]
  private var reader: SnapshotReader
  private var wasPlace: [UInt8] = []
  private var isPlace: [UInt8] = []

  /// So few documents are looked up, which costs less than a search of the log.
  private static let lookedUpDocumentsMax = 64

  private init(_ reads: ReadSet, _ snapshot: any KeyValueSnapshot) {
    self.reads = reads
    ranges = reads.ranges
    reader = SnapshotReader(snapshot)
  }

  /// Checks against what a snapshot, or the write transaction of the moment, shows.
  ///
  /// What was `checked` up to a version is not looked at again. Cost: two lookups a document that was read, or a step
  /// a change in the log since; with queries such a step always, and three lookups a change where a query looks.
  /// - Throws: ``CommitError/aborted(conflicting:)``, also where log or history no longer reach back far enough.
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
    /// What changed, as far as that is known.
    case changed(ResourcePath?)
  }

  private mutating func outcome(checked: Int64?) throws(StorageError) -> Outcome {
    let from = checked ?? reads.readVersion
    let isCut = Int64(bitPattern: try reader.meta(.changeLogFrom)) > from
    if reads.searchesLog {
      let isForgotten = Int64(bitPattern: try reader.meta(.historyFrom)) > reads.readVersion
      if isCut || isForgotten { return .changed(nil) }
    }
    let looksUp = checked == nil || isCut || reads.documents.count <= Self.lookedUpDocumentsMax
    if looksUp {
      for (key, version) in reads.documents where try reader.document(key)?.updateVersion ?? 0 != version {
        return .changed(key.path)
      }
    }
    return reads.searchesLog || !looksUp ? try searchLog(after: from, forDocuments: !looksUp) : .unchanged
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
      let bearing = try bearing(of: collection)
      if bearing.isWhole { return .changed(bearing.path) }
      if forDocuments || !bearing.ranges.isEmpty {
        id.removeAll(keepingCapacity: true)
        guard OrderedCode.decode(lastID: idCode, into: &id) else { throw Self.damagedLog }
        let path = bearing.path.appending(id)
        if forDocuments, let key = DocumentKey(path), reads.documents[key] != nil { return .changed(path) }
        if try isChanged(bearing.ranges, path, id, in: collection) { return .changed(path) }
      }
      if kind != .updated {
        for document in bearing.ancestors where try isMissingAnew(document) {
          return .changed(document.path)
        }
      }
      rows.consume()
    }
    return .unchanged
  }

  private static let damagedLog = StorageError.corruption(path: "changeLog", detail: "a row that is no change")

  private mutating func bearing(of collection: UInt64) throws(StorageError) -> Bearing {
    if let known = bearings[collection] { return known }
    let path = try reader.collectionPath(collection)
    var bearing = Bearing(path: path)
    bearing.isWhole = reads.scopes.contains { $0.contains(path) }
    for (index, range) in ranges.enumerated() {
      if range.scope.contains(path) { bearing.ranges.append(index) }
      if range.includesMissing, case .collection(let listed) = range.scope, path != listed, path.isAtOrBelow(listed) {
        let ancestor = path.segments.prefix(listed.segmentCount + 1).joined(separator: CollectionOfOne(UInt8(ascii: "/")))
        let ancestorPath = ResourcePath(uncheckedBytes: Array(ancestor))
        if let key = DocumentKey(ancestorPath), range.spansName(ancestorPath) { bearing.ancestors.append(key) }
      }
    }
    bearings[collection] = bearing
    return bearing
  }

  // MARK: One document

  /// Whether a document that changed is in one of the ranges, before or after.
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
    if let before { was = try ranges[index].place(of: before, at: path, into: &wasPlace) }
    var isNow = false
    if let now { isNow = try ranges[index].place(of: now, at: path, into: &isPlace) }
    guard case .values(let fields, let places) = ranges[index].observation, was, isNow, let before, let now else {
      return isNow || was
    }
    if places, wasPlace != isPlace { return true }
    for field in fields {
      // A document in the range has every field that was aggregated.
      guard let old = try before.value(at: field), let new = try now.value(at: field) else { return true }
      if old.bytes.count != new.bytes.count || !old.bytes.elementsEqual(new.bytes) { return true }
    }
    return false
  }

  /// Whether a document that does not exist came to have descendants, or has none any more.
  ///
  /// One that exists now, or did, is listed for itself: its own changes tell.
  private mutating func isMissingAnew(_ key: DocumentKey) throws(StorageError) -> Bool {
    if let row = try reader.collection(key.collection) {
      if try reader.document(key.id, in: row.number) != nil { return false }
      if try reader.document(key.id, in: row.number, at: reads.readVersion) != nil { return false }
    }
    var now = try SubtreeSegments(reader.snapshot, below: key.path)
    var before = try SubtreeSegments(reader.snapshot, below: key.path, at: reads.readVersion)
    return try (now.next() == nil) != (before.next() == nil)
  }
}
