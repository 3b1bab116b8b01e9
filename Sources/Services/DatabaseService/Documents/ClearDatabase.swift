package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Deletes all data of a database, as emulator clients do between tests. For administrators.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: `PERMISSION_DENIED` if the caller is not an administrator and rules apply; the errors of
  ///   ``access(to:as:)``.
  package func clear(
    _ id: DatabaseID, as caller: Caller, completion: @escaping @Sendable (Result<Void, Status>) -> Void
  ) throws {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    access.database.clear { result in completion(result.mapError { Status($0, database: id) }) }
  }
}
