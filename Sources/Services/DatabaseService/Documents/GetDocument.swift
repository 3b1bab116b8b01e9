package import DocumentModel
package import DocumentStore

extension FirestoreService {
  /// Reads one document and passes it to `body`.
  ///
  /// Cost: two lookups in the store and the evaluation of rules; no copy.
  /// - Throws: `PERMISSION_DENIED` if the rules deny the read, whether or not the document exists; `NOT_FOUND` if it
  ///   does not exist; ``CommitError`` if the state cannot be read; and any error of `body`.
  package func getDocument<R>(
    _ key: DocumentKey, in id: DatabaseID, as caller: Caller, consistency: ConsistencySelector = .latest,
    _ body: (StoredDocument) throws -> R
  ) throws -> R {
    try getDocument(key, in: try access(to: id, as: caller), consistency: consistency, body)
  }

  /// Reads one document with an access that the caller already has; see ``getDocument(_:in:as:consistency:_:)``.
  /// - Throws: As that function does.
  package func getDocument<R>(
    _ key: DocumentKey, in access: DatabaseAccess, consistency: ConsistencySelector = .latest,
    _ body: (StoredDocument) throws -> R
  ) throws -> R {
    let database = access.database
    return try database.read(consistency) { reader, readTime in
      let document = try database.document(key, at: readTime, &reader)
      try access.authorizer?.requireGet(key, document, in: database, at: readTime, reader.snapshot)
      if let transaction = readTime.transaction {
        database.transactions.noteReads([(key, document?.updateVersion ?? 0)], in: transaction)
      }
      counters.add(to: .documentsRead)
      guard let document else {
        throw Status(.notFound, "Document \"\(ResourceName(database: database.id, path: key.path).text)\" not found.")
      }
      return try body(document)
    }
  }
}
