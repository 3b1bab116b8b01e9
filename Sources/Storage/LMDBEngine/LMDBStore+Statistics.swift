import CLMDB
import Glibc
package import KeyValue

extension LMDBStore {
  /// Returns sizes and counts. Cost: a few page reads; nothing is scanned.
  ///
  /// Also frees the reader slots of processes that died with a snapshot open. Until then, LMDB cannot reuse pages
  /// freed since, and the file grows. A server whose files other processes open should call this regularly.
  /// - Throws: ``StorageError`` if the read fails.
  package func statistics() throws(StorageError) -> KeyValueStatistics {
    let checked = mdb_reader_check(environment, nil)
    guard checked == 0 else { throw failure(checked, "mdb_reader_check") }
    let readers = openReaders()
    return try withReadTransaction { transaction throws(StorageError) in
      var pages = 2  // The meta pages.
      var entries = 0
      // 0 and 1 are LMDB's own databases: the free pages and the names.
      for database in [0, 1, databases.entries, databases.continuations, databases.meta] {
        let counts = try self.counts(of: database, in: transaction)
        pages += counts.ms_branch_pages + counts.ms_leaf_pages + counts.ms_overflow_pages
        if database == databases.entries || database == databases.continuations { entries += counts.ms_entries }
      }
      let pageBytes = Int(try counts(of: 0, in: transaction).ms_psize)
      var file = stat()
      guard fstat(fileDescriptor, &file) == 0 else { throw .systemCall("fstat", path: path) }
      // Each node in use has one pointer among the entries.
      let pointers = Int(clamping: try nodeCounts(in: transaction).inUse)
      return KeyValueStatistics(
        entries: entries - pointers, usedBytes: pages * pageBytes, fileBytes: Int(file.st_size),
        limitBytes: mapBytes, readers: readers)
    }
  }

  /// The number of the last write transaction. If two values are equal, nothing was written in between. Cost: a few
  /// loads.
  package var lastTransaction: Int {
    var information = MDB_envinfo()
    mdb_env_info(environment, &information)
    return information.me_last_txnid
  }

  /// Runs `body` in a separate read transaction.
  func withReadTransaction<Result>(
    _ body: (OpaquePointer) throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    var begun: OpaquePointer?
    let code = mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &begun)
    guard code == 0, let begun else { throw failure(code, "mdb_txn_begin") }
    defer { mdb_txn_abort(begun) }
    return try body(begun)
  }

  func counts(of database: MDB_dbi, in transaction: OpaquePointer) throws(StorageError) -> MDB_stat {
    var counts = MDB_stat()
    let code = mdb_stat(transaction, database, &counts)
    guard code == 0 else { throw failure(code, "mdb_stat") }
    return counts
  }

  /// Counts the readers with an open snapshot in all processes. Idle slots are not counted.
  private func openReaders() -> Int {
    var count = 0
    // LMDB prints a heading, then a line for each slot that ends with a transaction number or with "-".
    mdb_reader_list(
      environment,
      { line, context in
        guard let line, let context else { return 0 }
        let length = strlen(line)
        if length >= 2, isdigit(Int32(line[length - 2])) != 0 {
          context.assumingMemoryBound(to: Int.self).pointee += 1
        }
        return 0
      }, &count)
    return count
  }
}

// MARK: Node counts

extension LMDBStore {
  /// Reads the counts of continuation nodes in `meta`.
  func nodeCounts(in transaction: OpaquePointer) throws(StorageError) -> LMDBTransaction.NodeCounts {
    var key = MDB_val(LongKeys.nodesKey)
    var value = MDB_val()
    let code = mdb_get(transaction, databases.meta, &key, &value)
    if code == MDB_NOTFOUND { return LMDBTransaction.NodeCounts() }
    guard code == 0 else { throw failure(code, "mdb_get") }
    guard value.mv_size == 2 * LongKeys.nodeNumberBytes, let bytes = value.mv_data else {
      throw .corruption(path: path, detail: "the node counts have \(value.mv_size) bytes, not 16")
    }
    return LMDBTransaction.NodeCounts(
      next: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
      inUse: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: LongKeys.nodeNumberBytes, as: UInt64.self)))
  }

  /// Writes the counts that ``nodeCounts(in:)`` reads. Returns LMDB's code.
  func putNodeCounts(_ counts: LMDBTransaction.NodeCounts, in transaction: OpaquePointer) -> Int32 {
    withUnsafeBytes(of: (counts.next.bigEndian, counts.inUse.bigEndian)) { bytes in
      var key = MDB_val(LongKeys.nodesKey)
      var value = MDB_val(bytes)
      return mdb_put(transaction, databases.meta, &key, &value, 0)
    }
  }
}
