import DatabaseService
import DocumentModel
import DocumentStore
import FixtureTree
import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

/// The cases of `rules/*.tests.json` for documents, sent to the server over HTTP. The official emulator decided each
/// one the same way, except pipelines, which it does not run.
@Suite struct RulesCaseTests {
  static let folder =
    URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/rules/"
  static let files =
    (try? FileManager.default.contentsOfDirectory(atPath: folder))?
    .filter { $0.hasSuffix(".tests.json") && !$0.hasSuffix(".storage.tests.json") }.sorted() ?? []

  @Test func caseFilesExist() { #expect(Self.files.count >= 5) }

  @Test(arguments: files)
  func serverDecidesEachCaseAsExpected(file: String) throws {
    let suite = try JSONNode(
      parsing: Array(try String(contentsOfFile: Self.folder + file, encoding: .utf8).utf8))
    let rules = try #require(suite["rules"]?.stringValue)
    let time = SteppedTime()
    let server = try TestServer { configuration in
      configuration.rules = [HearthConfiguration.RulesFile(Self.folder + rules)]
      configuration.clock = Clock { time.now }
      configuration.mapBytes = 16 << 20
    }
    let directory = try TemporaryDirectory()
    let tree = directory.path + "/documents.json"
    try (suite["documents"]?.text ?? "{}").write(toFile: tree, atomically: true, encoding: .utf8)
    let cases = suite["cases"]?.elements ?? []
    #expect(!cases.isEmpty)
    for (index, item) in cases.enumerated() {
      let text = try #require(item["time"]?.stringValue ?? suite["time"]?.stringValue)
      time.now = try #require(Timestamp(rfc3339: text.utf8)).microseconds
      // Each case has its own database, so that no case sees another's writes.
      let id = try #require(DatabaseID(project: "case-\(index)"))
      _ = try server.server.registry.database(id)?.load(ImportFiles([tree], database: id))
      let reply = try RulesCase(item, in: id).send(to: server)
      let isDenied = reply.status == 403
      #expect(
        isDenied == (item["expect"]?.stringValue == "deny"),
        "\(file): \(item["it"]?.stringValue ?? ""): \(reply.status) \(reply.text.prefix(300))")
      if isDenied {
        let message = reply.message
        #expect(message.contains(" @ L") || message == "No matching allow statements", "\(message)")
      } else {
        #expect(reply.status == 200 || (reply.status == 404 && item["get"] != nil), "\(reply.text.prefix(300))")
      }
    }
  }
}

/// One case as a request.
struct RulesCase {
  let item: JSONNode
  let root: String
  private let database: DatabaseID

  init(_ item: JSONNode, in id: DatabaseID) {
    self.item = item
    database = id
    root = id.documentsRoot
  }

  func send(to server: TestServer) throws -> TestServer.Response {
    let headers = try UnsignedToken.headers(item["as"] ?? .null)
    func post(_ verb: String, parent: String = "", _ body: JSONNode) throws -> TestServer.Response {
      try server.call("POST", encoded(parent) + verb, body.text, headers: headers)
    }
    if let path = item["get"]?.stringValue { return try server.call("GET", encoded(path), headers: headers) }
    for verb in ["list", "listGroup"] {
      guard let path = item[verb]?.stringValue else { continue }
      let segments = path.split(separator: "/").map(String.init)
      var query = item["query"].map(structured)?.members ?? []
      query.append(
        .init("from", [["collectionId": .string(segments.last ?? ""), "allDescendants": .bool(verb == "listGroup")]]))
      return try post(
        ":runQuery", parent: segments.dropLast().joined(separator: "/"), ["structuredQuery": .object(query)])
    }
    if let text = item["pipeline"]?.stringValue {
      let stages = try PipelineNotation.parse(Array(text.utf8), file: "", in: database)
      let body = try PipelineJSON.body(StructuredPipeline(stages))
      return try server.call(
        "POST", encoded("") + ":executePipeline", String(decoding: body, as: UTF8.self), headers: headers)
    }
    let writes = item["commit"]?.elements ?? [item]
    return try post(":commit", ["writes": .array(try writes.map(write))])
  }

  private func encoded(_ path: String) -> String {
    let allowed = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-_/"))
    return "/v1/" + root
      + (path.isEmpty ? "" : "/" + (path.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""))
  }

  private func write(_ item: JSONNode) throws -> JSONNode {
    if let path = item["delete"]?.stringValue { return ["delete": .string(root + "/" + path)] }
    let data = item["data"]?.members ?? []
    func update(_ path: String, _ rest: (String, JSONNode)...) -> JSONNode {
      let fields = JSONNode.object(data.map { .init($0.name, value($0.value)) })
      let document: JSONNode = ["name": .string(root + "/" + path), "fields": fields]
      return .object([.init("update", document)] + rest.map { .init($0.0, $0.1) })
    }
    if let path = item["set"]?.stringValue { return update(path) }
    if let path = item["create"]?.stringValue { return update(path, ("currentDocument", ["exists": false])) }
    let path = try #require(item["update"]?.stringValue)
    let mask = JSONNode.array(data.map { .string(FieldPath(field: $0.name).text) })
    return update(path, ("updateMask", ["fieldPaths": mask]), ("currentDocument", ["exists": true]))
  }

  private func structured(_ query: JSONNode) -> JSONNode {
    var members: [JSONNode.Member] = []
    let names = [
      "==": "EQUAL", "<": "LESS_THAN", "<=": "LESS_THAN_OR_EQUAL", ">": "GREATER_THAN", ">=": "GREATER_THAN_OR_EQUAL",
      "in": "IN", "array-contains": "ARRAY_CONTAINS", "array-contains-any": "ARRAY_CONTAINS_ANY",
    ]
    let filters: [JSONNode] = (query["where"]?.elements ?? []).map { condition in
      let parts = condition.elements
      return [
        "fieldFilter": [
          "field": ["fieldPath": parts[0]], "op": .string(names[parts[1].stringValue ?? ""] ?? "?"),
          "value": value(parts[2]),
        ]
      ]
    }
    if !filters.isEmpty {
      members.append(.init("where", ["compositeFilter": ["op": "AND", "filters": .array(filters)]]))
    }
    let orders: [JSONNode] = (query["orderBy"]?.elements ?? []).map { order in
      let words = (order.stringValue ?? "").split(separator: " ").map(String.init)
      return [
        "field": ["fieldPath": .string(words[0])],
        "direction": words.dropFirst().first == "desc" ? "DESCENDING" : "ASCENDING",
      ]
    }
    if !orders.isEmpty { members.append(.init("orderBy", .array(orders))) }
    if let limit = query["limit"] { members.append(.init("limit", limit)) }
    return .object(members)
  }

  /// Converts a value of a fixture tree to a value of the API.
  private func value(_ node: JSONNode) -> JSONNode {
    switch node {
    case .null: return ["nullValue": .null]
    case .bool: return ["booleanValue": node]
    case .number(let text): return Int64(text) == nil ? ["doubleValue": node] : ["integerValue": .string(text)]
    case .string: return ["stringValue": node]
    case .array(let elements): return ["arrayValue": ["values": .array(elements.map(value))]]
    case .object(let members):
      switch members.first?.name {
      case "$timestamp": return ["timestampValue": members[0].value]
      case "$double": return ["doubleValue": members[0].value]
      case "$ref": return ["referenceValue": .string(root + "/" + (members[0].value.stringValue ?? ""))]
      case "$bytes": return ["bytesValue": members[0].value]
      case "$geo":
        let place = members[0].value.elements
        return ["geoPointValue": ["latitude": place[0], "longitude": place[1]]]
      default: return ["mapValue": ["fields": .object(members.map { .init($0.name, value($0.value)) })]]
      }
    }
  }
}

/// Unsigned tokens, which emulators accept.
enum UnsignedToken {
  /// The headers of a request by a user: none for `null`, otherwise by a uid or `{"uid", "token"}` with more claims.
  static func headers(_ user: JSONNode) throws -> [(String, String)] {
    if case .null = user { return [] }
    let uid = user.stringValue ?? user["uid"]?.stringValue
    let claims = [JSONNode.Member("sub", .string(try #require(uid)))] + (user["token"]?.members ?? [])
    return [("authorization", "Bearer " + make(JSONNode.object(claims).text))]
  }

  /// A token with a payload and no signature.
  static func make(_ payload: String) -> String {
    let payload = Data(payload.utf8).base64EncodedString().replacingOccurrences(of: "+", with: "-")
      .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    return "eyJhbGciOiJub25lIn0.\(payload)."
  }
}
