package import DocumentModel

extension FirestoreService {
  /// Creates a document (CreateDocument), once if the request has an ID. If no document ID is given, the server generates
  /// one, from the ID of the request if it has one.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: ``ModelError`` if the ID is invalid; the errors of ``commit(_:transaction:in:as:requestID:completion:)``.
  package func createDocument(
    in collection: ResourcePath, id documentID: String?, fields: EncodedFields, database id: DatabaseID,
    as caller: Caller, requestID: RequestID? = nil,
    completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    var key: DocumentKey?
    if let documentID, !documentID.isEmpty {
      guard !documentID.utf8.contains(UInt8(ascii: "/")) else { throw ModelError.slashInResourceID(documentID) }
      key = DocumentKey(try ResourcePath(checking: collection.appending(documentID).bytes))
    } else {
      key = DocumentKey(collection.appending(requestID.map { DocumentIDs.id(of: $0) } ?? DocumentIDs.next()))
    }
    guard let key else { throw ModelError.emptyResourceID(path: collection.text, index: 0) }
    try write(
      Write(.update(fields, mask: nil), key: key, precondition: .exists(false)), in: id, as: caller,
      requestID: requestID, completion: completion)
  }
}
