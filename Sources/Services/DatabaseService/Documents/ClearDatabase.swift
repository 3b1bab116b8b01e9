package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Deletes all data of a database, as emulator clients do between tests.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: `NOT_FOUND` if the database is not served, ``StorageError`` if it cannot be opened.
  package func clear(
    _ id: DatabaseID, as administrator: Administrator, completion: @escaping @Sendable (Result<Void, Status>) -> Void
  ) throws {
    observer?.noteSetup(of: id)
    guard let database = try existingDatabase(id, as: administrator) else { return completion(.success(())) }
    database.clear { result in completion(result.mapError { Status($0, database: id) }) }
  }
}
