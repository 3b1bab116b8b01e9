import DocumentModel
import KeyEncoding
package import KeyValue

/// An iterator over the rows of the change log, oldest first.
package struct ChangeLogIterator {
  /// One row: a document that one commit changed.
  package struct Row: Sendable {
    /// The version of the commit.
    package var version: Int64
    /// The position of the change in its commit, ascending from 0. Always 0 in the log of one collection.
    package var position: UInt64
    package var kind: ChangeKind
    /// The number of the document's collection.
    package var collection: UInt64
    /// The document's ID as ``OrderedCode/append(lastID:to:)`` encodes it.
    package var idCode: [UInt8]

    /// The changed document.
    package var document: ChangedDocument { ChangedDocument(collection: collection, idCode: idCode) }
  }

  private let collection: UInt64?
  private let rows: PrefixCursor

  /// Starts after a commit, in the log of one collection or of all.
  ///
  /// The log is complete from ``MetaKey/changeLogFrom`` on. The caller must check that `version` is not below it.
  /// - Throws: ``StorageError`` if the read fails.
  package init(
    _ snapshot: any KeyValueSnapshot, after version: Int64, in collection: UInt64? = nil
  ) throws(StorageError) {
    var key = Self.begin(collection)
    rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: version + 1)
    try rows.seek(key)
    self.collection = collection
  }

  /// Starts after a row of the log of all collections.
  /// - Throws: ``StorageError`` if the read fails.
  package init(
    _ snapshot: any KeyValueSnapshot, after position: UInt64, of version: Int64
  ) throws(StorageError) {
    var key = Self.begin(nil)
    rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: version)
    key.append(number: position + 1)
    try rows.seek(key)
    collection = nil
  }

  /// Starts after a row of the log of one collection.
  /// - Throws: ``StorageError`` if the read fails.
  package init(_ snapshot: any KeyValueSnapshot, after row: Row) throws(StorageError) {
    var key = Self.begin(row.collection)
    rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: row.version)
    key.append(raw: row.idCode)
    key.append(raw: CollectionOfOne(0))  // The lowest key above the row's key.
    try rows.seek(key)
    collection = row.collection
  }

  private static func begin(_ collection: UInt64?) -> StorageKey {
    var key = StorageKey()
    if let collection {
      key.begin(.collectionChanges)
      key.append(number: collection)
    } else {
      key.begin(.changeLog)
    }
    return key
  }

  /// Returns the next row, or `nil` at the end.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if a row is malformed, or another ``StorageError`` if the
  ///   read fails.
  package func next() throws(StorageError) -> Row? {
    guard let key = try rows.suffix() else { return nil }
    guard let row = decode(key, rows.cursor.value) else {
      throw .corruption(
        path: collection == nil ? "changeLog" : "collectionChanges", detail: "malformed change-log row")
    }
    rows.consume()
    return row
  }

  private func decode(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Row? {
    guard key.count > 8, let kind = value.first.flatMap(ChangeKind.init) else { return nil }
    let version = OrderedCode.version(at: 0, of: key)
    var after = UnsafeRawBufferPointer(rebasing: key[8...])
    if let collection {
      return Row(version: version, position: 0, kind: kind, collection: collection, idCode: Array(after))
    }
    var rest = UnsafeRawBufferPointer(rebasing: value[1...])
    guard let position = OrderedCode.takeNumber(&after), let number = OrderedCode.takeNumber(&rest) else { return nil }
    return Row(version: version, position: position, kind: kind, collection: number, idCode: Array(rest))
  }
}

/// The changes of consecutive commits.
package struct LoggedChanges: Sendable {
  /// The changed documents, each once, in the order of their first change.
  package var documents: [ChangedDocument]
  /// The version of the last commit whose changes are included. No commit is included in part.
  package var upTo: Int64
}

extension SnapshotReader {
  /// Returns the changes of the commits after `version`, up to the newest commit. If there are more than about
  /// `rowsMax` changes, it stops after the commit that reaches the limit.
  ///
  /// The version must not be below ``MetaKey/changeLogFrom``. Cost: one step per change.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package mutating func loggedChanges(after version: Int64, rowsMax: Int) throws(StorageError) -> LoggedChanges {
    let scan = try ChangeLogIterator(snapshot, after: version)
    var seen: Set<ChangedDocument> = []
    var changes = LoggedChanges(documents: [], upTo: version)
    var rows = 0
    while let row = try scan.next() {
      if rows >= rowsMax, row.version != changes.upTo { return changes }
      rows += 1
      changes.upTo = row.version
      if seen.insert(row.document).inserted { changes.documents.append(row.document) }
    }
    changes.upTo = max(changes.upTo, try lastVersion())
    return changes
  }

  /// Returns whether the log contains every commit after `version`. Cost: one lookup.
  /// - Throws: ``StorageError`` if the read fails.
  package mutating func isLogged(since version: Int64) throws(StorageError) -> Bool {
    Int64(bitPattern: try meta(.changeLogFrom)) <= version
  }

  /// Returns whether the state at `version` can be read. Cost: one lookup.
  /// - Throws: ``StorageError`` if the read fails.
  package mutating func isReadable(at version: Int64) throws(StorageError) -> Bool {
    Int64(bitPattern: try meta(.historyFrom)) <= version
  }
}

extension ChangedDocument {
  /// The document's ID, or `nil` if ``idCode`` is malformed.
  package var id: [UInt8]? {
    var id: [UInt8] = []
    return idCode.withUnsafeBytes { OrderedCode.decode(lastID: $0, into: &id) } ? id : nil
  }
}
