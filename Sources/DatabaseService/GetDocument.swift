package import DocumentModel
package import DocumentStore

extension Service {
  /// Reads one document and lends it to `body`.
  ///
  /// Cost: two lookups in the store; no copy.
  /// - Throws: `NOT_FOUND` where it is missing, and what `body` throws.
  package func getDocument<R>(
    _ key: DocumentKey, in id: DatabaseID, consistency: Consistency = .latest, _ body: (StoredDocument) throws -> R
  ) throws -> R {
    try getDocument(key, in: try database(id), consistency: consistency, body)
  }

  /// Reads one document of a database that was looked up already; see ``getDocument(_:in:consistency:_:)``.
  package func getDocument<R>(
    _ key: DocumentKey, in database: DocumentDatabase, consistency: Consistency = .latest,
    _ body: (StoredDocument) throws -> R
  ) throws -> R {
    try database.read(consistency) { reader, moment in
      let document = try database.document(key, at: moment, &reader)
      if let transaction = moment.transaction {
        database.transactions.noteReads([(key, document?.updateVersion ?? 0)], in: transaction)
      }
      guard let document else {
        throw Status(.notFound, "Document \"\(ResourceName(database: database.id, path: key.path).text)\" not found.")
      }
      return try body(document)
    }
  }
}
