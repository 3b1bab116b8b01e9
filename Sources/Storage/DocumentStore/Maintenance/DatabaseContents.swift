package import KeyValue

/// The number of rows of each kind in a database.
package struct DatabaseContents: Equatable, Sendable {
  package var documents = 0
  /// The number of collections that were ever written to.
  package var collections = 0
  package var indexEntries = 0
  /// The number of before-images.
  package var history = 0
  /// The number of entries in the change log.
  package var changes = 0

  /// Counts the rows. Cost: reads every key of the database.
  /// - Throws: ``StorageError`` if the read fails.
  package init(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    documents = try Self.count(.documents, snapshot)
    collections = try Self.count(.collections, snapshot)
    for table in Table.entryTables { indexEntries += try Self.count(table, snapshot) }
    history = try Self.count(.history, snapshot)
    changes = try Self.count(.changeLog, snapshot)
  }

  /// Counts the documents. Cost: reads every key of a document.
  /// - Throws: ``StorageError`` if the read fails.
  package static func documentCount(_ snapshot: any KeyValueSnapshot) throws(StorageError) -> Int {
    try count(.documents, snapshot)
  }

  /// Returns whether the database has no documents and no history. Cost: two lookups.
  /// - Throws: ``StorageError`` if the read fails.
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

  /// Returns a cursor before the first row of a table.
  static func cursor(_ table: Table, _ snapshot: any KeyValueSnapshot) throws(StorageError) -> PrefixCursor {
    var key = StorageKey()
    key.begin(table)
    let cursor = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    try cursor.seek(key)
    return cursor
  }
}
