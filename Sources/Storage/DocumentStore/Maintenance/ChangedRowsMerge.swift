import DocumentModel
import KeyEncoding
package import KeyValue

/// Merges ``ChangedRows`` into a copy of the database at the earlier position. Afterwards the copy has the rows that the
/// database had when the changes were written, and the same incarnation.
///
/// If a merge fails, the copy is useless. Memory: one batch of rows. Cost: one write transaction for each batch.
package final class ChangedRowsMerge {
  private let store: any KeyValueStore
  private var writer: CommitWriter
  private let indexes: IndexCatalog
  private var hasHead = false
  private var hasEnd = false
  /// The bytes that are not merged yet.
  private var waiting: [UInt8] = []

  /// The number of bytes that are merged in one write transaction, unless a row has more.
  private static let batchBytes = 8 << 20

  /// Begins a merge into a store whose position must be `since`, apart from the incarnation.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if it has another position, or another ``StorageError`` if the
  ///   read fails.
  package init(into store: any KeyValueStore, since: DatabasePosition) throws(StorageError) {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    guard try DatabasePosition(snapshot).isSameContent(as: since) else {
      throw Self.damage("they do not follow the state of the database")
    }
    self.store = store
    var reader = SnapshotReader(snapshot)
    indexes = try IndexCatalog(&reader)
    writer = CommitWriter(indexCache: IndexCatalogCache())
  }

  /// Merges the next bytes of the stream, which may end anywhere.
  /// - Throws: ``StorageError`` if they are malformed, or the engine fails.
  package func add(_ bytes: [UInt8]) throws(StorageError) {
    waiting += bytes
    if waiting.count >= Self.batchBytes { try mergeWaiting() }
  }

  /// Merges the rest of the stream, and checks that the store now has a position.
  /// - Throws: ``StorageError`` if the stream is incomplete or malformed, or the engine fails.
  package func finish(at position: DatabasePosition) throws(StorageError) {
    try mergeWaiting()
    guard hasHead, hasEnd, waiting.isEmpty else { throw Self.damage("they are incomplete") }
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    guard try DatabasePosition(snapshot) == position else {
      throw Self.damage("they do not lead to the state of the backup")
    }
  }

  private static func damage(_ detail: String) -> StorageError { .corruption(path: "the changes", detail: detail) }

  private func mergeWaiting() throws(StorageError) {
    let bytes = waiting
    var position = 0
    if !hasHead {
      guard bytes.count >= ChangedRows.headBytes else { return }
      try mergeHead(bytes)
      position = ChangedRows.headBytes
      hasHead = true
    }
    try store.write { (transaction) throws(StorageError) in
      while let (key, value, end) = try Self.row(bytes, at: position) {
        guard !hasEnd else { throw Self.damage("they continue after their end") }
        if key.isEmpty { hasEnd = true } else { try merge(key, value, transaction) }
        position = end
      }
    }
    waiting = Array(bytes[position...])
  }

  /// Checks the head, and removes the history and the log that the later state no longer has, and the outcomes of recent
  /// commits, all of which follow.
  private func mergeHead(_ bytes: [UInt8]) throws(StorageError) {
    guard bytes.starts(with: ChangedRows.mark) else { throw Self.damage("their format is unknown") }
    let historyFrom = Self.number(bytes, at: ChangedRows.mark.count, UInt64.self)
    let logFrom = Self.number(bytes, at: ChangedRows.mark.count + 8, UInt64.self)
    let retention = Retention(changeLogEntriesMax: .max)
    var hasMore = true
    while hasMore {
      try store.write { (transaction) throws(StorageError) in
        hasMore = try Trimmer(retention: retention, ages: VersionAges()).trim(
          transaction, historyUpTo: Int64(bitPattern: historyFrom), logUpTo: Int64(bitPattern: logFrom))
      }
    }
    try store.write { (transaction) throws(StorageError) in try transaction.removeAll(of: .recentCommits) }
  }

  private static func number<Number: FixedWidthInteger>(_ bytes: [UInt8], at start: Int, _: Number.Type) -> Number {
    bytes.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: start, as: Number.self)) }
  }

  /// Returns the row that begins at a place and the place after it, or `nil` if it is incomplete. The key of the end is
  /// empty.
  private static func row(
    _ bytes: [UInt8], at start: Int
  ) throws(StorageError) -> (key: [UInt8], value: [UInt8]?, end: Int)? {
    guard bytes.count - start >= ChangedRows.rowHeadBytes else { return nil }
    let keyBytes = Int(number(bytes, at: start, UInt32.self))
    let size = number(bytes, at: start + 4, UInt32.self)
    let valueBytes = size == ChangedRows.missing ? 0 : Int(size)
    guard keyBytes <= KeyValueLimits.keyBytesMax, keyBytes > 0 || size == 0, valueBytes <= KeyValueLimits.valueBytesMax
    else {
      throw damage("a row has an impossible size")
    }
    let key = start + ChangedRows.rowHeadBytes
    let end = key + keyBytes + valueBytes
    guard bytes.count >= end else { return nil }
    let value = size == ChangedRows.missing ? nil : Array(bytes[(key + keyBytes)..<end])
    return (Array(bytes[key..<(key + keyBytes)]), value, end)
  }

  private func merge(
    _ key: [UInt8], _ value: [UInt8]?, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    switch Table(rawValue: key[0]) {
    case .documents: try mergeDocument(key, value, transaction)
    case .meta, .collections, .collectionGroups, .collectionPaths, .fields, .fieldNames, .changeLog,
      .collectionChanges, .history, .recentCommits:
      guard let value else { throw Self.damage("they remove a row of the catalog or the log") }
      var row = StorageKey()
      row.begin(raw: key)
      try transaction.put(row, value)
    default: throw Self.damage("they contain a row of an unknown table")
    }
  }

  /// Stores a document, or removes it, with its index entries.
  private func mergeDocument(
    _ key: [UInt8], _ value: [UInt8]?, _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    var collection: UInt64?
    var id: [UInt8] = []
    var old: [UInt8]?
    var failure: StorageError?
    let isValid = key.withUnsafeBytes { bytes in
      var rest = UnsafeRawBufferPointer(rebasing: bytes[1...])
      collection = OrderedCode.takeNumber(&rest)
      do throws(StorageError) { old = try transaction.value(for: bytes).map { Array($0) } } catch { failure = error }
      return OrderedCode.decode(lastID: rest, into: &id)
    }
    if let failure { throw failure }
    guard let collection, isValid, !id.isEmpty else { throw Self.damage("the key of a document is malformed") }
    var reader = SnapshotReader(transaction)
    let path = try reader.collectionPath(collection).appending(id)
    let document = DocumentKey(uncheckedPath: path)
    do throws(CommitError) {
      // The larger edition accepts the documents of both.
      let index = try CommitPlan.index(
        document, from: try Self.fields(old, key), to: try Self.fields(value, key), .enterprise, indexes)
      let change = CommitPlan.Change(key: document, fields: nil, createVersion: nil, index: index)
      do throws(StorageError) {
        try writer.copy(change, row: value, collection: collection, transaction)
      } catch { throw .storage(error) }
    } catch {
      if case .storage(let error) = error { throw error }
      throw Self.damage("a document is not valid: \(error)")
    }
  }

  /// Returns the fields of the row of a document.
  private static func fields(_ row: [UInt8]?, _ key: [UInt8]) throws(CommitError) -> EncodedFields? {
    guard let row else { return nil }
    let fields = row.withUnsafeBytes { row in
      key.withUnsafeBytes { key in (try? StoredDocument(row: row, key: key)).map { Array($0.fields) } }
    }
    guard let fields else { throw .storage(damage("the checksum of a document does not match")) }
    return EncodedFields(canonical: fields)
  }
}
