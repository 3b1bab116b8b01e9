import DocumentModel
import KeyEncoding
package import KeyValue

/// The rows of a database that differ from those at an earlier position: an incremental backup.
///
/// The change log names the documents that changed. Their rows, the history, the log, the catalog and all outcomes of
/// recent commits are written as they are stored, but without index entries, which ``ChangedRowsMerge`` computes again. A copy of the database at the
/// earlier position becomes equal to the database, row by row, when the changed rows are merged into it.
///
/// The format is a stream of bytes. Numbers are little-endian:
///
///     16 bytes   "hearth-changes 1"
///     8 bytes    the version at which the history begins
///     8 bytes    the version at which the change log begins
///     then for each row:
///     4 bytes    the size of the key
///     4 bytes    the size of the value, or FFFFFFFF if the row does not exist any more
///     …          the key, then the value
///     8 bytes    zeros, at the end
package struct ChangedRows {
  static let mark = Array("hearth-changes 1".utf8)
  static let headBytes = 32
  static let rowHeadBytes = 8
  static let missing = UInt32.max

  /// A reason why the changes since a position are not known.
  package enum Obstacle: Equatable, Sendable {
    /// The database was replaced, cleared, loaded or created since.
    case replaced
    /// The change log begins after the position.
    case trimmed
    /// The declared indexes or the settings of fields changed since.
    case reindexed
  }

  private let snapshot: any KeyValueSnapshot
  private var reader: SnapshotReader
  private var key = StorageKey()
  private var waiting: [UInt8] = []
  private let put: ([UInt8]) throws -> Void

  /// The number of bytes that are passed on at once, unless a row has more.
  private static let partBytes = 1 << 20

  /// Returns the reason why the changes since a position are not known, or `nil` if they are. Cost: a few lookups.
  /// - Throws: ``StorageError`` if the read fails.
  package static func obstacle(
    _ snapshot: any KeyValueSnapshot, since: DatabasePosition
  ) throws(StorageError) -> Obstacle? {
    let now = try DatabasePosition(snapshot)
    guard now.incarnation == since.incarnation, now.created == since.created, now.version >= since.version,
      // Loading documents into a new database writes no log.
      since.version > since.created
    else { return .replaced }
    var reader = SnapshotReader(snapshot)
    let logFrom = Int64(bitPattern: try reader.meta(.changeLogFrom))
    guard logFrom <= since.version else { return .trimmed }
    // After a return to an older copy of the file, other commits follow.
    if logFrom < since.version {
      guard try ChangeLogIterator(snapshot, after: since.version - 1).next()?.version == since.version else {
        return .replaced
      }
    }
    return now.indexes == since.indexes ? nil : .reindexed
  }

  /// Passes the changes since a position, which ``obstacle(_:since:)`` permits, to `put` in parts of about a megabyte.
  ///
  /// Memory: two parts. Cost: five lookups for each row of the log.
  /// - Throws: ``StorageError`` if the read fails, or the error of `put`.
  package static func write(
    _ snapshot: any KeyValueSnapshot, since: DatabasePosition, to put: @escaping ([UInt8]) throws -> Void
  ) throws {
    var rows = ChangedRows(snapshot, put)
    try rows.writeHead()
    try rows.writeCatalog(since)
    try rows.writeLog(since)
    try rows.writeAll(of: .recentCommits)
    try put(rows.waiting + [UInt8](repeating: 0, count: Self.rowHeadBytes))
  }

  private init(_ snapshot: any KeyValueSnapshot, _ put: @escaping ([UInt8]) throws -> Void) {
    self.snapshot = snapshot
    self.put = put
    reader = SnapshotReader(snapshot)
  }

  private mutating func writeHead() throws {
    waiting += Self.mark
    for name in [MetaKey.historyFrom, .changeLogFrom] {
      withUnsafeBytes(of: try reader.meta(name).littleEndian) { waiting.append(raw: $0) }
    }
  }

  /// Writes the numbers of the database, and the collections and fields that were added.
  private mutating func writeCatalog(_ since: DatabasePosition) throws {
    try writeAll(of: .meta)
    let paths = try cursor(.collectionPaths, from: since.collectionNumber + 1)
    while var suffix = try paths.suffix() {
      guard let number = OrderedCode.takeNumber(&suffix) else { throw Self.damage("collectionPaths") }
      try add(paths.cursor.key, paths.cursor.value)
      let path = try reader.collectionPath(number)
      key.begin(.collections)
      key.append(path: path)
      try addStored()
      key.begin(.collectionGroups)
      key.append(segment: path.lastSegment)
      key.append(number: number)
      try addStored()
      paths.consume()
    }
    let names = try cursor(.fieldNames, from: since.fieldNumber + 1)
    while try names.suffix() != nil {
      var rest = names.cursor.value
      guard let parent = OrderedCode.takeNumber(&rest) else { throw Self.damage("fieldNames") }
      try add(names.cursor.key, names.cursor.value)
      key.begin(.fields)
      key.append(number: parent)
      key.append(raw: rest)
      try addStored()
      names.consume()
    }
  }

  private mutating func writeAll(of table: Table) throws {
    let rows = try DatabaseContents.cursor(table, snapshot)
    while try rows.suffix() != nil {
      try add(rows.cursor.key, rows.cursor.value)
      rows.consume()
    }
  }

  /// Writes the new rows of the log, and what they refer to. A document is written with its last change only.
  private mutating func writeLog(_ since: DatabasePosition) throws {
    let historyFrom = Int64(bitPattern: try reader.meta(.historyFrom))
    let log = try ChangeLogIterator(snapshot, after: since.version)
    var touched: (collection: UInt64, version: Int64)?
    while let row = try log.next() {
      key.begin(.changeLog)
      key.append(version: row.version)
      key.append(number: row.position)
      try addStored()
      key.begin(.collectionChanges)
      key.append(number: row.collection)
      key.append(version: row.version)
      key.append(raw: row.idCode)
      try addStored()
      if touched?.collection != row.collection || touched?.version != row.version {
        touched = (row.collection, row.version)
        let path = try reader.collectionPath(row.collection)
        if try reader.collection(path)?.lastChange == row.version {
          key.begin(.collections)
          key.append(path: path)
          try addStored()
        }
      }
      try writeDocument(row)
      guard row.version > historyFrom else { continue }
      guard let id = row.document.id else { throw Self.damage("changeLog") }
      key.begin(.history)
      key.append(number: row.collection)
      key.append(segment: id)
      key.append(version: row.version)
      if try stored() != nil { try addStored() }
    }
  }

  private mutating func writeDocument(_ row: ChangeLogIterator.Row) throws {
    key.begin(.documents)
    key.append(number: row.collection)
    key.append(raw: row.idCode)
    guard let value = try stored() else {
      // A document that was deleted several times is written several times.
      guard row.kind == .removed else { return }
      return try key.withBytes { try add($0, nil) }
    }
    try key.withBytes { key in
      let document: StoredDocument
      do { document = try StoredDocument(row: value, key: key) } catch { throw Self.damage("documents") }
      if document.updateVersion == row.version { try add(key, value) }
    }
  }

  private func cursor(_ table: Table, from number: UInt64) throws(StorageError) -> PrefixCursor {
    var key = StorageKey()
    key.begin(table)
    let rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(number: number)
    try rows.seek(key)
    return rows
  }

  private static func damage(_ table: String) -> StorageError {
    .corruption(path: table, detail: "a row that changed is malformed")
  }

  /// Returns the value that is stored under ``key``.
  private func stored() throws(StorageError) -> UnsafeRawBufferPointer? {
    try key.withBytes { (key) throws(StorageError) in try snapshot.value(for: key) }
  }

  /// Writes the row under ``key``.
  private mutating func addStored() throws {
    guard let value = try stored() else { throw Self.damage("a table") }
    try key.withBytes { try add($0, value) }
  }

  /// Writes a row, or with `nil` that it does not exist.
  private mutating func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?) throws {
    withUnsafeBytes(of: UInt32(key.count).littleEndian) { waiting.append(raw: $0) }
    withUnsafeBytes(of: (value.map { UInt32($0.count) } ?? Self.missing).littleEndian) { waiting.append(raw: $0) }
    waiting.append(raw: key)
    if let value { waiting.append(raw: value) }
    guard waiting.count >= Self.partBytes else { return }
    try put(waiting)
    waiting.removeAll(keepingCapacity: true)
  }
}
