import DocumentModel
import DocumentStore
import RulesEngine

/// Authorizes the requests of one caller to one database.
struct Authorizer: Sendable {
  /// The rules that were active when the request arrived.
  let ruleset: ActiveRuleset
  /// The caller; `nil` if unauthenticated.
  let auth: RulesAuth?
  /// Whether denials include the reasons.
  let explains: Bool
  /// How strictly a query's filter must imply the rules.
  let proofMode: ProofMode
  let evaluations: RulesEvaluationPool
}

extension RulesEvaluation {
  /// Authorizes a get of one document by its fields, `nil` if it does not exist. Returns the decision. Cost: no
  /// allocation for rules without lookups.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  @discardableResult
  func requireGet(
    _ key: DocumentKey, _ fields: UnsafeRawBufferPointer?, by authorizer: Authorizer, in database: DocumentDatabase,
    isInTransaction: Bool
  ) throws -> Decision {
    let decision = BorrowedRulesRequest.with(
      .get, key.path, database: database.id.database, auth: authorizer.auth, time: database.now
    ) { request in
      var request = request
      request.resource = fields
      request.isInTransaction = isInTransaction
      return self.decision(on: request, by: authorizer)
    }
    if authorizer.evaluations.isObserved {
      note(decision, by: authorizer, in: database, .get(key, fields.map { EncodedFields(canonical: Array($0)) }))
    }
    guard !decision.isAllowed else { return decision }
    var request = RulesRequest(
      .get, key.path, database: database.id.database, auth: authorizer.auth, time: database.now)
    request.resource = fields.map { EncodedFields(canonical: Array($0)) }
    request.isInTransaction = isInTransaction
    throw Status(.permissionDenied, denialText(of: request, by: authorizer))
  }

  /// Authorizes a query by proving from its filter that every possible result is allowed. Returns the decision.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  @discardableResult
  func requireList(
    _ query: Query, ofPipeline isOfPipeline: Bool, by authorizer: Authorizer, in database: DocumentDatabase,
    isInTransaction: Bool
  ) throws -> Decision {
    var path = query.parent
    if let id = query.collectionID, !query.includesDescendants { path = path.appending(id) }
    var request = RulesRequest(
      .list, path, database: database.id.database, auth: authorizer.auth, time: database.now)
    request.query = query
    request.isOfPipeline = isOfPipeline
    request.edition = database.edition
    request.isInTransaction = isInTransaction
    let decision = decision(on: request, by: authorizer)
    if authorizer.evaluations.isObserved { note(decision, by: authorizer, in: database, .list(query)) }
    guard !decision.isAllowed else { return decision }
    throw Status(.permissionDenied, denialText(of: request, by: authorizer))
  }

  /// Evaluates a request for one document or a query. Returns the reason for a denial, or `nil` if it is allowed.
  func denial(of request: RulesRequest, by authorizer: Authorizer) -> String? {
    decision(on: request, by: authorizer).isAllowed ? nil : denialText(of: request, by: authorizer)
  }

  /// Evaluates a request and notifies the observer of the rules. Cost: no allocation without an observer.
  func decision(on request: BorrowedRulesRequest, by authorizer: Authorizer) -> Decision {
    let observer = authorizer.ruleset.observer
    let decision = evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: observer == nil ? .none : .trace)
    observer?.note(decision)
    authorizer.evaluations.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// Evaluates a request and notifies the observer of the rules.
  func decision(on request: RulesRequest, by authorizer: Authorizer) -> Decision {
    let observer = authorizer.ruleset.observer
    let decision = evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: observer == nil ? .none : .trace,
      mode: authorizer.proofMode)
    observer?.note(decision)
    authorizer.evaluations.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// Returns the text of a denial. If it includes the reasons, the request is evaluated again to find them.
  func denialText(of request: RulesRequest, by authorizer: Authorizer) -> String {
    guard authorizer.explains else { return Status.permissionDenied.message }
    return evaluator.decide(
      authorizer.ruleset.ruleset, request, lookups: lookups, explaining: .outcomes, mode: authorizer.proofMode
    ).denialText(request.method)
  }
}

extension DocumentDatabase {
  /// The time that rules see as `request.time` of a read.
  var now: Timestamp { Timestamp(uncheckedMicroseconds: clock.now()) }
}
