package import DocumentModel

extension FirestoreService {
  /// Deletes a document (DeleteDocument). Succeeds if the document does not exist, unless the precondition requires
  /// it. Does it once if the request has an ID.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: The errors of ``commit(_:transaction:in:as:requestID:completion:)``.
  package func deleteDocument(
    _ key: DocumentKey, precondition: Precondition, in id: DatabaseID, as caller: Caller,
    requestID: RequestID? = nil, completion: @escaping @Sendable (Result<Void, Status>) -> Void
  ) throws {
    try commit([Write(.delete, key: key, precondition: precondition)], in: id, as: caller, requestID: requestID) {
      completion($0.map { _ in () })
    }
  }
}
