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
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    evaluation.begin(snapshot)
    let decision = BorrowedRulesRequest.with(
      .get, key.path, database: database.id.database, auth: auth, time: database.now
    ) { request in
      var request = request
      request.resource = fields
      return evaluation.decision(on: request, by: self)
    }
    guard !decision.isAllowed else {
      return AuthorizationDependencies(documents: evaluation.seen, usesTime: decision.usesTime)
    }
    var request = RulesRequest(.get, key.path, database: database.id.database, auth: auth, time: database.now)
    request.resource = fields.map { EncodedFields(canonical: Array($0)) }
    throw Status(.permissionDenied, evaluation.denialText(of: request, by: self))
  }

  /// Authorizes a listener to follow a query, by proof.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func authorizeList(
    _ query: Query, in database: DocumentDatabase, _ snapshot: any KeyValueSnapshot
  ) throws -> AuthorizationDependencies {
    var path = query.parent
    if let id = query.collectionID, !query.includesDescendants { path = path.appending(id) }
    var request = RulesRequest(.list, path, database: database.id.database, auth: auth, time: database.now)
    request.query = query
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    evaluation.begin(snapshot)
    let decision = evaluation.decision(on: request, by: self)
    guard !decision.isAllowed else {
      return AuthorizationDependencies(documents: evaluation.seen, usesTime: decision.usesTime)
    }
    throw Status(.permissionDenied, evaluation.denialText(of: request, by: self))
  }
}
