package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Creates a document (CreateDocument). If no ID is given, the server generates one.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: ``ModelError`` if the ID is invalid; the errors of ``commit(_:transaction:in:as:completion:)``.
  package func createDocument(
    in collection: ResourcePath, id documentID: String?, fields: EncodedFields, database id: DatabaseID,
    as caller: Caller,
    completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    var key: DocumentKey?
    if let documentID, !documentID.isEmpty {
      guard !documentID.utf8.contains(UInt8(ascii: "/")) else { throw ModelError.slashInResourceID(documentID) }
      key = DocumentKey(try ResourcePath(checking: collection.appending(documentID).bytes))
    } else {
      key = DocumentKey(collection.appending(DocumentIDs.next()))
    }
    guard let key else { throw ModelError.emptyResourceID(path: collection.text, index: 0) }
    try write(
      Write(.update(fields, mask: nil), key: key, precondition: .exists(false)), in: id, as: caller,
      completion: completion)
  }

  /// Commits one write and passes the resulting document to `completion`.
  func write(
    _ write: Write, in id: DatabaseID, as caller: Caller,
    completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    let database = try access(to: id, as: caller).database
    try commit([write], in: id, as: caller) { result in
      completion(
        result.flatMap { outcome in
          do {
            return .success(try database.written(write.key, at: outcome.version))
          } catch {
            return .failure(Status(error, database: id))
          }
        })
    }
  }
}

extension DocumentDatabase {
  /// Returns the document as a commit left it, regardless of later changes.
  fileprivate func written(_ key: DocumentKey, at version: Timestamp) throws -> Document {
    try read { reader in
      guard let row = try reader.collection(key.collection),
        let stored = try reader.document(key.id, in: row.number, at: version.microseconds)
      else {
        throw Status(.notFound, "Document \"\(ResourceName(database: id, path: key.path).text)\" not found.")
      }
      return Document(
        key: key, fields: EncodedFields(canonical: Array(stored.fields)),
        createTime: Timestamp(uncheckedMicroseconds: stored.createVersion),
        updateTime: Timestamp(uncheckedMicroseconds: stored.updateVersion))
    }
  }
}
