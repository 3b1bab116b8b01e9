import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine

/// How the requests of one caller to one database are judged.
struct Authorizer: Sendable {
  /// The rules, as they were when the call came.
  let ruleset: ActiveRuleset
  /// Who calls; `nil` for who is not signed in.
  let auth: RulesAuth?
  /// Whether denials say why.
  let explains: Bool
  /// How queries are authorised.
  let proofs: ProofMode
  /// Where judges are taken from.
  let evaluations: RulesEvaluationPool

  /// Judges a get of one document, which may be missing, by the state that a read shows. Cost: no allocation for rules
  /// that look up nothing.
  /// - Throws: `PERMISSION_DENIED`.
  func allowGet(
    _ key: DocumentKey, _ document: StoredDocument?, in database: DocumentDatabase, at moment: ReadTime,
    _ snapshot: any KeyValueSnapshot
  ) throws {
    try withEvaluation(snapshot, moment) { evaluation in
      try evaluation.allowGet(
        key, document, by: self, in: database, isInTransaction: moment.isInTransaction)
    }
  }

  /// Judges gets of several documents, which share what they look up.
  /// - Throws: `PERMISSION_DENIED` where one of them is not allowed.
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

  /// Judges a query by proof, whatever it would find.
  /// - Throws: `PERMISSION_DENIED`.
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

  /// Lends a judge that looks documents up as a moment shows them.
  private func withEvaluation(_ snapshot: any KeyValueSnapshot, _ moment: ReadTime, _ body: (RulesEvaluation) throws -> Void) throws {
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

  /// Judges one document's part in a request, or a query; returns why it is denied, or `nil` where it is allowed.
  func denial(of request: RulesRequest, by authorizer: Authorizer) -> String? {
    decision(on: request, by: authorizer).isAllowed ? nil : denialText(of: request, by: authorizer)
  }

  /// Judges, and tells who watches the rules. Cost: no allocation where nobody does.
  func decision(on request: BorrowedRulesRequest, by authorizer: Authorizer) -> Decision {
    let watcher = authorizer.ruleset.watcher
    let decision = evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: watcher == nil ? .none : .trace)
    watcher?.note(decision)
    authorizer.evaluations.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// Judges, and tells who watches the rules.
  func decision(on request: RulesRequest, by authorizer: Authorizer) -> Decision {
    let watcher = authorizer.ruleset.watcher
    let decision = evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: watcher == nil ? .none : .trace,
      mode: authorizer.proofs)
    watcher?.note(decision)
    authorizer.evaluations.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// What the caller is told of a denial: the reasons are found by judging again.
  func denialText(of request: RulesRequest, by authorizer: Authorizer) -> String {
    guard authorizer.explains else { return Status.permissionDenied.message }
    return evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: .outcomes, mode: authorizer.proofs
    ).denialText(request.method)
  }
}

extension DocumentDatabase {
  /// The moment that rules see as `request.time` of a read.
  var now: Timestamp { Timestamp(uncheckedMicroseconds: clock.now()) }
}
