import DocumentModel
import DocumentStore
import QueryEngine

extension Service {
  /// Remembers what indexes a query wants in production, and refuses it where they are required and missing.
  ///
  /// Cost where they are not required: see ``SeenQueries/note(_:aggregated:)``.
  /// - Throws: `FAILED_PRECONDITION` with the documented text and what to declare.
  func checkIndexes(of query: ResolvedQuery, aggregated: [FieldPath] = [], _ database: DocumentDatabase) throws {
    let shape = seenQueries.note(query, aggregated: aggregated)
    guard requiresIndexes else { return }
    let configuration = try database.declaredIndexes()
    // Only a field that was taken out of the index can be missing then.
    if shape.isAutomatic, configuration.fields.isEmpty { return }
    let texts = MissingIndexes(database: query.database, configuration: configuration)
    let missing = shape.needs.missing(in: configuration)
    guard missing.isEmpty else { throw texts.status(missing) }
  }
}

extension DocumentDatabase {
  /// What the database's index file declares.
  func declaredIndexes() throws -> IndexConfiguration { IndexConfiguration() }
}
