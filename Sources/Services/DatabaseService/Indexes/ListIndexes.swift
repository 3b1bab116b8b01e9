package import DocumentModel
import DocumentStore
import QueryEngine

/// A declared index and its state.
package struct DeclaredIndex: Sendable {
  package var definition: IndexDefinition
  /// The number that the store assigned, for the lifetime of the index.
  package var number: UInt64
  package var state: IndexReport.State
  /// The fields of ``definition``, followed by those that the index adds for the order by name.
  package var completeFields: [IndexDefinition.Field] { definition.completeFields }
}

extension FirestoreService {
  /// Returns the declared indexes of several fields and of vectors, in the order of their declaration. For
  /// administrators.
  /// - Throws: `NOT_FOUND` if the database is not served; `PERMISSION_DENIED` if the caller is not an administrator
  ///   and rules apply.
  package func listIndexes(in id: DatabaseID, as caller: Caller) throws -> [DeclaredIndex] {
    let database = try access(to: id, as: caller, creates: false).administrator().database
    return try database.read { reader in
      let catalog = try database.indexes(&reader)
      return catalog.configuration.indexes.compactMap { definition in
        let stored = catalog.indexes.first { $0.state != .removing && $0.definition == definition.stored }
        return stored.map { DeclaredIndex(definition: definition, number: $0.number, state: $0.state.reported) }
      }
    }
  }

  /// Returns the fields with their own index settings, in the order of their declaration. For administrators.
  /// - Throws: `NOT_FOUND` if the database is not served; `PERMISSION_DENIED` if the caller is not an administrator
  ///   and rules apply.
  package func listFields(in id: DatabaseID, as caller: Caller) throws -> [FieldIndexing] {
    return try access(to: id, as: caller, creates: false).administrator().database.declaredIndexes().fields
  }
}
