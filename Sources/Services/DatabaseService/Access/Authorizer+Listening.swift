import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine
import Watch

extension Authorizer {
  /// Authorizes a listener to receive the state of a document. Lookups by the rules read the snapshot.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func authorizeGet(
    _ key: DocumentKey, _ fields: UnsafeRawBufferPointer?, in database: DocumentDatabase,
    _ snapshot: any KeyValueSnapshot
  ) throws -> AuthorizationDependencies {
    try dependencies(snapshot) { evaluation in
      try evaluation.requireGet(key, fields, by: self, in: database, isInTransaction: false)
    }
  }

  /// Authorizes a listener to follow a query, by proof.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func authorizeList(
    _ query: Query, ofPipeline: Bool, in database: DocumentDatabase, _ snapshot: any KeyValueSnapshot
  ) throws -> AuthorizationDependencies {
    try dependencies(snapshot) { evaluation in
      try evaluation.requireList(query, ofPipeline: ofPipeline, by: self, in: database, isInTransaction: false)
    }
  }

  /// Returns the state on which a decision of the rules depends.
  private func dependencies(
    _ snapshot: any KeyValueSnapshot, _ require: (RulesEvaluation) throws -> Decision
  ) throws -> AuthorizationDependencies {
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    evaluation.begin(snapshot)
    let decision = try require(evaluation)
    return AuthorizationDependencies(documents: evaluation.seen, usesTime: decision.usesTime)
  }
}
