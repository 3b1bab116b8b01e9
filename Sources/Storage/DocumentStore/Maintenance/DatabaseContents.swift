package import KeyValue

/// How much a database holds.
package struct DatabaseContents: Equatable, Sendable {
  /// Documents.
  package var documents = 0
  /// Collections that were ever written to.
  package var collections = 0
  /// Index entries.
  package var indexEntries = 0
  /// Before-images.
  package var history = 0
  /// Entries of the change log.
  package var changes = 0

  /// Counts. Cost: reads every key of the database.
  package init(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    documents = try Self.count(.documents, snapshot)
    collections = try Self.count(.collections, snapshot)
    for table in Table.entryTables { indexEntries += try Self.count(table, snapshot) }
    history = try Self.count(.history, snapshot)
    changes = try Self.count(.changeLog, snapshot)
  }

  /// Whether there is no document and no past of one. Cost: two lookups.
  package static func isEmpty(_ snapshot: any KeyValueSnapshot) throws(StorageError) -> Bool {
    for table in [Table.documents, .history] where try cursor(table, snapshot).suffix() != nil { return false }
    return true
  }

  static func count(_ table: Table, _ snapshot: any KeyValueSnapshot) throws(StorageError) -> Int {
    let rows = try cursor(table, snapshot)
    var count = 0
    while try rows.suffix() != nil {
      count += 1
      rows.consume()
    }
    return count
  }

  /// A cursor before the first row of a table.
  static func cursor(_ table: Table, _ snapshot: any KeyValueSnapshot) throws(StorageError) -> PrefixCursor {
    var key = StorageKey()
    key.begin(table)
    let cursor = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    try cursor.seek(key)
    return cursor
  }
}
