import Foundation
import Testing
import TestSupport

/// Outcomes of conflicting transactions, tested on Hearth alone: the emulator locks and waits, while in Hearth one
/// transaction wins at once.
///
/// Each case is a script of two transactions and other writes, with the outcome that follows from one rule: a commit
/// succeeds if no data that its transaction read has changed since, and is ABORTED otherwise.
@Suite(.needs(.hearth))
struct TransactionOutcomeTests {
  /// One step. Transactions have numbers, and documents have names in the collection `t`.
  enum Action: Sendable, CustomStringConvertible {
    case begin(Int)
    case beginReadOnly(Int)
    /// Reads documents. `sees` are the expected values, -1 for a missing document.
    case read(Int, [String], sees: [Int])
    /// Reads a document with GET and the `transaction` parameter.
    case get(Int, String, sees: Int)
    /// Lists the collection, which must have `count` documents.
    case list(Int, count: Int)
    /// Queries the documents with a value, sorted by name, at most `limit`. `sees` are the expected documents.
    case query(Int, of: Int, limit: Int? = nil, sees: [String])
    /// Counts the documents with a value.
    case count(Int, of: Int, sees: Int)
    /// Commits values for documents.
    case commit(Int, [String: Int])
    case aborted(Int, [String: Int])
    case rollback(Int)
    /// A write outside a transaction, which no transaction may delay.
    case set(String, Int)
    case delete(String)
    case create(String, Int)

    var description: String {
      switch self {
      case .begin(let id): "begin \(id)"
      case .beginReadOnly(let id): "begin \(id) read-only"
      case .read(let id, let documents, let sees): "\(id) reads \(documents) and sees \(sees)"
      case .get(let id, let document, let sees): "\(id) gets \(document) and sees \(sees)"
      case .list(let id, let count): "\(id) lists \(count)"
      case .query(let id, let value, let limit, let documents):
        "\(id) queries \(value)\(limit.map { ", \($0) at most" } ?? "") and sees \(documents)"
      case .count(let id, let value, let count): "\(id) counts \(count) of \(value)"
      case .commit(let id, let values): "\(id) commits \(values)"
      case .aborted(let id, let values): "\(id) is aborted with \(values)"
      case .rollback(let id): "rollback \(id)"
      case .set(let document, let value): "set \(document) to \(value)"
      case .delete(let document): "delete \(document)"
      case .create(let document, let value): "create \(document) as \(value)"
      }
    }
  }

  struct Script: Sendable, CustomTestStringConvertible {
    let name: String
    let actions: [Action]
    /// The values of the documents at the end, -1 for missing.
    let end: [String: Int]
    var testDescription: String { name }

    init(_ name: String, _ actions: [Action], end: [String: Int]) {
      self.name = name
      self.actions = actions
      self.end = end
    }
  }

  /// Every script starts with a, b and c at 0.
  static let scripts: [Script] = [
    Script(
      "the first to commit wins",
      [
        .begin(1), .begin(2), .read(1, ["a"], sees: [0]), .read(2, ["a"], sees: [0]), .commit(1, ["a": 1]),
        .aborted(2, ["a": 2]),
      ], end: ["a": 1]),
    Script(
      "a write outside wins over a transaction that read",
      [
        .begin(1), .read(1, ["a"], sees: [0]), .set("a", 5), .aborted(1, ["a": 1]),
      ], end: ["a": 5]),
    Script(
      "a write to an unread document does not matter",
      [
        .begin(1), .read(1, ["a"], sees: [0]), .set("b", 5), .commit(1, ["a": 1]),
      ], end: ["a": 1, "b": 5]),
    Script(
      "blind writes never conflict",
      [
        .begin(1), .begin(2), .set("a", 5), .commit(1, ["a": 1]), .commit(2, ["a": 2]),
      ], end: ["a": 2]),
    Script(
      "a missing document counts as read",
      [
        .begin(1), .read(1, ["new"], sees: [-1]), .create("new", 5), .aborted(1, ["new": 1]),
      ], end: ["new": 5]),
    Script(
      "a deletion counts as a change",
      [
        .begin(1), .read(1, ["a"], sees: [0]), .delete("a"), .aborted(1, ["b": 1]),
      ], end: ["a": -1, "b": 0]),
    Script(
      "deleting and recreating a document is a change",
      [
        .begin(1), .read(1, ["a"], sees: [0]), .delete("a"), .set("a", 0), .aborted(1, ["b": 1]),
      ], end: ["a": 0, "b": 0]),
    Script(
      "changing a document and changing it back is a change",
      [
        .begin(1), .read(1, ["a"], sees: [0]), .set("a", 1), .set("a", 0), .aborted(1, ["b": 1]),
      ], end: ["a": 0, "b": 0]),
    Script(
      "a write without effect is not a change",
      [
        .begin(1), .read(1, ["a"], sees: [0]), .set("a", 0), .commit(1, ["a": 1]),
      ], end: ["a": 1]),
    Script(
      "write skew is impossible",
      [
        .begin(1), .begin(2), .read(1, ["a", "b"], sees: [0, 0]), .read(2, ["a", "b"], sees: [0, 0]),
        .commit(1, ["a": 1]),
        .aborted(2, ["b": 1]),
      ], end: ["a": 1, "b": 0]),
    Script(
      "a transaction that was rolled back does not conflict",
      [
        .begin(1), .begin(2), .read(1, ["a"], sees: [0]), .read(2, ["a"], sees: [0]), .rollback(1),
        .commit(2, ["a": 2]),
      ], end: ["a": 2]),
    Script(
      "all reads see one snapshot",
      [
        .begin(1), .read(1, ["a"], sees: [0]), .set("b", 5), .read(1, ["b"], sees: [0]), .aborted(1, ["c": 1]),
      ], end: ["b": 5, "c": 0]),
    Script(
      "a read-only transaction sees its snapshot and never fails",
      [
        .beginReadOnly(1), .read(1, ["a"], sees: [0]), .set("a", 5), .delete("b"), .read(1, ["a", "b"], sees: [0, 0]),
        .commit(1, [:]),
      ], end: ["a": 5, "b": -1]),
    Script(
      "GET can read in a transaction",
      [
        .begin(1), .get(1, "a", sees: 0), .set("a", 5), .get(1, "a", sees: 0), .aborted(1, ["b": 1]),
      ], end: ["a": 5, "b": 0]),
    Script(
      "a document that appears in a list conflicts",
      [
        .begin(1), .list(1, count: 3), .create("new", 5), .aborted(1, ["a": 1]),
      ], end: ["a": 0, "new": 5]),
    Script(
      "a document that leaves a list conflicts",
      [
        .begin(1), .list(1, count: 3), .delete("c"), .list(1, count: 3), .aborted(1, ["a": 1]),
      ], end: ["a": 0, "c": -1]),
    Script(
      "a document that starts to match a query conflicts",
      [
        .begin(1), .query(1, of: 0, sees: ["a", "b", "c"]), .create("new", 0), .query(1, of: 0, sees: ["a", "b", "c"]),
        .aborted(1, ["a": 1]),
      ], end: ["a": 0, "new": 0]),
    Script(
      "a document that no longer matches a query conflicts",
      [
        .begin(1), .query(1, of: 0, sees: ["a", "b", "c"]), .set("b", 1), .aborted(1, ["a": 1]),
      ], end: ["a": 0, "b": 1]),
    Script(
      "a document that matches no query does not matter",
      [
        .begin(1), .query(1, of: 0, limit: 2, sees: ["a", "b"]), .query(1, of: 7, sees: []), .create("new", 5),
        .set("c", 5), .delete("new"), .commit(1, ["a": 1]),
      ], end: ["a": 1, "c": 5]),
    Script(
      "a count conflicts with a write that changes it",
      [
        .begin(1), .count(1, of: 0, sees: 3), .set("c", 1), .count(1, of: 0, sees: 3), .aborted(1, ["a": 1]),
      ], end: ["a": 0, "c": 1]),
    Script(
      "a count does not conflict with other documents",
      [
        .begin(1), .count(1, of: 0, sees: 3), .create("new", 1), .commit(1, ["a": 1]),
      ], end: ["a": 1, "new": 1]),
    Script(
      "of two transactions that count and add, one succeeds",
      [
        .begin(1), .begin(2), .count(1, of: 5, sees: 0), .count(2, of: 5, sees: 0), .commit(2, ["x": 5]),
        .aborted(1, ["y": 5]),
      ], end: ["x": 5, "y": -1]),
    Script(
      "transactions that only read do not conflict",
      [
        .begin(1), .begin(2), .read(1, ["a"], sees: [0]), .read(2, ["a"], sees: [0]), .commit(2, [:]),
        .commit(1, ["a": 1]),
      ], end: ["a": 1]),
  ]

  @Test(.timeLimit(.minutes(10)), arguments: scripts)
  func outcomeFollowsFromTheReads(script: Script) async throws {
    let port = try await Self.server.value.port
    let problems = try await onDedicatedThread { () -> [String] in
      var runner = ScriptRunner(
        session: RESTSession(port: port, database: TestDatabase(project: "outcomes-\(UUID().uuidString)")))
      return try runner.run(script)
    }
    #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
  }

  /// Counters under contention: each acknowledged increment counts, no other does, and always at least one client
  /// succeeds.
  @Test(.timeLimit(.minutes(10))) func contendedCountersAddUp() async throws {
    let port = try await Self.server.value.port
    let (outcomes, total) = try await onDedicatedThread { () -> ([(won: Int, lost: Int, problems: [String])], Int) in
      let database = TestDatabase(project: "counters")
      let session = RESTSession(port: port, database: database)
      try session.set("t/counter", ["n": ["integerValue": "0"]])
      let outcomes = onThreads(4) { client -> (won: Int, lost: Int, problems: [String]) in
        Self.increment(RESTSession(port: port, database: database), wins: 25)
      }
      let value = try session.get("t/counter").json["fields"]?["n"]?["integerValue"]?.stringValue
      return (outcomes, value.flatMap { Int($0) } ?? -1)
    }
    for outcome in outcomes {
      #expect(outcome.problems.isEmpty)
      #expect(outcome.won == 25)
    }
    #expect(total == 100)
    // Each successful commit can abort at most the three others in flight.
    #expect(outcomes.reduce(0) { $0 + $1.lost } <= 300)
  }

  private static func increment(_ session: RESTSession, wins: Int) -> (won: Int, lost: Int, problems: [String]) {
    var (won, lost, problems) = (0, 0, [String]())
    do {
      while won < wins, problems.isEmpty {
        let transaction = try session.begin()
        let counter = try session.batchGet(["t/counter"], transaction: transaction)["t/counter"] ?? nil
        let value = counter?["fields"]?["n"]?["integerValue"]?.stringValue.flatMap { Int($0) } ?? 0
        let start = ContinuousClock.now
        let reply = try session.commit(
          [session.update("t/counter", ["n": ["integerValue": .string("\(value + 1)")]])], transaction: transaction)
        if ContinuousClock.now - start > .seconds(15) { problems.append("a commit waited") }
        switch reply.status {
        case 200: won += 1
        case 409 where reply.errorStatus == "ABORTED": lost += 1
        default: problems.append("\(reply.status) \(reply.json.text)")
        }
      }
    } catch { problems.append("\(error)") }
    return (won, lost, problems)
  }

  private static let server = Task { try await onDedicatedThread { try HearthProcess.inMemory() } }
}

/// Runs a script on an empty database.
private struct ScriptRunner {
  let session: RESTSession
  private var transactions: [Int: String] = [:]
  private var problems: [String] = []

  init(session: RESTSession) { self.session = session }

  mutating func run(_ script: TransactionOutcomeTests.Script) throws -> [String] {
    for document in ["a", "b", "c"] { try session.set("t/\(document)", fields(0)) }
    for action in script.actions {
      let start = ContinuousClock.now
      if let problem = try run(action) { problems.append("\(action): \(problem)") }
      if ContinuousClock.now - start > .seconds(15) { problems.append("\(action): took more than 15 seconds") }
    }
    for (document, value) in script.end {
      let found = try number(of: session.get("t/\(document)"))
      if found != value { problems.append("\(document) ends as \(found), not \(value)") }
    }
    return problems
  }

  /// Runs an action. Returns a description of an unexpected response, or `nil`.
  private mutating func run(_ action: TransactionOutcomeTests.Action) throws -> String? {
    switch action {
    case .begin(let id): transactions[id] = try session.begin()
    case .beginReadOnly(let id): transactions[id] = try session.begin(["readOnly": [:]])
    case .read(let id, let documents, let sees):
      let found = try session.batchGet(documents.map { "t/\($0)" }, transaction: transactions[id])
      let values = documents.map { number($0, in: found) }
      if values != sees { return "saw \(values)" }
    case .get(let id, let document, let sees):
      let found = try number(of: session.get("t/\(document)", query: [("transaction", transactions[id] ?? "")]))
      if found != sees { return "saw \(found)" }
    case .list(let id, let count):
      let reply = try session.get("t", query: [("transaction", transactions[id] ?? "")])
      if reply.json["documents"]?.elements.count != count { return "\(reply.status) \(reply.json.text)" }
    case .query(let id, let value, let limit, let sees):
      let reply = try session.call("runQuery", request(id, value, limit: limit))
      let found = reply.json.elements.compactMap { $0["document"]?["name"]?.stringValue?.split(separator: "/").last }
      if found.map(String.init) != sees { return "\(reply.status) \(reply.json.text)" }
    case .count(let id, let value, let sees):
      let reply = try session.call("runAggregationQuery", request(id, value, isCount: true))
      let count = reply.json.elements.first?["result"]?["aggregateFields"]?["n"]?["integerValue"]?.stringValue
      if count != "\(sees)" { return "\(reply.status) \(reply.json.text)" }
    case .commit(let id, let values):
      let reply = try commit(id, values)
      if reply.status != 200 { return "\(reply.status) \(reply.json.text)" }
    case .aborted(let id, let values):
      let reply = try commit(id, values)
      if reply.status != 409 || reply.errorStatus != "ABORTED" { return "\(reply.status) \(reply.json.text)" }
      // An aborted transaction has ended. The next attempt names it.
      let again = try session.call(
        "beginTransaction", ["options": ["readWrite": ["retryTransaction": .string(transactions[id] ?? "")]]])
      if again.status != 200 { return "a retry got \(again.status) \(again.json.text)" }
    case .rollback(let id):
      let reply = try session.call("rollback", ["transaction": .string(transactions[id] ?? "")])
      if reply.status != 200 { return "\(reply.status) \(reply.json.text)" }
    case .set(let document, let value), .create(let document, let value):
      let reply = try session.set("t/\(document)", fields(value))
      if reply.status != 200 { return "\(reply.status) \(reply.json.text)" }
    case .delete(let document):
      let reply = try session.delete("t/\(document)")
      if reply.status != 200 { return "\(reply.status) \(reply.json.text)" }
    }
    return nil
  }

  private func request(_ id: Int, _ value: Int, limit: Int? = nil, isCount: Bool = false) -> JSONNode {
    var query: [JSONNode.Member] = [
      .init("from", [["collectionId": "t"]]),
      .init(
        "where",
        ["fieldFilter": ["field": ["fieldPath": "n"], "op": "EQUAL", "value": ["integerValue": .string("\(value)")]]]),
    ]
    if let limit { query.append(.init("limit", .number("\(limit)"))) }
    let transaction = JSONNode.string(transactions[id] ?? "")
    return isCount
      ? [
        "structuredAggregationQuery": [
          "structuredQuery": .object(query), "aggregations": [["alias": "n", "count": [:]]],
        ], "transaction": transaction,
      ] : ["structuredQuery": .object(query), "transaction": transaction]
  }

  private func commit(_ id: Int, _ values: [String: Int]) throws -> RESTSession.Reply {
    try session.commit(values.map { session.update("t/\($0.key)", fields($0.value)) }, transaction: transactions[id])
  }

  private func fields(_ value: Int) -> JSONNode { ["n": ["integerValue": .string("\(value)")]] }

  private func number(of reply: RESTSession.Reply) -> Int { number(of: reply.status == 200 ? reply.json : nil) }

  private func number(_ document: String, in found: [String: JSONNode?]) -> Int {
    number(of: found["t/\(document)"] ?? nil)
  }

  private func number(of document: JSONNode?) -> Int {
    document?["fields"]?["n"]?["integerValue"]?.stringValue.flatMap { Int($0) } ?? -1
  }
}
