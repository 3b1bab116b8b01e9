package import KeyValue
import LogEngine

/// A store of the project as its owner uses it, in one epoch.
///
/// In another epoch it writes nothing and answers no read. Releasing it does not close the replica.
package final class ReplicatedStore: KeyValueStore, Sendable {
  /// The name of the store.
  package let name: StoreName
  /// The lease of the epoch.
  package let lease: EpochLease
  private let store: LoggedStore
  private let log: StoreLog

  init(name: StoreName, lease: EpochLease, store: LoggedStore, log: StoreLog) {
    self.name = name
    self.lease = lease
    self.store = store
    self.log = log
  }

  /// Takes a snapshot of the newest commit, then checks that the lease holds. So the snapshot shows every commit that
  /// any node had acknowledged when this was called.
  /// - Throws: ``StorageError/notOwner(of:owner:)`` if the lease does not hold; else as
  ///   ``KeyValueStore/snapshot()``.
  package func snapshot() throws(StorageError) -> any KeyValueSnapshot {
    let snapshot = try store.snapshot()
    guard lease.holds else {
      snapshot.end()
      throw notOwner
    }
    return snapshot
  }

  /// Runs a write transaction as ``KeyValueStore/write(_:)``. When it returns, the commit is in the log of the cluster.
  /// - Throws: ``StorageError/notOwner(of:owner:)`` if the lease does not hold or another node appended: nothing was written;
  ///   ``StorageError/outcomeUnknown(path:detail:)``; else as ``KeyValueStore/write(_:)``.
  package func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    guard lease.holds else { throw notOwner }
    try store.write { (transaction) throws(StorageError) in
      // It may have waited for the writer.
      guard lease.holds else { throw notOwner }
      log.use(lease)
      try body(transaction)
    }
  }

  /// As ``KeyValueStore/writeFailure``.
  package var writeFailure: StorageError? { store.writeFailure }

  /// Writes a copy as ``KeyValueStore/copy(toFile:)``.
  /// - Throws: as ``KeyValueStore/copy(toFile:)``.
  package func copy(toFile path: String) throws(StorageError) { try store.copy(toFile: path) }

  /// Returns the sizes and counts as ``KeyValueStore/statistics()``.
  /// - Throws: as ``KeyValueStore/statistics()``.
  package func statistics() throws(StorageError) -> KeyValueStatistics { try store.statistics() }

  /// Returns the sizes and counts of the data file as the last flush left it.
  /// - Throws: ``StorageError`` if the data file cannot be read.
  package func fileStatistics() throws(StorageError) -> KeyValueStatistics { try store.fileStatistics() }

  private var notOwner: StorageError { .notOwner(of: name.text, owner: nil) }
}
