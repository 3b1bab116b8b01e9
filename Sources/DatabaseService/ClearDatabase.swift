package import DocumentModel
import DocumentStore

extension Service {
  /// Removes everything in a database: the emulator's reset between tests.
  ///
  /// `completion` is called once, on any thread.
  package func clear(_ id: DatabaseID, completion: @escaping @Sendable (Result<Void, Status>) -> Void) throws {
    try database(id).clear { result in completion(result.mapError { Status($0, database: id) }) }
  }
}
