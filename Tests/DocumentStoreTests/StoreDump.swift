import DocumentModel
import DocumentStore
import KeyValue
import Matching
import Testing
import TestSupport
import WireFormat

/// All entries of a store.
struct StoreDump: Equatable {
  var entries: [[UInt8]: [UInt8]] = [:]

  init(_ db: TestDatabase, table: Table? = nil) throws { try self.init(db.store, table: table) }

  init(_ store: any KeyValueStore, table: Table? = nil) throws {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    let cursor = try snapshot.makeCursor()
    let start: [UInt8] = [table?.rawValue ?? 0]
    var isThere = try start.withUnsafeBytes { key throws(StorageError) in try cursor.seek(atOrAfter: key) }
    while isThere {
      if let table, cursor.key[0] != table.rawValue { break }
      entries[Array(cursor.key)] = Array(cursor.value)
      isThere = try cursor.next()
    }
  }
}
