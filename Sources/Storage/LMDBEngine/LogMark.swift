import CLMDB
import Glibc
package import KeyValue

/// The note in a data file about the commit log beside it. Each transaction that changes it stores it with its entries.
package struct LogMark: Equatable, Sendable {
  /// Whether the log may contain commits that are not in the file. Then ``LMDBStore/open(_:)`` refuses the file unless
  /// ``LMDBOptions/acceptsOpenLog`` is set, and older versions of Hearth refuse it too.
  package var isOpen: Bool
  /// The position in the log up to which the file has every commit, as the log's code encodes it. At most 64 bytes.
  package var position: [UInt8]

  package init(isOpen: Bool, position: [UInt8]) {
    self.isOpen = isOpen
    self.position = position
  }
}

extension LMDBStore {
  /// Returns the mark in the file, or `nil` if the file never had a log. Cost: two lookups.
  /// - Throws: ``StorageError`` if the read fails.
  package func logMark() throws(StorageError) -> LogMark? {
    try withReadTransaction { transaction throws(StorageError) in
      var key = MDB_val(LongKeys.logKey)
      var value = MDB_val()
      let code = mdb_get(transaction, databases.meta, &key, &value)
      if code == MDB_NOTFOUND { return nil }
      guard code == 0 else { throw failure(code, "mdb_get") }
      let position = [UInt8](value.bytes)
      key = MDB_val(LongKeys.layoutKey)
      let layoutCode = mdb_get(transaction, databases.meta, &key, &value)
      guard layoutCode == 0 else { throw failure(layoutCode, "mdb_get") }
      guard value.mv_size == MemoryLayout<UInt32>.size, let bytes = value.mv_data else {
        throw .corruption(path: path, detail: "the layout number has \(value.mv_size) bytes, not 4")
      }
      let layout = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
      return LogMark(isOpen: layout == LongKeys.openLogVersion, position: position)
    }
  }

  /// Removes the mark of a log that is closed, if there is one. The transaction is not in that log, so the next log begins
  /// a history of its own, and no copy of the old log fits the file.
  func removeMark(in transaction: OpaquePointer) throws(StorageError) {
    var key = MDB_val(LongKeys.logKey)
    let code = mdb_del(transaction, databases.meta, &key, nil)
    guard code == 0 || code == MDB_NOTFOUND else { throw failure(code, "mdb_del") }
  }

  /// Stores a mark in an open transaction.
  func put(_ mark: LogMark, in transaction: OpaquePointer) throws(StorageError) {
    precondition(mark.position.count <= 64, "a mark is small")
    let layout = (mark.isOpen ? LongKeys.openLogVersion : LongKeys.layoutVersion).bigEndian
    let codes = mark.position.withUnsafeBytes { position in
      withUnsafeBytes(of: layout) { layout in
        [(LongKeys.logKey, position), (LongKeys.layoutKey, layout)].map { name, bytes in
          var key = MDB_val(name)
          var value = MDB_val(bytes)
          return mdb_put(transaction, databases.meta, &key, &value, 0)
        }
      }
    }
    for code in codes where code != 0 { throw failure(code, "mdb_put") }
  }
}
