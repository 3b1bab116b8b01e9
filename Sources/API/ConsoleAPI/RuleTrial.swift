import DatabaseService
import DocumentModel
import GatewayCore
import RulesEngine
import RulesTesting
import Transport
import WireFormat

// One request, tried by rules that are not in force over the documents of a database. Nothing is written.
extension DecisionLogAPI {
  /// Decides about the only case of a test file by the rules in the body, over the documents of a database. Documents in
  /// the test file replace stored ones. The caller must be allowed to read the documents.
  ///
  /// The response has the form of an explained request of the log.
  func tryRequest(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
      RuleTestUpload(root)
    }
    guard let upload else {
      throw Status(.invalidArgument, "The body must be {\"rules\": {\"files\": […]}, \"tests\": \"…\"}.")
    }
    let (project, name) = (try call.text(0, of: request), try call.text(1, of: request))
    guard let database = DatabaseID(project: project, database: name) else {
      throw Status(.invalidArgument, "\"\(name)\" is not the name of a database.")
    }
    let (service, responder, caller) = (service, call.responder, call.caller)
    responder.work {
      do {
        let trial = try RuleTrial(upload) { key in
          do {
            return try service.getDocument(key, in: database, as: caller) { document, _ in
              EncodedFields(canonical: Array(document.fields))
            }
          } catch let error as Status where error.code == .notFound { return nil }
        }
        let bytes = trial.json(in: database)
        responder.onLoop { responder.sendJSON(bytes) }
      } catch {
        let status = Self.status(of: error, database: database)
        responder.onLoop { responder.sendError(status) }
      }
    }
  }
}

/// A request that draft rules have decided about, with a trace.
private struct RuleTrial {
  let ruleset: Ruleset
  let test: RuleTest
  let verdict: Verdict

  /// Decides about the request. `read` returns a stored document, or `nil` if it does not exist. The rules show which
  /// documents they look up only when they are evaluated, so they are evaluated again until all of these are known.
  /// - Throws: `RulesetError`, `FixtureTreeError` or ``Status`` if the rules or the request are invalid; the errors of
  ///   `read`.
  init(_ upload: RuleTestUpload, _ read: (DocumentKey) throws -> EncodedFields?) throws {
    let text = upload.rules.text
    let service = RuleTestSuite.service(of: text)
    guard service == "cloud.firestore" else {
      throw Status(.invalidArgument, "The rules are for \(service). Requests can be tried by rules for documents only.")
    }
    ruleset = try Ruleset(compiling: text, service: service)
    let suite = try SuiteReader(rules: text, now: DecisionLogAPI.now()).read(Array(upload.tests.utf8), file: "request")
    guard suite.tests.count == 1, let test = suite.tests.first else {
      throw Status(.invalidArgument, "\"tests\" must contain exactly one case.")
    }
    self.test = test
    var documents = suite.documents
    var known: Set<ResourcePath> = []
    func load(_ paths: [ResourcePath]) throws {
      for path in paths where known.insert(path).inserted && documents[path] == nil {
        if let key = DocumentKey(path) { documents[path] = try read(key) }
      }
    }
    try load(test.operation.documents)
    let runner = TestCaseRunner()
    var verdict = runner.run(test, by: ruleset, over: documents, explaining: .trace)
    for _ in 0..<DecisionLogLimits.trialRoundsMax {
      let missing = verdict.lookups.filter { !known.contains($0) }
      if missing.isEmpty { break }
      try load(missing)
      verdict = runner.run(test, by: ruleset, over: documents, explaining: .trace)
    }
    self.verdict = verdict
  }

  /// The decision in the form of an explained request.
  func json(in database: DatabaseID) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("request")
    json.appendRequest(
      number: 0, time: test.time, service: ruleset.service, database: database, auth: test.auth,
      isAllowed: verdict.isAllowed, tests: [test])
    if let refusal = verdict.refusal {
      json.key("refusal")
      json.string(refusal)
    }
    var room = DecisionLogLimits.expressionsMax
    json.append([verdict], ruleset, room: &room)
    json.endObject()
    return json.finish()
  }
}

extension RuleTest.Operation {
  /// The documents that the request itself names.
  fileprivate var documents: [ResourcePath] {
    switch self {
    case .get(let key): [key.path]
    case .commit(let writes): writes.map(\.key.path)
    case .pipeline(let pipeline):
      pipeline.reads.compactMap { read in if case .get(let key) = read { key.path } else { nil } }
    case .list, .hosted, .file: []
    }
  }
}
