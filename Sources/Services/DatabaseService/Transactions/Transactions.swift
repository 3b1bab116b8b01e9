package import DocumentModel
package import DocumentStore
import QueryEngine

extension FirestoreService {
  /// Opens a transaction (BeginTransaction, or `new_transaction` of a read).
  /// - Throws: ``CommitError`` when a read-only one names a moment that cannot be read.
  package func beginTransaction(
    _ mode: TransactionMode, in id: DatabaseID, as caller: Caller
  ) throws -> TransactionID {
    let database = try access(to: id, as: caller).database
    counters.add(to: .transactions)
    switch mode {
    case .readWrite(let retried):
      // There are no locks to inherit from a failed attempt; its id must only be one.
      if let retried { try database.transactions.rollback(retried) }
      return try database.read { reader in
        database.transactions.begin(.readWrite, readVersion: try reader.lastVersion())
      }
    case .readOnly(nil):
      return try database.read { reader in
        database.transactions.begin(.readOnly, readVersion: try reader.lastVersion())
      }
    case .readOnly(let time?):
      return try database.read(at: time) { reader, version in
        database.transactions.begin(.readOnly, readVersion: try version ?? reader.lastVersion())
      }
    }
  }

  /// Ends a transaction without writing (Rollback).
  package func rollback(_ transaction: TransactionID, in id: DatabaseID, as caller: Caller) throws {
    try access(to: id, as: caller).database.transactions.rollback(transaction)
  }
}

extension DocumentDatabase {
  /// Runs a read that opens a transaction, where one was asked for. Where the read fails nobody learns of the
  /// transaction, so that it is over.
  func opening<R>(
    _ mode: TransactionMode?, _ begin: (TransactionMode) throws -> TransactionID, _ read: (TransactionID?) throws -> R
  ) throws -> R {
    guard let mode else { return try read(nil) }
    let opened = try begin(mode)
    do {
      return try read(opened)
    } catch {
      try? transactions.rollback(opened)
      throw error
    }
  }
}

extension TransactionTable {
  /// Notes a query that a read-write transaction runs, with the fields it aggregates where it returns no documents.
  ///
  /// What comes back wants to be told the results, where their number is bounded.
  @discardableResult
  func note(_ query: ResolvedQuery, aggregated: [FieldPath]? = nil, in id: TransactionID) -> TrackedQuery? {
    guard let range = query.range(aggregated: aggregated) else { return nil }
    return note(range, limit: query.query.limit, in: id)
  }
}
