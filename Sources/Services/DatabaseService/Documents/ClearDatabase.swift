package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Removes everything in a database: the emulator's reset between tests.
  ///
  /// `completion` is called once, on any thread.
  package func clear(
    _ id: DatabaseID, as caller: Caller, completion: @escaping @Sendable (Result<Void, Status>) -> Void
  ) throws {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    access.database.clear { result in completion(result.mapError { Status($0, database: id) }) }
  }
}
