import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine

/// Authorizes the requests of one caller to one database.
struct Authorizer: Sendable {
  /// The rules that were active when the request arrived.
  let ruleset: ActiveRuleset
  /// The caller; `nil` if unauthenticated.
  let auth: RulesAuth?
  /// Whether denials include the reasons.
  let explains: Bool
  /// The way in which queries are authorized.
  let proofs: ProofMode
  let evaluations: RulesEvaluationPool

  /// Authorizes a get of one document, which may not exist, by the state at the time of the read. Cost: no
  /// allocation for rules without lookups.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func allowGet(
    _ key: DocumentKey, _ document: StoredDocument?, in database: DocumentDatabase, at moment: ReadTime,
    _ snapshot: any KeyValueSnapshot
  ) throws {
    try withEvaluation(snapshot, moment) { evaluation in
      try evaluation.allowGet(
        key, document, by: self, in: database, isInTransaction: moment.isInTransaction)
    }
  }

  /// Authorizes gets of several documents, which share their lookups.
  /// - Throws: `PERMISSION_DENIED` if the rules deny one of them.
  func allowGets(
    _ keys: [DocumentKey], in database: DocumentDatabase, at moment: ReadTime, _ reader: inout SnapshotReader
  ) throws {
    try withEvaluation(reader.snapshot, moment) { evaluation in
      for key in keys {
        let document = try database.document(key, at: moment, &reader)
        try evaluation.allowGet(key, document, by: self, in: database, isInTransaction: moment.isInTransaction)
      }
    }
  }

  /// Authorizes a query by proof, regardless of its results.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func allowList(
    _ query: Query, in database: DocumentDatabase, at moment: ReadTime, _ snapshot: any KeyValueSnapshot
  ) throws {
    var path = query.parent
    if let id = query.collectionID, !query.includesDescendants { path = path.appending(id) }
    var request = RulesRequest(
      .list, path, database: database.id.database, auth: auth, time: database.now)
    request.query = query
    request.isInTransaction = moment.isInTransaction
    try withEvaluation(snapshot, moment) { evaluation in
      if let text = evaluation.denial(of: request, by: self) { throw Status(.permissionDenied, text) }
    }
  }

  /// Calls `body` with an evaluation whose lookups read the state at a moment.
  private func withEvaluation(
    _ snapshot: any KeyValueSnapshot, _ moment: ReadTime, _ body: (RulesEvaluation) throws -> Void
  ) throws {
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    evaluation.documents.begin(snapshot, version: moment.version)
    try body(evaluation)
  }
}

extension RulesEvaluation {
  fileprivate func allowGet(
    _ key: DocumentKey, _ document: StoredDocument?, by authorizer: Authorizer, in database: DocumentDatabase,
    isInTransaction: Bool
  ) throws {
    let isAllowed = BorrowedRulesRequest.with(
      .get, key.path, database: database.id.database, auth: authorizer.auth, time: database.now
    ) { request in
      var request = request
      request.resource = document?.fields
      request.isInTransaction = isInTransaction
      return decision(on: request, by: authorizer).isAllowed
    }
    guard !isAllowed else { return }
    var request = RulesRequest(
      .get, key.path, database: database.id.database, auth: authorizer.auth, time: database.now)
    request.resource = document.map { EncodedFields(canonical: Array($0.fields)) }
    request.isInTransaction = isInTransaction
    throw Status(.permissionDenied, denialText(of: request, by: authorizer))
  }

  /// Evaluates a request for one document or a query. Returns the reason for a denial, or `nil` if it is allowed.
  func denial(of request: RulesRequest, by authorizer: Authorizer) -> String? {
    decision(on: request, by: authorizer).isAllowed ? nil : denialText(of: request, by: authorizer)
  }

  /// Evaluates a request and notifies the observer of the rules. Cost: no allocation without an observer.
  func decision(on request: BorrowedRulesRequest, by authorizer: Authorizer) -> Decision {
    let watcher = authorizer.ruleset.watcher
    let decision = evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: watcher == nil ? .none : .trace)
    watcher?.note(decision)
    authorizer.evaluations.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// Evaluates a request and notifies the observer of the rules.
  func decision(on request: RulesRequest, by authorizer: Authorizer) -> Decision {
    let watcher = authorizer.ruleset.watcher
    let decision = evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: watcher == nil ? .none : .trace,
      mode: authorizer.proofs)
    watcher?.note(decision)
    authorizer.evaluations.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// Returns the text of a denial. If it includes the reasons, the request is evaluated again to find them.
  func denialText(of request: RulesRequest, by authorizer: Authorizer) -> String {
    guard authorizer.explains else { return Status.permissionDenied.message }
    return evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: .outcomes, mode: authorizer.proofs
    ).denialText(request.method)
  }
}

extension DocumentDatabase {
  /// The time that rules see as `request.time` of a read.
  var now: Timestamp { Timestamp(uncheckedMicroseconds: clock.now()) }
}
