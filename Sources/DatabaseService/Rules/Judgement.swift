import DocumentModel
import DocumentStore
import KeyValueStore
import RulesEngine

/// How the requests of one caller to one database are judged.
struct Judgement: Sendable {
  /// The rules, as they were when the call came.
  let ruleset: GuardingRuleset
  /// Who calls; `nil` for who is not signed in.
  let auth: RulesAuth?
  /// Whether denials say why.
  let explains: Bool
  /// How queries are authorised.
  let proofs: ProofMode
  /// Where judges are taken from.
  let judges: JudgePool

  /// Judges a get of one document, which may be missing, by the state that a read shows. Cost: no allocation for rules
  /// that look up nothing.
  /// - Throws: `PERMISSION_DENIED`.
  func allowGet(
    _ key: DocumentKey, _ document: StoredDocument?, in database: DocumentDatabase, at moment: ReadMoment,
    _ snapshot: any KeyValueSnapshot
  ) throws {
    try judging(snapshot, moment) { judge in
      try judge.allowGet(
        key, document, by: self, in: database, isInTransaction: moment.isInTransaction)
    }
  }

  /// Judges gets of several documents, which share what they look up.
  /// - Throws: `PERMISSION_DENIED` where one of them is not allowed.
  func allowGets(
    _ keys: [DocumentKey], in database: DocumentDatabase, at moment: ReadMoment, _ reader: inout DocumentReader
  ) throws {
    try judging(reader.snapshot, moment) { judge in
      for key in keys {
        let document = try database.document(key, at: moment, &reader)
        try judge.allowGet(key, document, by: self, in: database, isInTransaction: moment.isInTransaction)
      }
    }
  }

  /// Judges a query by proof, whatever it would find.
  /// - Throws: `PERMISSION_DENIED`.
  func allowList(
    _ query: Query, in database: DocumentDatabase, at moment: ReadMoment, _ snapshot: any KeyValueSnapshot
  ) throws {
    var path = query.parent
    if let id = query.collectionID, !query.includesDescendants { path = path.appending(id) }
    var request = RulesRequest(
      .list, path, database: database.id.database, auth: auth, time: database.now)
    request.query = query
    request.isInTransaction = moment.isInTransaction
    try judging(snapshot, moment) { judge in
      if let text = judge.denial(of: request, by: self) { throw Status(.permissionDenied, text) }
    }
  }

  /// Lends a judge that looks documents up as a moment shows them.
  private func judging(_ snapshot: any KeyValueSnapshot, _ moment: ReadMoment, _ body: (Judge) throws -> Void) throws {
    let judge = judges.take()
    defer { judges.give(judge) }
    judge.documents.begin(snapshot, version: moment.version)
    try body(judge)
  }
}

extension Judge {
  fileprivate func allowGet(
    _ key: DocumentKey, _ document: StoredDocument?, by judgement: Judgement, in database: DocumentDatabase,
    isInTransaction: Bool
  ) throws {
    let isAllowed = BorrowedRulesRequest.with(
      .get, key.path, database: database.id.database, auth: judgement.auth, time: database.now
    ) { request in
      var request = request
      request.resource = document?.fields
      request.isInTransaction = isInTransaction
      return decision(on: request, by: judgement).isAllowed
    }
    guard !isAllowed else { return }
    var request = RulesRequest(
      .get, key.path, database: database.id.database, auth: judgement.auth, time: database.now)
    request.resource = document.map { EncodedFields(canonical: Array($0.fields)) }
    request.isInTransaction = isInTransaction
    throw Status(.permissionDenied, denialText(of: request, by: judgement))
  }

  /// Judges one document's part in a request, or a query; returns why it is denied, or `nil` where it is allowed.
  func denial(of request: RulesRequest, by judgement: Judgement) -> String? {
    decision(on: request, by: judgement).isAllowed ? nil : denialText(of: request, by: judgement)
  }

  /// Judges, and tells who watches the rules. Cost: no allocation where nobody does.
  func decision(on request: BorrowedRulesRequest, by judgement: Judgement) -> Decision {
    let watcher = judgement.ruleset.watcher
    let decision = evaluator.decide(
      judgement.ruleset.ruleset, request, lookups: lookups, explaining: watcher == nil ? .none : .trace)
    watcher?.note(decision)
    judgement.judges.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// Judges, and tells who watches the rules.
  func decision(on request: RulesRequest, by judgement: Judgement) -> Decision {
    let watcher = judgement.ruleset.watcher
    let decision = evaluator.decide(
      judgement.ruleset.ruleset, request, lookups: lookups, explaining: watcher == nil ? .none : .trace,
      mode: judgement.proofs)
    watcher?.note(decision)
    judgement.judges.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  /// What the caller is told of a denial: the reasons are found by judging again.
  func denialText(of request: RulesRequest, by judgement: Judgement) -> String {
    guard judgement.explains else { return Status.permissionDenied.message }
    return evaluator.decide(
      judgement.ruleset.ruleset, request, lookups: lookups, explaining: .outcomes, mode: judgement.proofs
    ).denialText(request.method)
  }
}

extension DocumentDatabase {
  /// The moment that rules see as `request.time` of a read.
  var now: Timestamp { Timestamp(uncheckedMicroseconds: clock.now()) }
}
