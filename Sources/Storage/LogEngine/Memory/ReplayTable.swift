import KeyValue

/// A memtable of commits that were read from a log, for code that does not append to it.
struct ReplayTable: Sendable {
  private(set) var layer = MemtableLayer(table: Memtable())
  /// The number of the last operation.
  private(set) var ordinal: UInt64 = 0

  /// The number of removed ranges at which a table is full; see ``LoggedStoreSettings/removedRangesMax``.
  private static let removedRangesMax = 256

  /// The size of the table that moves commits to a data file, in bytes.
  static let bytesMax = 16 << 20

  var isEmpty: Bool { layer.table.first == nil && layer.ranges.isEmpty }

  /// Whether the commits should be moved to a data file now.
  var isFull: Bool {
    layer.table.allocatedBytes >= Self.bytesMax || layer.ranges.count >= Self.removedRangesMax
  }

  /// Adds the operations of a commit in the log at `path`.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the commit is malformed.
  mutating func add(
    _ batch: UnsafeRawBufferPointer, _ position: LogPosition, from path: String
  ) throws(StorageError) {
    do throws(CommitBatchError) {
      try layer.add(batch, ordinal: &ordinal)
    } catch {
      throw .corruption(
        path: path, detail: "commit \(position.sequence) is wrong at byte \(error.offset): \(error.problem)")
    }
  }

  /// Writes everything in transactions of bounded size, and empties the table. `write` runs one transaction; its argument
  /// returns whether it is the last.
  mutating func move(
    _ write: ((any KeyValueTransaction) throws(StorageError) -> Bool) throws(StorageError) -> Void
  ) throws(StorageError) {
    var flush = MemtableFlush(layer)
    var isDone = false
    let operationsMax = LoggedStoreSettings().flushOperationsMax
    while !isDone {
      try write { (transaction) throws(StorageError) in
        isDone = try flush.writeSome(to: transaction, operationsMax: operationsMax)
        return isDone
      }
    }
    layer = MemtableLayer(table: Memtable())
  }
}
