import DocumentModel
import KeyEncoding
package import KeyValue

/// The change log, row by row: what commits did to documents, oldest first.
package struct ChangeLogIterator {
  /// What one commit did to one document.
  package struct Row: Sendable {
    /// The commit.
    package var version: Int64
    /// Which of the commit's changes it is. Ascending, from 0; only in the log of all collections.
    package var position: UInt64
    /// What happened.
    package var kind: ChangeKind
    /// The number of the document's collection.
    package var collection: UInt64
    /// The document's id as ``OrderedCode/append(lastID:to:)`` writes it.
    package var idCode: [UInt8]

    /// The document.
    package var document: ChangedDocument { ChangedDocument(collection: collection, idCode: idCode) }
  }

  private let collection: UInt64?
  private let rows: PrefixCursor

  /// Starts behind a commit, in the log of one collection or of all.
  ///
  /// What the log holds from ``MetaKey/changeLogFrom`` on is complete; whether it reaches is for the caller to see to.
  package init(
    _ snapshot: any KeyValueSnapshot, after version: Int64, in collection: UInt64? = nil
  ) throws(StorageError) {
    var key = Self.begin(collection)
    rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: version + 1)
    try rows.seek(key)
    self.collection = collection
  }

  /// Starts behind a row of the log of all collections.
  package init(
    _ snapshot: any KeyValueSnapshot, behind position: UInt64, of version: Int64
  ) throws(StorageError) {
    var key = Self.begin(nil)
    rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: version)
    key.append(number: position + 1)
    try rows.seek(key)
    collection = nil
  }

  /// Starts behind a row of the log of one collection.
  package init(_ snapshot: any KeyValueSnapshot, behind row: Row) throws(StorageError) {
    var key = Self.begin(row.collection)
    rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: row.version)
    key.append(raw: row.idCode)
    key.append(raw: CollectionOfOne(0))  // The lowest key above the row's own.
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

  /// The next row, or `nil` at the end.
  /// - Throws: ``StorageError/corruption(path:detail:)`` for what is no row.
  package func next() throws(StorageError) -> Row? {
    guard let key = try rows.suffix() else { return nil }
    guard let row = decode(key, rows.cursor.value) else {
      throw .corruption(
        path: collection == nil ? "changeLog" : "collectionChanges", detail: "a row that is no change")
    }
    rows.consume()
    return row
  }

  private func decode(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Row? {
    guard key.count > 8, let kind = value.first.flatMap(ChangeKind.init) else { return nil }
    let version = OrderedCode.version(at: 0, of: key)
    var behind = UnsafeRawBufferPointer(rebasing: key[8...])
    if let collection {
      return Row(version: version, position: 0, kind: kind, collection: collection, idCode: Array(behind))
    }
    var rest = UnsafeRawBufferPointer(rebasing: value[1...])
    guard let position = OrderedCode.takeNumber(&behind), let number = OrderedCode.takeNumber(&rest) else { return nil }
    return Row(version: version, position: position, kind: kind, collection: number, idCode: Array(rest))
  }
}

/// What some commits, one behind the other, changed.
package struct LoggedChanges: Sendable {
  /// The documents, each once, in the order of their first change.
  package var documents: [ChangedDocument]
  /// The version of the last of the commits: all of its changes are among them.
  package var upTo: Int64
}

extension SnapshotReader {
  /// What commits after `version` changed, up to the newest or, where that is more than about `rowsMax` changes, up to
  /// the commit that reaches the bound; never a part of a commit.
  ///
  /// The version must not be below ``MetaKey/changeLogFrom``. Cost: a step for each change.
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

  /// Whether the log holds every commit after `version`. Cost: a lookup.
  package mutating func isLogged(since version: Int64) throws(StorageError) -> Bool {
    Int64(bitPattern: try meta(.changeLogFrom)) <= version
  }

  /// Whether the state at `version` can be read. Cost: a lookup.
  package mutating func isReadable(at version: Int64) throws(StorageError) -> Bool {
    Int64(bitPattern: try meta(.historyFrom)) <= version
  }
}

extension ChangedDocument {
  /// The document's id; `nil` where the code is none.
  package var id: [UInt8]? {
    var id: [UInt8] = []
    return idCode.withUnsafeBytes { OrderedCode.decode(lastID: $0, into: &id) } ? id : nil
  }
}
