import DatabaseService
import DocumentModel
import RulesEngine
import RulesTesting
import WireFormat

extension JSONWriter {
  /// Appends a request as an object: its caller, its method and path, and the decision.
  mutating func append(_ entry: DecisionLog.Entry, tests: [RuleTest]) {
    let record = entry.record
    appendRequest(
      number: entry.number, time: record.time, service: record.ruleset.service, database: record.database,
      auth: record.auth, isAllowed: record.isAllowed, tests: tests)
  }

  /// Appends a request as an object. `number` is 0 for a request that is not in the log.
  mutating func appendRequest(
    number: Int, time: Timestamp, service: String, database: DatabaseID?, auth: RulesAuth?, isAllowed: Bool,
    tests: [RuleTest]
  ) {
    beginObject()
    key("number")
    self.number(number)
    key("time")
    timestamp(time)
    key("service")
    string(service)
    if let database {
      key("database")
      string("projects/\(database.project)/databases/\(database.database)")
    }
    if let auth {
      key("uid")
      string(auth.uid ?? "")
    }
    key("allowed")
    bool(isAllowed)
    key("targets")
    beginArray()
    for test in tests {
      for (method, path) in test.operation.targets {
        beginObject()
        key("method")
        string(method)
        key("path")
        string(path)
        endObject()
      }
    }
    endArray()
    endObject()
  }

  /// Appends the members of an explained request: the rules, the decisions of its cases, and the documents that the
  /// rules looked up. `room` is the number of expressions that may still be written.
  mutating func append(_ verdicts: [Verdict], _ ruleset: Ruleset, room: inout Int) {
    key("rules")
    string(String(decoding: ruleset.source.bytes, as: UTF8.self))
    key("parts")
    beginArray()
    for verdict in verdicts {
      for part in verdict.parts { append(part, ruleset, room: &room) }
    }
    endArray()
    key("lookups")
    beginArray()
    for verdict in verdicts {
      for lookup in verdict.lookups { string(lookup.text) }
    }
    endArray()
    key("isCut")
    bool(room <= 0)
  }

  /// Appends the decision about one document, query or file, with its trace. `room` is the number of expressions that
  /// may still be written.
  private mutating func append(_ part: Verdict.Part, _ ruleset: Ruleset, room: inout Int) {
    beginObject()
    key("method")
    string(part.method.rawValue)
    key("path")
    string(part.path)
    key("allowed")
    bool(part.decision.isAllowed)
    key("outcomes")
    beginArray()
    for outcome in part.decision.outcomes {
      beginObject()
      key("line")
      number(outcome.line)
      append(outcome.range)
      key("result")
      string(outcome.result)
      endObject()
    }
    endArray()
    key("trees")
    beginArray()
    for tree in ruleset.tree(of: part.decision.trace) { append(tree, room: &room) }
    endArray()
    endObject()
  }

  /// Appends an expression with its value and its operands. Recurses as deep as expressions nest, which the parser
  /// limits.
  private mutating func append(_ tree: TracedExpression, room: inout Int) {
    room -= 1
    beginObject()
    append(tree.range)
    key("value")
    string(ValueDisplay.text(tree.value))
    switch tree.kind {
    case .literal, .plain: break
    case .composed, .call:
      key("children")
      beginArray()
      for child in tree.children where room > 0 {
        if case .literal = child.kind { continue }
        append(child, room: &room)
      }
      endArray()
    }
    endObject()
  }

  /// Appends a diagnostic as an object.
  mutating func append(_ diagnostic: Diagnostic) {
    beginObject()
    key("severity")
    string(diagnostic.severity.rawValue)
    key("message")
    string(diagnostic.message)
    if let suggestion = diagnostic.suggestion {
      key("suggestion")
      string(suggestion)
    }
    key("line")
    number(diagnostic.line)
    key("column")
    number(diagnostic.column)
    append(diagnostic.range)
    endObject()
  }

  /// Appends a place in the rules, in bytes.
  private mutating func append(_ range: Range<Int>) {
    key("start")
    number(range.lowerBound)
    key("end")
    number(range.upperBound)
  }
}

extension RuleTest.Operation {
  /// The methods and paths of the request, for people.
  fileprivate var targets: [(method: String, path: String)] {
    switch self {
    case .get(let key): [("get", key.path.text)]
    case .list(let query):
      [
        (
          "list",
          query.includesDescendants
            ? "**/\(query.collectionID ?? "")" : query.parent.appending(query.collectionID ?? "").text
        )
      ]
    case .pipeline(let pipeline): [("pipeline", pipeline.text)]
    case .commit(let writes): writes.map { ($0.kind.rawValue, $0.key.path.text) }
    case .hosted(let request, _): [(request.method.rawValue, request.path.text)]
    case .file(let file): file.methods.map { ($0.rawValue, "\(file.bucket)/\(file.name)") }
    }
  }
}
