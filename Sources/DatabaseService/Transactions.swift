package import DocumentModel
package import DocumentStore

extension Service {
  /// Opens a transaction (BeginTransaction, or `new_transaction` of a read).
  /// - Throws: ``CommitError`` when a read-only one names a moment that cannot be read.
  package func beginTransaction(_ mode: TransactionMode, in id: DatabaseID) throws -> TransactionID {
    let database = try database(id)
    return try database.read { reader in
      let last = try reader.lastVersion()
      switch mode {
      case .readWrite(let retried):
        // There are no locks to inherit from a failed attempt; its id must only be one.
        if let retried { try database.transactions.rollback(retried) }
        return database.transactions.begin(.readWrite, readVersion: last)
      case .readOnly(nil): return database.transactions.begin(.readOnly, readVersion: last)
      case .readOnly(let time?):
        let version = try database.version(readTime: time, &reader)
        return database.transactions.begin(.readOnly, readVersion: version ?? last)
      }
    }
  }

  /// Ends a transaction without writing (Rollback).
  package func rollback(_ transaction: TransactionID, in id: DatabaseID) throws {
    try database(id).transactions.rollback(transaction)
  }
}
