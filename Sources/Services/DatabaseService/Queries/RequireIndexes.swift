import DocumentModel
import DocumentStore
import QueryEngine

extension FirestoreService {
  /// Remembers what indexes a query wants in production, and refuses it where they are required and missing. A
  /// database of the enterprise edition requires none there, nor here.
  ///
  /// Cost where they are not required: see ``QueryLog/note(_:aggregated:)``.
  /// - Throws: `FAILED_PRECONDITION` with the documented text and what to declare.
  func checkIndexes(
    of query: ResolvedQuery, aggregated: [FieldPath] = [], _ database: DocumentDatabase,
    _ reader: inout SnapshotReader
  ) throws {
    guard database.edition == .standard else { return }
    let shape = seenQueries.note(query, aggregated: aggregated)
    guard requiresIndexes else { return }
    let catalog = try database.indexes(&reader)
    let configuration = catalog.configuration
    // Only a field that was taken out of the index can be missing then.
    if shape.isAutomatic, configuration.fields.isEmpty { return }
    let texts = MissingIndexes(database: query.database, configuration: configuration)
    let missing = shape.needs.missing(in: configuration)
    guard missing.isEmpty else { throw texts.status(missing) }
    guard let unready = catalog.unready else { return }
    if let waiting = shape.needs.missing(in: unready).first { throw texts.statusWhileBuilding(waiting) }
  }
}

extension DocumentDatabase {
  /// What the database's index file declares.
  func declaredIndexes() throws -> IndexConfiguration {
    try read { reader in try indexes(&reader).configuration }
  }
}

extension IndexCatalog {
  /// What is declared without what is not complete yet; `nil` where everything is complete.
  fileprivate var unready: IndexConfiguration? {
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
