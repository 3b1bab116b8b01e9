package import DocumentModel
package import DocumentStore

extension FirestoreService {
  /// Reads one document and lends it to `body`.
  ///
  /// Cost: two lookups in the store, and the judgement; no copy.
  /// - Throws: `PERMISSION_DENIED` where rules do not grant it, be it there or not; `NOT_FOUND` where it is missing;
  ///   and what `body` throws.
  package func getDocument<R>(
    _ key: DocumentKey, in id: DatabaseID, as caller: Caller, consistency: ConsistencySelector = .latest,
    _ body: (StoredDocument) throws -> R
  ) throws -> R {
    try getDocument(key, in: try access(to: id, as: caller), consistency: consistency, body)
  }

  /// Reads one document of a database that was looked up already; see ``getDocument(_:in:as:consistency:_:)``.
  package func getDocument<R>(
    _ key: DocumentKey, in access: DatabaseAccess, consistency: ConsistencySelector = .latest,
    _ body: (StoredDocument) throws -> R
  ) throws -> R {
    let database = access.database
    return try database.read(consistency) { reader, moment in
      let document = try database.document(key, at: moment, &reader)
      try access.authorizer?.allowGet(key, document, in: database, at: moment, reader.snapshot)
      if let transaction = moment.transaction {
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
