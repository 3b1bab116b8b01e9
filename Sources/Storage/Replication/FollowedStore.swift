package import KeyValue
import LogEngine

/// A store of the project as another node than the owner uses it: it can only be read.
///
/// A snapshot shows what the replica has, which may be older than what the owner has acknowledged.
package final class FollowedStore: KeyValueStore, Sendable {
  private let name: StoreName
  private let store: LoggedStore

  init(name: StoreName, store: LoggedStore) {
    self.name = name
    self.store = store
  }

  /// Takes a snapshot of the newest commit that the replica has.
  /// - Throws: as ``KeyValueStore/snapshot()``.
  package func snapshot() throws(StorageError) -> any KeyValueSnapshot { try store.snapshot() }

  /// Writes nothing.
  /// - Throws: ``StorageError/notOwner(of:owner:)`` always.
  package func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    throw .notOwner(of: name.text, owner: nil)
  }

  /// As ``KeyValueStore/writeFailure``: entries of the log fail, or will soon.
  package var writeFailure: StorageError? { store.writeFailure }

  /// Writes a copy as ``KeyValueStore/copy(toFile:)``.
  /// - Throws: as ``KeyValueStore/copy(toFile:)``.
  package func copy(toFile path: String) throws(StorageError) { try store.copy(toFile: path) }

  /// Returns the sizes and counts of the data file as the last flush left it.
  /// - Throws: ``StorageError`` if the data file cannot be read.
  package func statistics() throws(StorageError) -> KeyValueStatistics { try store.fileStatistics() }
}
