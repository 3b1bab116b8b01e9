package import DocumentModel
package import DocumentStore

/// What a BatchGetDocuments call asks for.
package struct BatchGetDocumentsRequest: Sendable {
  /// The documents; each is answered once, however often it is named.
  package var keys: [DocumentKey]
  /// The moment to show.
  package var consistency = ConsistencySelector.latest
  /// The transaction to open and read in, in place of ``consistency``.
  package var newTransaction: TransactionMode?

  /// Asks for documents as they are now.
  package init(_ keys: [DocumentKey]) { self.keys = keys }
}

/// The answer to a BatchGetDocuments call, pulled slice by slice: the documents that exist in name order, then the
/// missing ones (firestore-api.md, section 1.3).
///
/// Every slice takes a snapshot of its own, at one version, so that a slow client holds no snapshot.
package final class BatchGetDocumentsCursor {
  /// The transaction that was opened, where one was asked for.
  package let transaction: TransactionID?
  /// The moment shown.
  package let readTime: Timestamp

  private let database: DocumentDatabase
  private let keys: [DocumentKey]
  private let moment: ReadTime
  private var next = 0
  private var missing: [DocumentKey] = []
  private var nextMissing = 0
  private let counters: ServiceCounters

  fileprivate init(
    _ counters: ServiceCounters, _ database: DocumentDatabase, keys: [DocumentKey], transaction: TransactionID?, moment: ReadTime
  ) {
    self.counters = counters
    self.database = database
    self.keys = keys
    self.transaction = transaction
    self.moment = moment
    readTime = moment.readTime
  }

  /// Whether there is more.
  package var isAtEnd: Bool { next == keys.count && nextMissing == missing.count }

  /// Calls `found` per document (without one for a missing document) until it returns `false` or there are no more.
  /// - Throws: what `found` throws, and ``CommitError/readTimeTooOld`` when the client took so long that the state it
  ///   began to read is gone.
  package func slice(_ found: (DocumentKey, StoredDocument?) throws -> Bool) throws {
    let before = next
    defer { counters.add(next - before, to: .documentsRead) }
    let wantsMore = try database.read { reader in
      try database.checkReadable(moment.readTime.microseconds, &reader)
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
  /// Reads several documents of one moment.
  ///
  /// Cost here: the moment; each slice of the cursor costs two lookups a document. Where rules judge, each document is
  /// looked up and judged here too, so that nothing is answered before all is allowed.
  /// - Throws: `PERMISSION_DENIED` where rules do not grant one of the documents.
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
        try access.authorizer?.allowGets(keys, in: database, at: moment, &reader)
        var moment = moment
        // Later slices must show the same state.
        moment.version = moment.readTime.microseconds
        return moment
      }
      return BatchGetDocumentsCursor(counters, database, keys: keys, transaction: opened, moment: moment)
    }
  }
}
