package import DocumentModel
package import DocumentStore

/// A declared index and how far it is.
package struct DeclaredIndex: Sendable {
  /// What it indexes.
  package var definition: IndexDefinition
  /// The number the store gave it; stays while the index does.
  package var number: UInt64
  /// How far it is.
  package var state: StoredIndex.State
}

extension FirestoreService {
  /// The declared indexes of several fields and of vectors, in the order of their declaration; for administrators.
  /// - Throws: `NOT_FOUND` where the database is not served.
  package func listIndexes(in id: DatabaseID, as caller: Caller) throws -> [DeclaredIndex] {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    let database = access.database
    return try database.read { reader in
      let catalog = try database.indexes(&reader)
      return catalog.configuration.indexes.compactMap { definition in
        let stored = catalog.indexes.first { $0.state != .removing && $0.definition == definition.stored }
        return stored.map { DeclaredIndex(definition: definition, number: $0.number, state: $0.state) }
      }
    }
  }

  /// The fields that are indexed otherwise than all are, in the order of their declaration; for administrators.
  /// - Throws: `NOT_FOUND` where the database is not served.
  package func listFields(in id: DatabaseID, as caller: Caller) throws -> [FieldIndexing] {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    return try access.database.declaredIndexes().fields
  }
}
