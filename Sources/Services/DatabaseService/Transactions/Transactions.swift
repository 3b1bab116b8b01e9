package import DocumentModel
import DocumentStore
import QueryEngine

extension FirestoreService {
  /// Begins a transaction (BeginTransaction, or `new_transaction` of a read).
  /// The transaction belongs to the caller: to any other caller, its ID is unknown.
  /// - Throws: ``CommitError`` if the read time of a read-only transaction cannot be read; the errors of
  ///   ``access(to:as:)``.
  package func beginTransaction(
    _ mode: TransactionMode, in id: DatabaseID, as caller: Caller
  ) throws -> TransactionID {
    let access = try access(to: id, as: caller)
    let (transactions, owner) = (access.transactions, access.owner)
    counters.add(to: .transactions)
    switch mode {
    case .readWrite(let retried):
      // A failed attempt holds no locks to inherit. Its ID only has to be valid.
      if let retried { try transactions.rollback(retried, by: owner) }
      return try access.read { snapshot in
        transactions.begin(.readWrite, readVersion: try snapshot.lastVersion(), by: owner)
      }
    case .readOnly(nil):
      return try access.read { snapshot in
        transactions.begin(.readOnly, readVersion: try snapshot.lastVersion(), by: owner)
      }
    case .readOnly(let time?):
      return try access.read(.readTime(time)) { snapshot in
        transactions.begin(.readOnly, readVersion: try snapshot.readTime.version ?? snapshot.lastVersion(), by: owner)
      }
    }
  }

  /// Ends a transaction without writing (Rollback).
  /// - Throws: ``CommitError`` if the transaction is unknown; the errors of ``access(to:as:)``.
  package func rollback(_ transaction: TransactionID, in id: DatabaseID, as caller: Caller) throws {
    let access = try access(to: id, as: caller, creates: false)
    try access.transactions.rollback(transaction, by: access.owner)
  }
}

extension DatabaseAccess {
  /// Runs a read that begins a transaction, if requested. If the read fails, the transaction is rolled back, because
  /// the client does not learn its ID.
  func opening<R>(
    _ mode: TransactionMode?, _ begin: (TransactionMode) throws -> TransactionID, _ read: (TransactionID?) throws -> R
  ) throws -> R {
    guard let mode else { return try read(nil) }
    let opened = try begin(mode)
    do {
      return try read(opened)
    } catch {
      try? transactions.rollback(opened, by: owner)
      throw error
    }
  }
}

extension TransactionTable {
  /// Records a query of a read-write transaction, with the aggregated fields if it returns no documents.
  ///
  /// Returns an object that must receive the results, or `nil` if the transaction does not need them.
  @discardableResult
  func note(_ query: ResolvedQuery, aggregated: [FieldPath]? = nil, in id: TransactionID) -> TrackedQuery? {
    guard let range = query.range(aggregated: aggregated) else { return nil }
    return note(range, limit: query.query.limit, in: id)
  }
}
