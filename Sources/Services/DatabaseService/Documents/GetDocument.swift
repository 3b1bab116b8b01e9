package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Reads one document and passes it to `body`, with the incarnation of its database, which entity tags contain.
  ///
  /// Cost: two lookups in the store and the evaluation of rules; no copy.
  /// - Throws: `PERMISSION_DENIED` if the rules deny the read, whether or not the document exists; `NOT_FOUND` if it
  ///   does not exist; ``CommitError`` if the state cannot be read; and any error of `body`.
  package func getDocument<R>(
    _ key: DocumentKey, in id: DatabaseID, as caller: Caller, consistency: ConsistencySelector = .latest,
    _ body: (StoredDocument, _ incarnation: UInt64) throws -> R
  ) throws -> R {
    let access = try access(to: id, as: caller, creates: false)
    try access.requireReads()
    return try access.read(consistency, isTimed: false) { snapshot in
      let grant = try access.grantGet(key, &snapshot)
      let document = snapshot.document(grant)
      if let transaction = snapshot.readTime.transaction {
        access.transactions.noteReads([(key, document?.updateVersion ?? 0)], in: transaction)
      }
      access.countReads(1, in: counters)
      guard let document else {
        throw Status(.notFound, "Document \"\(ResourceName(database: id, path: key.path).text)\" not found.")
      }
      return try body(document, access.incarnation)
    }
  }
}
