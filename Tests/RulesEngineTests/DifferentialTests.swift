import DocumentModel
import Foundation
import RulesEngine
import TestSupport
import Testing
import WireFormat

/// The official emulator as an oracle of rules.
struct RulesOracle {
  private let client: HTTPClient
  private let project: String

  init(port: UInt16, project: String) {
    client = HTTPClient(port: port, timeoutSeconds: 60)
    self.project = project
  }

  private var documents: String { "/v1/projects/\(project)/databases/(default)/documents" }
  private var admin: [(String, String)] { [("Authorization", "Bearer owner"), ("Content-Type", "application/json")] }

  func put(_ path: String, fields: String) throws {
    _ = try client.send("PATCH", "\(documents)/\(path)", headers: admin, body: Array("{\"fields\":\(fields)}".utf8))
  }

  /// Loads rules; returns the error's message where they do not compile.
  func load(_ rules: String) throws -> String? {
    let content = JSONNode.string(rules).text
    let answer = try client.send(
      "PUT", "/emulator/v1/projects/\(project):securityRules", headers: [("Content-Type", "application/json")],
      body: Array("{\"rules\":{\"files\":[{\"content\":\(content)}]}}".utf8))
    if answer.status == 200 { return nil }
    return (try? JSONNode(parsing: answer.body))?["error"]?["message"]?.stringValue ?? answer.text
  }

  func get(_ path: String) throws -> Int { try client.send("GET", "\(documents)/\(path)").status }

  /// Runs a query and returns the status.
  func runQuery(_ collection: String, _ filter: QueryFilter?) throws -> Int {
    let filterText = filter.map { ",\"where\":\(Self.json($0))" } ?? ""
    let body = "{\"structuredQuery\":{\"from\":[{\"collectionId\":\"\(collection)\"}]\(filterText)}}"
    return try client.send(
      "POST", "\(documents):runQuery", headers: [("Content-Type", "application/json")], body: Array(body.utf8)
    ).status
  }

  private static func json(_ filter: QueryFilter) -> String {
    switch filter {
    case .field(let path, let operation, let value):
      let names: [FieldOperator: String] = [
        .equal: "EQUAL", .notEqual: "NOT_EQUAL", .lessThan: "LESS_THAN", .lessThanOrEqual: "LESS_THAN_OR_EQUAL",
        .greaterThan: "GREATER_THAN", .greaterThanOrEqual: "GREATER_THAN_OR_EQUAL", .arrayContains: "ARRAY_CONTAINS",
        .in: "IN", .arrayContainsAny: "ARRAY_CONTAINS_ANY", .notIn: "NOT_IN",
      ]
      return "{\"fieldFilter\":{\"field\":{\"fieldPath\":\"\(path.text)\"},\"op\":\"\(names[operation] ?? "")\","
        + "\"value\":\(json(value))}}"
    case .unary(let path, let operation):
      let name = operation == .isNull ? "IS_NULL" : operation == .isNotNull ? "IS_NOT_NULL" : "IS_NAN"
      return "{\"unaryFilter\":{\"field\":{\"fieldPath\":\"\(path.text)\"},\"op\":\"\(name)\"}}"
    case .and(let filters):
      return "{\"compositeFilter\":{\"op\":\"AND\",\"filters\":[\(filters.map(json).joined(separator: ","))]}}"
    case .or(let filters):
      return "{\"compositeFilter\":{\"op\":\"OR\",\"filters\":[\(filters.map(json).joined(separator: ","))]}}"
    }
  }

  private static func json(_ value: Value) -> String {
    switch value {
    case .boolean(let flag): "{\"booleanValue\":\(flag)}"
    case .integer(let number): "{\"integerValue\":\"\(number)\"}"
    case .double(let number): "{\"doubleValue\":\(number.isNaN ? "\"NaN\"" : String(number))}"
    case .string(let text): "{\"stringValue\":\(JSONNode.string(text).text)}"
    case .array(let items): "{\"arrayValue\":{\"values\":[\(items.map(json).joined(separator: ","))]}}"
    default: "{\"nullValue\":null}"
    }
  }

  /// The last value of every expression that the coverage report knows, by the offset of its start and its end.
  func coverage() throws -> [Int: [(end: Int, value: JSONNode)]] {
    let answer = try client.send("GET", "/emulator/v1/projects/\(project):ruleCoverage")
    var found: [Int: [(end: Int, value: JSONNode)]] = [:]
    func walk(_ node: JSONNode) {
      if let start = node["sourcePosition"]?["currentOffset"]?.integerValue,
        let end = node["sourcePosition"]?["endOffset"]?.integerValue,
        let value = node["values"]?.elements.last?["value"]
      {
        found[start, default: []].append((end, value))
      }
      for child in node["children"]?.elements ?? [] { walk(child) }
    }
    for node in try JSONNode(parsing: answer.body)["report"]?.elements ?? [] { walk(node) }
    return found
  }
}

/// Random expressions against the official emulator, where it is installed.
@Suite(.enabled(if: EmulatorProcess.isInstalled)) struct DifferentialTests {
  // Sorted by name: the emulator keeps the order of the request, we keep fields sorted.
  static let fields = """
    {"a":{"integerValue":"1"},"b":{"bytesValue":"aGVsbG8="},"f":{"doubleValue":1.5},\
    "g":{"geoPointValue":{"latitude":10.5,"longitude":-20.25}},\
    "l":{"arrayValue":{"values":[{"integerValue":"1"},{"stringValue":"z"}]}},\
    "m":{"mapValue":{"fields":{"k":{"integerValue":"5"}}}},"n":{"nullValue":null},\
    "r":{"referenceValue":"projects/p/databases/(default)/documents/t/y"},"s":{"stringValue":"str"},\
    "t":{"timestampValue":"2020-02-29T12:34:56.789123Z"}}
    """

  private static let batch = 40

  @Test func expressionsAgree() throws {
    let emulator = try EmulatorProcess()
    defer { emulator.process.stop() }
    let oracle = RulesOracle(port: emulator.port, project: "p")
    for index in 0..<Self.batch { try oracle.put("t\(index)/x", fields: Self.fields) }
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["RULES_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 1..<1_000_000)
    var remaining = environment["RULES_EXPRESSIONS"].flatMap(Int.init) ?? 400
    var generator = ExpressionGenerator(seed: seed)
    while remaining > 0 {
      // What we refuse to compile is tried alone, lest it spoil the batch.
      var batch: [String] = []
      while batch.count < Self.batch {
        let expression = generator.next()
        remaining -= 1
        if (try? Ruleset(compiling: RulesFixture.rules("debug(\(expression))"))) != nil {
          batch.append(expression)
        } else {
          let refused = try oracle.load(RulesFixture.rules("debug(\(expression))")) != nil
          #expect(refused, "only we refuse \(expression), seed \(seed)")
        }
      }
      try compare(batch, oracle, seed: seed)
    }
  }

  private func compare(_ batch: [String], _ oracle: RulesOracle, seed: UInt64) throws {
    var rules = "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
    var offsets: [Int] = []
    for (index, expression) in batch.enumerated() {
      rules += "match /t\(index)/{id} { allow get: if "
      offsets.append(rules.unicodeScalars.count)
      rules += "debug(\(expression)\n); }\n"
    }
    rules += "} }"
    if try oracle.load(rules) != nil {
      for expression in batch {
        let error = try oracle.load(RulesFixture.rules("debug(\(expression))"))
        // Now and then the engine's checker of types crashes.
        if error?.contains("\"code\":500") == true { continue }
        #expect(error == nil, "only the engine refuses \(expression), seed \(seed)")
      }
      return
    }
    var statuses: [Int] = []
    for index in batch.indices { statuses.append(try oracle.get("t\(index)/x")) }
    let coverage = try oracle.coverage()
    let ours = try Ruleset(compiling: rules)
    for (index, expression) in batch.enumerated() {
      var request = RulesFixture.request
      request.path = RulesFixture.path("t\(index)/x")
      let documents = Documents()
      let decision = ours.decide(request, lookups: DocumentLookups(documents), explaining: .trace)
      let text = decision.trace.last?.value ?? "nothing"
      // The engine fails on the request as a whole where a replacement names a group that is not there.
      guard statuses[index] != 500 else {
        #expect(text.contains("undefined"), "\(expression): \(text), the engine crashes, seed \(seed)")
        continue
      }
      let theirs = coverage[offsets[index]]?.max { $0.end < $1.end }?.value
      #expect(
        Self.same(text, theirs), "\(expression): \(text), not \(theirs?.text ?? "nothing"), seed \(seed)")
      #expect(decision.isAllowed == (statuses[index] == 200), "\(expression), seed \(seed)")
    }
  }

  /// In emulator mode we allow the queries that the emulator allows.
  @Test func queriesAgree() throws {
    let emulator = try EmulatorProcess()
    defer { emulator.process.stop() }
    let oracle = RulesOracle(port: emulator.port, project: "p")
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["RULES_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 1..<1_000_000)
    var remaining = environment["RULES_QUERIES"].flatMap(Int.init) ?? 400
    var generator = QueryGenerator(seed: seed)
    var disagreements = 0
    let limit = 1 + remaining / 100
    while remaining > 0 {
      let conditions = (0..<Self.batch).map { _ in generator.condition() }
      let blocks = conditions.enumerated().map { "match /t\($0.offset)/{id} { allow list: if \($0.element); }" }
      let rules =
        "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
        + blocks.joined(separator: "\n") + "\n} }"
      if let message = try oracle.load(rules) {
        Issue.record("\(message), seed \(seed)")
        return
      }
      let ours = try Ruleset(compiling: rules)
      for (index, condition) in conditions.enumerated() {
        remaining -= 1
        var request = RulesRequest(.list, RulesFixture.path("t\(index)"), time: RulesFixture.time)
        var query = Query(collectionID: "t\(index)")
        query.filter = generator.filter()
        request.query = query
        let status = try oracle.runQuery("t\(index)", query.filter)
        // Some filters are refused before rules are asked.
        guard status == 200 || status == 403 else { continue }
        let isAllowed = ours.decide(request, mode: .emulator).isAllowed
        if isAllowed != (status == 200) { disagreements += 1 }
        // Of filters that contradict each other we conclude less; more would be wrong.
        #expect(
          !isAllowed || status == 200,
          "\(condition) for \(String(describing: query.filter)): only we allow it, seed \(seed)")
        if ours.decide(request, mode: .sound).isAllowed {
          #expect(status == 200, "\(condition) for \(String(describing: query.filter)): only we prove it, seed \(seed)")
        }
      }
    }
    #expect(disagreements <= limit, "\(disagreements) queries are judged differently, seed \(seed)")
  }

  private static func same(_ ours: String, _ theirs: JSONNode?) -> Bool {
    guard let theirs, let node = try? JSONNode(parsing: Array(ours.utf8)) else { return false }
    if let failure = theirs["undefined"] {
      guard let message = node["undefined"]?["causeMessage"]?.stringValue else { return false }
      // A crash of the engine has no cause.
      guard let cause = failure["causeMessage"]?.stringValue else { return true }
      // Messages that quote values in the engine's own way are compared by their start.
      return message == cause || message.prefix(12) == cause.prefix(12)
    }
    return node.isSameValue(as: theirs)
  }
}
