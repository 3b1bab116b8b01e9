package import DocumentModel

extension FirestoreService {
  /// Replaces a document, or only the fields in a mask (UpdateDocument). Creates the document if it does not exist
  /// and the precondition allows that. Does it once if the request has an ID.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: The errors of ``commit(_:transaction:in:as:requestID:completion:)``.
  package func updateDocument(
    _ key: DocumentKey, fields: EncodedFields, mask: FieldMask?, precondition: Precondition, in id: DatabaseID,
    as caller: Caller, requestID: RequestID? = nil,
    completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    try write(
      Write(.update(fields, mask: mask), key: key, precondition: precondition), in: id, as: caller,
      requestID: requestID, completion: completion)
  }
}
