package import DocumentModel

extension FirestoreService {
  /// Replaces a document, or the fields of a mask (UpdateDocument); creates it where it is missing and may.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: what is wrong before anything is tried.
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
