package import DocumentModel
package import DocumentStore

extension Service {
  /// Reads several documents of one moment, each once however often it is named.
  ///
  /// `begin` is called first, with the transaction that was opened if one was asked for, and the moment shown; then
  /// `found` once per document: those that exist in name order, then the missing ones (firestore-api.md, section 1.3).
  package func batchGetDocuments(
    _ keys: [DocumentKey], in id: DatabaseID, consistency: Consistency = .latest,
    newTransaction: TransactionMode? = nil, begin: (TransactionID?, ReadMoment) throws -> Void,
    found: (FoundDocument) throws -> Void
  ) throws {
    let database = try database(id)
    var opened: TransactionID?
    var consistency = consistency
    if let newTransaction {
      let transaction = try beginTransaction(newTransaction, in: id)
      opened = transaction
      consistency = .transaction(transaction)
    }
    try database.read { reader in
      let moment = try database.moment(consistency, &reader)
      try begin(opened, moment)
      var missing: [DocumentKey] = []
      var reads: [(key: DocumentKey, version: Int64)] = []
      var previous: DocumentKey?
      for key in keys.sorted() where key != previous {
        previous = key
        let document = try database.document(key, at: moment, &reader)
        if moment.transaction != nil { reads.append((key, document?.updateVersion ?? 0)) }
        if let document {
          try found(FoundDocument(key: key, stored: document))
        } else {
          missing.append(key)
        }
      }
      if let transaction = moment.transaction { try database.transactions.noteReads(reads, in: transaction) }
      for key in missing { try found(FoundDocument(key: key, stored: nil)) }
    }
  }
}
