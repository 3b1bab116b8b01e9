import DocumentModel
import DocumentStore
import QueryEngine

extension FirestoreService {
  /// Records the indexes that a query requires in production. If indexes are required, checks that they exist.
  /// Databases of the enterprise edition require no indexes in production, nor here.
  ///
  /// Cost if indexes are not required: see ``QueryLog/note(_:aggregated:)``.
  /// - Throws: `FAILED_PRECONDITION` with the documented text and the missing declarations.
  func checkIndexes(
    of query: ResolvedQuery, aggregated: [FieldPath] = [], _ edition: Edition, _ catalog: IndexCatalog
  ) throws {
    guard edition == .standard else { return }
    let shape = seenQueries.note(query, aggregated: aggregated)
    guard requiresIndexes else { return }
    let configuration = catalog.configuration
    // In this case an index can be missing only if a field is exempt from indexing.
    if shape.isAutomatic, configuration.fields.isEmpty { return }
    let texts = MissingIndexes(database: query.database, configuration: configuration)
    let missing = shape.needs.missing(in: configuration)
    guard missing.isEmpty else { throw texts.status(missing) }
    guard let readyConfiguration = catalog.readyConfiguration else { return }
    if let waiting = shape.needs.missing(in: readyConfiguration).first { throw texts.statusWhileBuilding(waiting) }
  }
}

extension DocumentDatabase {
  /// Returns the declarations of the database's index file.
  func declaredIndexes() throws -> IndexConfiguration {
    try read { reader in try indexes(&reader).configuration }
  }
}

extension IndexCatalog {
  /// The declared indexes that are ready, or `nil` if all declared indexes are ready.
  fileprivate var readyConfiguration: IndexConfiguration? {
    guard indexes.contains(where: { $0.state == .building || $0.state == .failed }) else { return nil }
    var ready = configuration
    ready.indexes.removeAll { state(of: $0) != .ready }
    for index in ready.fields.indices {
      let field = ready.fields[index]
      for entries in field.entries where entries.scope == .collectionGroup {
        let definition = IndexDefinition(
          collectionID: field.collectionID, scope: .collectionGroup,
          fields: [IndexDefinition.Field(field.path, entries.mode)])
        if state(of: definition) != .ready { ready.fields[index].entries.remove(entries) }
      }
    }
    return ready
  }
}
