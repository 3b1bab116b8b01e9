package import KeyValue
package import LMDBEngine
package import LogEngine

/// Opens the file of a database in a data directory. Other code does not, because it would not see the commits of a log.
package enum StoredDatabase {
  /// Opens a file, with a commit log in front of it or alone.
  ///
  /// If a server with a log was killed, its log has commits that are not in the file. They are moved to the file before
  /// it is opened alone.
  /// - Throws: ``StorageError`` if the file or its log cannot be opened.
  package static func open(_ options: LMDBOptions, withLog: Bool) throws(StorageError) -> any KeyValueStore {
    if withLog { return try LoggedStore.open(options) }
    do throws(StorageError) {
      return try LMDBStore.open(options)
    } catch {
      guard case .openLog = error else { throw error }
      try LoggedStore.settle(options)
      return try LMDBStore.open(options)
    }
  }

  /// Opens a file for reading, with the commits of its log. A server may use both, or may have been killed.
  /// - Throws: ``StorageError`` if the file cannot be opened.
  package static func openReadOnly(_ options: LMDBOptions) throws(StorageError) -> ReadOnlyStore {
    try ReadOnlyStore.open(options)
  }

  /// Moves the commits of a log that a crash left to the file, so that it can be replaced. No server may use it.
  /// - Throws: ``StorageError`` if the file or its log cannot be opened, or the file cannot be written.
  package static func settle(_ options: LMDBOptions) throws(StorageError) { try LoggedStore.settle(options) }

  /// Gives up the commits of a damaged log that cannot be read. Returns the new path of the log, or `nil` if it is intact.
  /// No server may use the file.
  /// - Throws: ``StorageError`` if the file cannot be opened or written.
  package static func giveUpDamagedLog(_ options: LMDBOptions) throws(StorageError) -> String? {
    try LoggedStore.giveUpDamaged(options)
  }

  /// Removes the log of a file that was replaced by one without a log.
  /// - Throws: ``StorageError`` if a file of the log cannot be removed.
  package static func removeLog(of path: String) throws(StorageError) { try LoggedStore.removeLog(of: path) }
}
