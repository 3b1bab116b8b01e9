package import DocumentModel
import DocumentStore
package import WireFormat

/// The response to a BatchGetDocuments request, in slices: the existing documents in name order, then the missing
/// ones (firestore-api.md, section 1.3).
///
/// Each slice reads the same version on its own snapshot, so that a slow client does not hold a snapshot.
package final class BatchGetDocumentsCursor {
  /// The transaction that the request began, if any.
  package let transaction: TransactionID?
  /// The time of the state that was read.
  package let readTime: Timestamp

  private let access: DatabaseAccess
  private let grant: GetsGrant
  private var next = 0
  private var missing: [DocumentKey] = []
  private var nextMissing = 0
  private let counters: ServiceCounters

  fileprivate init(
    _ counters: ServiceCounters, _ access: DatabaseAccess, _ grant: consuming GetsGrant, transaction: TransactionID?
  ) {
    self.counters = counters
    self.access = access
    self.transaction = transaction
    readTime = grant.readTime.timestamp
    self.grant = grant
  }

  /// Whether all documents have been returned.
  package var isAtEnd: Bool { next == grant.keys.count && nextMissing == missing.count }

  /// Calls `found` for each document (with `nil` for a missing one) until it returns `false` or no documents are
  /// left.
  /// - Throws: ``CommitError/readTimeTooOld`` if the client took so long that the state can no longer be read,
  ///   `PERMISSION_DENIED` if the newest state no longer allows the response, ``StorageError`` if a read fails, and any
  ///   error of `found`.
  package func slice(_ found: (DocumentKey, StoredDocument?) throws -> Bool) throws {
    let before = next
    defer { access.countReads(next - before, in: counters) }
    let wantsMore = try access.read(again: grant.readTime) { snapshot in
      while next < grant.keys.count {
        let key = grant.keys[next]
        let document = try access.document(at: next, of: grant, &snapshot)
        if let transaction = grant.readTime.transaction {
          access.transactions.noteReads([(key, document?.updateVersion ?? 0)], in: transaction)
        }
        next += 1
        if let document {
          guard try found(key, document) else { return false }
        } else {
          missing.append(key)
        }
        if snapshot.isSpent(after: next - before), next < grant.keys.count { return false }
      }
      return true
    }
    guard wantsMore else { return }
    while nextMissing < missing.count {
      nextMissing += 1
      guard try found(missing[nextMissing - 1], nil) else { return }
    }
  }
}

/// The authorization of a BatchGetDocuments request, in slices. The response starts only when the rules allow all
/// documents, and an event loop serves other requests between the slices.
package final class BatchGetAuthorization {
  private let access: DatabaseAccess
  private let counters: ServiceCounters
  private let transaction: TransactionID?
  private var gets: GetsAuthorization
  private var cursor: BatchGetDocumentsCursor?

  fileprivate init(
    _ counters: ServiceCounters, _ access: DatabaseAccess, _ gets: GetsAuthorization, transaction: TransactionID?
  ) {
    self.counters = counters
    self.access = access
    self.gets = gets
    self.transaction = transaction
  }

  /// Authorizes the next documents. Returns the response when the rules allow all documents, otherwise `nil`. Cost: two
  /// lookups and an evaluation of the rules for each document, about 4 milliseconds in total, and at most 8 more if the
  /// last document is expensive.
  /// - Throws: `PERMISSION_DENIED` if the rules deny one of the documents; ``CommitError/readTimeTooOld`` if the state
  ///   can no longer be read; ``StorageError`` if a read fails.
  package func slice() throws -> BatchGetDocumentsCursor? {
    if let cursor { return cursor }
    do {
      return try access.read(again: gets.readTime) { try slice(&$0) }
    } catch {
      // The client does not learn the ID of its transaction.
      if let transaction { try? access.transactions.rollback(transaction, by: access.owner) }
      throw error
    }
  }

  @discardableResult
  fileprivate func slice(_ snapshot: inout GuardedSnapshot) throws -> BatchGetDocumentsCursor? {
    if let grant = try access.grantGets(&gets, &snapshot) {
      cursor = BatchGetDocumentsCursor(counters, access, grant, transaction: transaction)
    }
    return cursor
  }
}

extension FirestoreService {
  /// Reads several documents of one state.
  ///
  /// Cost of this call: one snapshot, and the first slice of the authorization. Each slice of the response costs two
  /// lookups for each document.
  /// - Throws: `PERMISSION_DENIED` if the rules deny one of the first documents; the errors of ``access(to:as:)``;
  ///   ``CommitError`` if the state cannot be read.
  package func batchGetDocuments(
    _ request: BatchGetDocumentsRequest, in id: DatabaseID, as caller: Caller
  ) throws -> BatchGetAuthorization {
    let access = try access(to: id, as: caller, creates: request.newTransaction != nil)
    try access.requireReads()
    return try access.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      try access.read(opened.map(ConsistencySelector.transaction) ?? request.consistency) { snapshot in
        let authorization = BatchGetAuthorization(
          counters, access, try access.beginGets(request.keys, &snapshot), transaction: opened)
        try authorization.slice(&snapshot)
        return authorization
      }
    }
  }
}
