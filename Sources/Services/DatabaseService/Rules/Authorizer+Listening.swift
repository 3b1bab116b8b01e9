import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine

/// What the admission of a listener rests on, besides its request and the rules.
struct AuthorizationDependencies {
  /// The documents that rules looked at, with the versions they had; 0 for what was missing.
  var documents: [(key: DocumentKey, version: Int64)] = []
  /// Whether it may be another at another time.
  var usesTime = false

  /// Joins grounds: all of them must hold.
  mutating func formUnion(_ other: AuthorizationDependencies) {
    for document in other.documents where !documents.contains(where: { $0.key == document.key }) {
      documents.append(document)
    }
    usesTime = usesTime || other.usesTime
  }
}

extension Authorizer {
  /// Judges that a listener is told the state of a document, by what else a snapshot shows.
  /// - Throws: `PERMISSION_DENIED`.
  func admitGet(
    _ key: DocumentKey, _ fields: UnsafeRawBufferPointer?, in database: DocumentDatabase,
    _ snapshot: any KeyValueSnapshot
  ) throws -> AuthorizationDependencies {
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    evaluation.documents.begin(snapshot)
    let decision = BorrowedRulesRequest.with(
      .get, key.path, database: database.id.database, auth: auth, time: database.now
    ) { request in
      var request = request
      request.resource = fields
      return evaluation.decision(on: request, by: self)
    }
    guard !decision.isAllowed else {
      return AuthorizationDependencies(documents: evaluation.documents.seen, usesTime: decision.usesTime)
    }
    var request = RulesRequest(.get, key.path, database: database.id.database, auth: auth, time: database.now)
    request.resource = fields.map { EncodedFields(canonical: Array($0)) }
    throw Status(.permissionDenied, evaluation.denialText(of: request, by: self))
  }

  /// Judges that a listener follows a query, by proof.
  /// - Throws: `PERMISSION_DENIED`.
  func admitList(
    _ query: Query, in database: DocumentDatabase, _ snapshot: any KeyValueSnapshot
  ) throws -> AuthorizationDependencies {
    var path = query.parent
    if let id = query.collectionID, !query.includesDescendants { path = path.appending(id) }
    var request = RulesRequest(.list, path, database: database.id.database, auth: auth, time: database.now)
    request.query = query
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    evaluation.documents.begin(snapshot)
    let decision = evaluation.decision(on: request, by: self)
    guard !decision.isAllowed else {
      return AuthorizationDependencies(documents: evaluation.documents.seen, usesTime: decision.usesTime)
    }
    throw Status(.permissionDenied, evaluation.denialText(of: request, by: self))
  }
}
