package import KeyValue
import LMDBEngine

/// A store whose commits go to a ``CommitLog``, then to a table in memory, and in large sorted batches to a data file.
///
/// A write costs one append and one sync of the log. Readers see the memtables over the data file. When the active table
/// is full, or no commit has come for some seconds, it becomes the flushing one, which the store's queue writes to the
/// data file while a new table fills. After that the log may forget its commits. `docs/internals/commit-log.md` states
/// the invariants between the three.
///
/// The log begins with the first write. If the store is released, it moves everything to the data file and removes the
/// log before the release returns, so a store that was closed is an ordinary data file.
package final class LoggedStore: KeyValueStore, Sendable {
  let tables: LoggedTables

  /// Takes over tables that nothing else uses; see ``open(_:folder:settings:newSecret:)``.
  init(_ tables: LoggedTables) { self.tables = tables }

  deinit {
    // If it fails, the log stays, and the next opening reads it.
    try? tables.close()
  }

  /// Takes a snapshot of the newest commit. If the memtables are empty, it is a snapshot of the data file.
  /// - Throws: ``StorageError/tooManyReaders(limit:)`` if all reader slots of the data file are in use.
  package func snapshot() throws(StorageError) -> any KeyValueSnapshot { try tables.snapshot() }

  /// Runs a write transaction as ``KeyValueStore/write(_:)``. When it returns, the commit is in the log, on the disk.
  ///
  /// Waits a little if a flush is slower than the writers, and for the flush if the memtables are full.
  /// - Throws: the error of `body`. The error of the log or of the last flush: nothing was written, except with
  ///   ``StorageError/outcomeUnknown(path:detail:)``. Then the commit may be found when the store is opened again, and
  ///   until then no other commit is accepted.
  package func write(
    _ body: (any KeyValueTransaction) throws(StorageError) -> Void
  ) throws(StorageError) {
    try tables.write(body)
  }

  /// The error of the log or of the last flush, as ``KeyValueStore/writeFailure``. After an error of the log, no commit is accepted
  /// until the store is opened again. A flush is tried again after some seconds, and by writes that need its room.
  package var writeFailure: StorageError? { tables.writeFailure }

  /// Moves everything to the data file. Writers wait meanwhile.
  /// - Throws: ``StorageError`` if the data file cannot be written. Everything is still readable.
  package func flush() throws(StorageError) { try tables.flush() }

  /// Flushes the memtables on the calling thread and frees their memory if no commit has come since the last call. The
  /// store's timer calls it too.
  package func flushIfIdle() { tables.flushIfIdle() }

  /// Writes a copy as ``KeyValueStore/copy(toFile:)``. No table is flushed meanwhile, so writers slow down as the active
  /// one fills, and wait if both are full.
  /// - Throws: ``StorageError`` if the file exists already, or reading or writing fails.
  package func copy(toFile path: String) throws(StorageError) { try tables.copy(toFile: path) }

  /// Returns the sizes and counts of the data file, after it has everything.
  /// - Throws: ``StorageError`` if the data file cannot be written or read.
  package func statistics() throws(StorageError) -> KeyValueStatistics { try tables.statistics() }

  /// Returns the sizes and counts of the data file as the last flush left it.
  /// - Throws: ``StorageError`` if the data file cannot be read.
  package func fileStatistics() throws(StorageError) -> KeyValueStatistics { try tables.base.statistics() }
}
