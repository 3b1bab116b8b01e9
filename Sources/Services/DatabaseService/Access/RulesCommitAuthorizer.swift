import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine

/// Authorizes a commit by rules (rules-language.md, section 12). Each document is evaluated in the state after all
/// writes of the commit: once for the writes, and once as a get if the commit verifies it.
struct RulesCommitAuthorizer: CommitAuthorizer {
  let authorizer: Authorizer
  let database: DatabaseID

  var bytes: Int { 256 + (authorizer.auth?.claims.bytes.count ?? 0) }

  func authorize(
    _ documents: [ProposedDocument], requestTime: Timestamp, isInTransaction: Bool, isOnLoop: Bool,
    _ snapshot: any KeyValueSnapshot
  ) throws(CommitError) -> [(key: DocumentKey, version: Int64)] {
    let evaluation = authorizer.evaluations.take()
    defer { authorizer.evaluations.give(evaluation) }
    evaluation.begin(snapshot, changed: documents)
    let workAtStart = evaluation.evaluator.requestWorkLeft
    for (place, document) in documents.enumerated() {
      if isOnLoop, place > 0 {
        let work = workAtStart - evaluation.evaluator.requestWorkLeft + place * Evaluator.cheapWorkMax
        if work > Evaluator.sliceWorkMax { throw .tooLongForLoop }
      }
      for method in document.methods {
        var request = RulesRequest(
          method, document.key.path, database: database.database, auth: authorizer.auth, time: requestTime)
        request.resource = document.before
        if method != .get { request.newResource = document.after }
        request.writeFields = document.writeFields
        request.transforms = document.transforms
        request.isInTransaction = isInTransaction
        if let text = evaluation.denial(of: request, by: authorizer) {
          note(documents, denied: (document.key, method), requestTime, evaluation)
          throw .denied(text)
        }
      }
    }
    note(documents, denied: nil, requestTime, evaluation)
    return evaluation.seen
  }

  /// Reports the decision to the observer, if one exists.
  private func note(
    _ documents: [ProposedDocument], denied: (key: DocumentKey, method: RulesMethod)?, _ time: Timestamp,
    _ evaluation: RulesEvaluation
  ) {
    guard let observer = authorizer.evaluations.observer else { return }
    observer.note(
      AccessRecord(
        database: database, ruleset: authorizer.ruleset.ruleset, auth: authorizer.auth, time: time,
        request: .commit(documents, denied: denied), lookups: evaluation.observedLookups(except: documents),
        isAllowed: denied == nil))
  }
}

extension ProposedDocument {
  /// The methods that the commit represents for the rules. A verify operation is a read.
  fileprivate var methods: [RulesMethod] {
    let changes = writes.filter { $0.operation != .verify }
    var methods: [RulesMethod] = changes.count < writes.count ? [.get] : []
    if let first = changes.first { methods.append(method(first)) }
    return methods
  }

  private func method(_ first: Write) -> RulesMethod {
    if isDeleted { return .delete }
    // For rules, the client's precondition overrides whether the document exists. A deletion has no such
    // precondition.
    if first.operation != .delete, case .exists(let exists) = first.precondition { return exists ? .update : .create }
    return before == nil ? .create : .update
  }

  /// The paths of transforms, followed by those of masks unless a write replaces the document; `nil` if there are
  /// neither.
  fileprivate var writeFields: [String]? {
    var masked: [String]?
    for write in writes {
      guard case .update(_, let mask) = write.operation else { continue }
      guard let mask else {
        masked = nil
        break
      }
      masked = (masked ?? []) + mask.paths.map(\.text)
    }
    guard let transforms else { return masked }
    return transforms + (masked ?? [])
  }

  /// The paths of transforms, or `nil` without transforms.
  fileprivate var transforms: [String]? {
    let paths = writes.flatMap { write in write.transforms.map(\.path.text) }
    return paths.isEmpty ? nil : paths
  }
}
