package import DocumentModel
package import DocumentStore
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

  private let database: DocumentDatabase
  private let keys: [DocumentKey]
  private let moment: ReadTime
  private var next = 0
  private var missing: [DocumentKey] = []
  private var nextMissing = 0
  private let counters: ServiceCounters

  fileprivate init(
    _ counters: ServiceCounters, _ database: DocumentDatabase, keys: [DocumentKey], transaction: TransactionID?,
    moment: ReadTime
  ) {
    self.counters = counters
    self.database = database
    self.keys = keys
    self.transaction = transaction
    self.moment = moment
    readTime = moment.timestamp
  }

  /// Whether all documents have been returned.
  package var isAtEnd: Bool { next == keys.count && nextMissing == missing.count }

  /// Calls `found` for each document (with `nil` for a missing one) until it returns `false` or no documents are
  /// left.
  /// - Throws: ``CommitError/readTimeTooOld`` if the client took so long that the state can no longer be read,
  ///   ``StorageError`` if a read fails, and any error of `found`.
  package func slice(_ found: (DocumentKey, StoredDocument?) throws -> Bool) throws {
    let before = next
    defer { counters.add(next - before, to: .documentsRead) }
    let wantsMore = try database.read { reader in
      try database.checkReadable(moment.timestamp.microseconds, &reader)
      while next < keys.count {
        let key = keys[next]
        let document = try database.document(key, at: moment, &reader)
        if let transaction = moment.transaction {
          database.transactions.noteReads([(key, document?.updateVersion ?? 0)], in: transaction)
        }
        next += 1
        guard let document else {
          missing.append(key)
          continue
        }
        guard try found(key, document) else { return false }
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

extension FirestoreService {
  /// Reads several documents of one state.
  ///
  /// Cost of this call: one snapshot. Each slice of the cursor costs two lookups for each document. If rules apply,
  /// this call also reads and authorizes every document, so that the response starts only when all are allowed.
  /// - Throws: `PERMISSION_DENIED` if the rules deny one of the documents; the errors of ``access(to:as:)``;
  ///   ``CommitError`` if the state cannot be read.
  package func batchGetDocuments(
    _ request: BatchGetDocumentsRequest, in id: DatabaseID, as caller: Caller
  ) throws -> BatchGetDocumentsCursor {
    let access = try access(to: id, as: caller)
    let database = access.database
    var keys = request.keys.sorted()
    var last: DocumentKey?
    keys.removeAll { key in
      defer { last = key }
      return key == last
    }
    return try database.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      let consistency = opened.map(ConsistencySelector.transaction) ?? request.consistency
      let moment = try database.read(consistency) { reader, moment in
        try access.authorizer?.requireGets(keys, in: database, at: moment, &reader)
        var moment = moment
        // Later slices must show the same state.
        moment.version = moment.timestamp.microseconds
        return moment
      }
      return BatchGetDocumentsCursor(counters, database, keys: keys, transaction: opened, moment: moment)
    }
  }
}
