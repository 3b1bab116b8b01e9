import DocumentModel
import TestSupport
import WireFormat

/// A client of the official emulator, for comparing decisions.
struct RulesOracle {
  private let client: TestHTTPClient
  private let project: String

  init(port: UInt16, project: String) {
    client = TestHTTPClient(port: port, timeoutSeconds: 60)
    self.project = project
  }

  private var documents: String { "/v1/projects/\(project)/databases/(default)/documents" }
  private var admin: [(String, String)] { [("Authorization", "Bearer owner"), ("Content-Type", "application/json")] }

  func put(_ path: String, fields: String) throws {
    _ = try client.send("PATCH", "\(documents)/\(path)", headers: admin, body: Array("{\"fields\":\(fields)}".utf8))
  }

  /// Loads rules. Returns the emulator's message if they do not compile.
  func load(_ rules: String) throws -> String? {
    let content = JSONNode.string(rules).text
    let response = try client.send(
      "PUT", "/emulator/v1/projects/\(project):securityRules", headers: [("Content-Type", "application/json")],
      body: Array("{\"rules\":{\"files\":[{\"content\":\(content)}]}}".utf8))
    if response.status == 200 { return nil }
    return (try? JSONNode(parsing: response.body))?["error"]?["message"]?.stringValue ?? response.text
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
    case .map(let fields):
      "{\"mapValue\":{\"fields\":{"
        + fields.entries.map { "\(JSONNode.string($0.key).text):\(json($0.value))" }.joined(separator: ",") + "}}}"
    case .array(let items): "{\"arrayValue\":{\"values\":[\(items.map(json).joined(separator: ","))]}}"
    default: "{\"nullValue\":null}"
    }
  }

  /// Returns the last value of every expression in the coverage report, by the offsets of its start and end.
  func coverage() throws -> [Int: [(end: Int, value: JSONNode)]] {
    let response = try client.send("GET", "/emulator/v1/projects/\(project):ruleCoverage")
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
    for node in try JSONNode(parsing: response.body)["report"]?.elements ?? [] { walk(node) }
    return found
  }
}
