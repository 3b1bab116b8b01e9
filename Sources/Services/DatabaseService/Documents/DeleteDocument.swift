package import DocumentModel

extension FirestoreService {
  /// Removes a document (DeleteDocument); a missing one is success unless the precondition says otherwise.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: what is wrong before anything is tried.
  package func deleteDocument(
    _ key: DocumentKey, precondition: Precondition, in id: DatabaseID, as caller: Caller,
    completion: @escaping @Sendable (Result<Void, Status>) -> Void
  ) throws {
    try commit([Write(.delete, key: key, precondition: precondition)], in: id, as: caller) {
      completion($0.map { _ in () })
    }
  }
}
