package import DocumentModel
package import RulesEngine
import WireFormat

/// The result of evaluating a case.
package struct Verdict: Sendable {
  /// The decision on one document, one file or a query.
  package struct Part: Sendable {
    package var method: RulesMethod
    /// The path of the document or file, or the collection of a query.
    package var path: String
    package var decision: Decision
  }

  /// The decisions, in the order of the request. A denied one is the last.
  package var parts: [Part]
  /// The documents that the rules looked up, in order.
  package var lookups: [ResourcePath] = []
  /// The reason why the request is denied regardless of the rules, or `nil`.
  package var refusal: String?

  /// Whether every part was allowed.
  package var isAllowed: Bool { refusal == nil && parts.allSatisfy(\.decision.isAllowed) }

  /// Whether this is the result that a case expects.
  package func satisfies(_ test: RuleTest) -> Bool {
    guard isAllowed == test.expectsAllow else { return false }
    guard let line = test.expectedLine else { return true }
    if isAllowed { return parts.contains { $0.decision.line == line } }
    return parts.last.map { part in part.decision.outcomes.contains { $0.line == line } } ?? false
  }
}

/// Evaluates cases. Use it on one thread at a time.
package final class TestCaseRunner {
  private let evaluator = Evaluator()

  /// A runner. It keeps the memory of one ``Evaluator``.
  package init() {}

  /// Evaluates a case as a server would. Each document of a commit is evaluated against the state before the
  /// commit, and several writes to one document count as one. Cost: a few allocations, and the evaluation of the
  /// rules.
  package func run(
    _ test: RuleTest, by ruleset: Ruleset, over documents: TestDocuments,
    explaining: Decision.Explanation = .outcomes
  ) -> Verdict {
    let documents = test.documents.isEmpty ? documents : documents.changed(by: test.documents)
    let source = CaseLookup(documents)
    var requests: [RulesRequest] = []
    switch test.operation {
    case .get(let key):
      var request = RulesRequest(.get, key.path, auth: test.auth, time: test.time)
      request.resource = documents[key.path]
      requests = [request]
    case .list(let query): requests = [Self.request(for: query, test)]
    case .pipeline(let pipeline):
      if let refusal = pipeline.refusal { return Verdict(parts: [], refusal: refusal) }
      requests = pipeline.reads.map { read in
        switch read {
        case .list(let query):
          var request = Self.request(for: query, test)
          request.isOfPipeline = true
          return request
        case .get(let key):
          var request = RulesRequest(.get, key.path, auth: test.auth, time: test.time)
          request.resource = documents[key.path]
          return request
        }
      }
    case .commit(let writes): requests = Self.requests(of: writes, test, over: documents, source)
    case .hosted(let request, let mocks):
      source.mocks = mocks
      let decision = evaluator.decideOverDocument(
        ruleset, request, lookups: DocumentLookups(source), explaining: explaining)
      return Verdict(parts: [Verdict.Part(method: request.method, path: request.path.text, decision: decision)])
    case .file(let request): return run(request, test, by: ruleset, source, explaining)
    }
    let lookups = DocumentLookups(source)
    var verdict = Verdict(parts: [])
    for request in requests {
      let decision = evaluator.decide(ruleset, request, lookups: lookups, explaining: explaining)
      verdict.parts.append(
        Verdict.Part(
          method: request.method, path: request.query.map(Self.text) ?? request.path.text, decision: decision))
      if !decision.isAllowed { break }
    }
    verdict.lookups = lookups.paths.map { ResourcePath(uncheckedBytes: $0) }
    return verdict
  }

  /// Evaluates a request for a file. Lookups read the default database.
  private func run(
    _ request: FileTestRequest, _ test: RuleTest, by ruleset: Ruleset, _ source: CaseLookup,
    _ explaining: Decision.Explanation
  ) -> Verdict {
    let lookups = DocumentLookups(source)
    var verdict = Verdict(parts: [])
    let name = ResourcePath(uncheckedBytes: Array(request.name.utf8))
    for method in request.methods {
      var asked = RulesRequest(method, name, auth: test.auth, time: test.time)
      // In a list, `resource` is null.
      asked.resource = method == .list ? nil : request.before.map { EncodedFields($0) }
      asked.newResource = request.after.map { EncodedFields($0) }
      asked.lookupsMax = RulesRequest.lookupsMaxPerFile
      let decision = asked.withBorrowed { borrowed in
        Array(request.bucket.utf8).withUnsafeBytes { bucket in
          var borrowed = borrowed
          borrowed.bucket = bucket
          return evaluator.decide(ruleset, borrowed, lookups: lookups, explaining: explaining)
        }
      }
      verdict.parts.append(Verdict.Part(method: method, path: request.path, decision: decision))
      if !decision.isAllowed { break }
    }
    verdict.lookups = lookups.paths.map { ResourcePath(uncheckedBytes: $0) }
    return verdict
  }

  private static func request(for query: Query, _ test: RuleTest) -> RulesRequest {
    let collection = query.includesDescendants ? query.parent : query.parent.appending(query.collectionID ?? "")
    var request = RulesRequest(.list, collection, auth: test.auth, time: test.time)
    request.query = query
    return request
  }

  private static func text(_ query: Query) -> String {
    let id = query.collectionID ?? ""
    return query.includesDescendants ? "**/\(id)" : query.parent.appending(id).text
  }

  // MARK: Commits

  /// A document of a commit, before and after it.
  private struct Change {
    let key: DocumentKey
    let before: MapValue?
    var after: MapValue?
    /// The method that a precondition determines, if any.
    var method: RulesMethod?
    var writeFields: [String]?
    var transforms: [String]?
  }

  /// Returns one request per document, in the order of the first writes. Stores the state after the commit in `source`.
  private static func requests(
    of writes: [TestWrite], _ test: RuleTest, over documents: TestDocuments, _ source: CaseLookup
  ) -> [RulesRequest] {
    var changes: [Change] = []
    for write in writes {
      let known = changes.firstIndex { $0.key == write.key }
      // Decoding cannot fail: Hearth's own reader encoded these documents.
      let stored = documents[write.key.path].flatMap { try? $0.decoded() }
      var change = known.map { changes[$0] } ?? Change(key: write.key, before: stored, after: stored)
      apply(write, to: &change, time: test.time)
      if let known {
        // For several writes, the states before and after determine the method.
        change.method = nil
        changes[known] = change
      } else {
        changes.append(change)
      }
    }
    return changes.map { change in
      let after = change.after.map { EncodedFields($0) }
      source.after[change.key.path] = .some(after)
      let method = change.method ?? (after == nil ? .delete : change.before == nil ? .create : .update)
      var request = RulesRequest(method, change.key.path, auth: test.auth, time: test.time)
      request.resource = documents[change.key.path]
      request.newResource = after
      request.writeFields = change.writeFields
      request.transforms = change.transforms
      return request
    }
  }

  private static func apply(_ write: TestWrite, to change: inout Change, time: Timestamp) {
    switch write.kind {
    case .create: change.method = .create
    case .update: change.method = .update
    case .set, .delete: break
    }
    guard write.kind != .delete else {
      change.after = nil
      return
    }
    var fields = write.data
    if let mask = write.mask {
      fields = change.after ?? MapValue()
      for path in mask {
        if let value = write.data[path] { fields.set(value, at: path) } else { fields.remove(at: path) }
      }
    }
    for transform in write.transforms {
      _ = FieldTransformation.apply(transform, to: &fields, requestTime: time)
    }
    change.after = fields
    let transformed = write.transforms.map(\.path.text)
    if let mask = write.mask { change.writeFields = (change.writeFields ?? []) + mask.map(\.text) + transformed }
    if write.mask == nil, !transformed.isEmpty { change.writeFields = (change.writeFields ?? []) + transformed }
    if !transformed.isEmpty { change.transforms = (change.transforms ?? []) + transformed }
  }
}
