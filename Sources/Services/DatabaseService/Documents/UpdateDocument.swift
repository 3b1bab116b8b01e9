package import DocumentModel

extension FirestoreService {
  /// Replaces a document, or only the fields in a mask (UpdateDocument). Creates the document if it does not exist
  /// and the precondition allows that.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: The errors of ``commit(_:transaction:in:as:completion:)``.
  package func updateDocument(
    _ key: DocumentKey, fields: EncodedFields, mask: FieldMask?, precondition: Precondition, in id: DatabaseID,
    as caller: Caller,
    completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    try write(
      Write(.update(fields, mask: mask), key: key, precondition: precondition), in: id, as: caller,
      completion: completion)
  }
}
