import Foundation
import TestSupport

/// The response to a request, as a plain client sees it.
struct Reply: Sendable {
  let status: Int
  let json: JSONNode
  var etag: String?

  /// The name of the error's code, even if a streaming method wraps the error in an array.
  var errorStatus: String? { error?["status"]?.stringValue }
  var errorMessage: String? { error?["message"]?.stringValue }
  private var error: JSONNode? { json["error"] ?? json.elements.first?["error"] }

  /// The plain fields of a response with one document.
  var fields: JSONNode { json["fields"]?.plainFields ?? [:] }

  /// The documents of a list or a query.
  var documents: [Document] {
    (json["documents"]?.elements ?? json.elements.compactMap { $0["document"] }).map(Document.init)
  }

  /// The ID of a response with one document.
  var id: String { Document(json).id }

  var updateTime: String { json["updateTime"]?.stringValue ?? "" }

  /// The results of an aggregation, by their aliases.
  var aggregates: JSONNode {
    json.elements.first { $0["result"] != nil }?["result"]?["aggregateFields"]?.plainFields ?? [:]
  }
}

/// A document of a response.
struct Document: Sendable {
  /// The path below the root, such as `users/ann`.
  let path: String
  let fields: JSONNode
  let updateTime: String
  var id: String { path.split(separator: "/").last.map(String.init) ?? "" }

  init(_ json: JSONNode) {
    path = (json["name"]?.stringValue ?? "").split(separator: "/").dropFirst(5).joined(separator: "/")
    fields = json["fields"]?.plainFields ?? [:]
    updateTime = json["updateTime"]?.stringValue ?? ""
  }

  subscript(field: String) -> JSONNode? { fields[field] }
}

/// A plain client of one person: JSON over HTTP, with the ID token of a sign-in. Fields have the form of a fixture
/// tree.
///
/// Use it on one thread, like its connection.
final class Person {
  /// Empty for an unauthenticated caller.
  let uid: String
  let idToken: String
  let refreshToken: String
  let database: TestDatabase
  let port: UInt16
  private let client: TestHTTPClient

  /// An unauthenticated caller.
  init(of scenario: Scenario) {
    (uid, idToken, refreshToken) = ("", "", "")
    (database, port) = (scenario.database, scenario.server.port)
    client = TestHTTPClient(port: port)
  }

  /// Signs in or up with a request to the accounts service.
  init(of scenario: Scenario, call: String, _ body: JSONNode) throws {
    (database, port) = (scenario.database, scenario.server.port)
    client = TestHTTPClient(port: port)
    let members = body.members + [JSONNode.Member("returnSecureToken", true)]
    let response = try client.send(
      "POST", "/v1/accounts:\(call)?key=any", headers: [("Content-Type", "application/json")],
      body: Array(JSONNode.object(members).text.utf8))
    let answer = try JSONNode(parsing: response.body)
    guard let token = answer["idToken"]?.stringValue else {
      throw ServerProcessError(description: "accounts:\(call): \(response.status) \(answer.text)")
    }
    idToken = token
    uid = answer["localId"]?.stringValue ?? ""
    refreshToken = answer["refreshToken"]?.stringValue ?? ""
  }

  /// The headers of this person's requests.
  var headers: [(String, String)] {
    [("Content-Type", "application/json")] + (idToken.isEmpty ? [] : [("Authorization", "Bearer \(idToken)")])
  }

  /// Sends a request. `target` must be escaped.
  func send(
    _ method: String, _ target: String, _ body: JSONNode? = nil, headers more: [(String, String)] = []
  ) throws -> Reply {
    let response = try client.send(method, target, headers: headers + more, body: body.map { Array($0.text.utf8) })
    let isJSON = response.header("content-type")?.hasPrefix("application/json") == true && !response.body.isEmpty
    return Reply(
      status: response.status, json: isJSON ? try JSONNode(parsing: response.body) : .null,
      etag: response.header("etag"))
  }

  /// Sends a request to the accounts service, which expects a user's token in the body.
  func account(_ call: String, _ body: JSONNode) throws -> Reply {
    let response = try client.send(
      "POST", "/v1/accounts:\(call)?key=any", headers: [("Content-Type", "application/json")],
      body: Array(body.text.utf8))
    return Reply(status: response.status, json: try JSONNode(parsing: response.body))
  }

  // MARK: Documents

  func get(_ path: String, ifNoneMatch etag: String? = nil) throws -> Reply {
    try send("GET", database.url(path), headers: etag.map { [("If-None-Match", $0)] } ?? [])
  }

  /// One page of a collection, of 300 documents unless `query` sets a size.
  func list(_ path: String, _ query: [(String, String)] = [], ifNoneMatch etag: String? = nil) throws -> Reply {
    try send("GET", database.url(path) + queryString(query), headers: etag.map { [("If-None-Match", $0)] } ?? [])
  }

  /// Creates a document. If `id` is `nil`, the server generates one.
  func create(_ collection: String, id: String? = nil, _ fields: JSONNode) throws -> Reply {
    let query = queryString(id.map { [("documentId", $0)] } ?? [])
    return try send("POST", database.url(collection) + query, ["fields": fields.typedFields(in: database)])
  }

  /// Replaces or creates a document.
  func set(_ path: String, _ fields: JSONNode) throws -> Reply {
    try send("PATCH", database.url(path), ["fields": fields.typedFields(in: database)])
  }

  /// Changes the given top-level fields of an existing document. If `time` is given, it must be the document's update
  /// time.
  func update(_ path: String, _ fields: JSONNode, ifUpdatedAt time: String? = nil) throws -> Reply {
    var query = fields.members.map { ("updateMask.fieldPaths", "`\($0.name)`") }
    query.append(time.map { ("currentDocument.updateTime", $0) } ?? ("currentDocument.exists", "true"))
    return try send("PATCH", database.url(path) + queryString(query), ["fields": fields.typedFields(in: database)])
  }

  func delete(_ path: String) throws -> Reply { try send("DELETE", database.url(path)) }

  // MARK: Commits, queries

  /// Commits writes, all or none.
  func commit(_ writes: [AppWrite]) throws -> Reply {
    try send("POST", database.url("", verb: "commit"), ["writes": .array(writes.map { $0.json(in: database) })])
  }

  func find(_ query: AppQuery) throws -> Reply {
    try send("POST", database.url(query.parent, verb: "runQuery"), ["structuredQuery": query.json(in: database)])
  }

  /// Aggregates the results of a query: `["days": .count, "km": .sum("metrics.Distance")]`.
  func aggregate(_ query: AppQuery, _ aggregations: [(String, Aggregation)]) throws -> Reply {
    let list = aggregations.map { alias, aggregation -> JSONNode in
      .object([.init("alias", .string(alias)), .init(aggregation.name, aggregation.json)])
    }
    let body: JSONNode = ["structuredQuery": query.json(in: database), "aggregations": .array(list)]
    return try send(
      "POST", database.url(query.parent, verb: "runAggregationQuery"), ["structuredAggregationQuery": body])
  }

  // MARK: Live

  /// Follows a document or a collection.
  func follow(_ path: String, resumingAt token: String? = nil) throws -> LiveScreen {
    try LiveScreen(self, "GET", database.url(path, verb: "listen"), nil, resumingAt: token)
  }

  /// Follows a query.
  func follow(_ query: AppQuery, resumingAt token: String? = nil) throws -> LiveScreen {
    let body: JSONNode = ["structuredQuery": query.json(in: database)]
    return try LiveScreen(self, "POST", database.url(query.parent, verb: "listen"), body, resumingAt: token)
  }
}

/// An aggregation over the results of a query.
enum Aggregation {
  case count
  case sum(String)
  case average(String)

  var name: String {
    switch self {
    case .count: "count"
    case .sum: "sum"
    case .average: "avg"
    }
  }

  var json: JSONNode {
    switch self {
    case .count: [:]
    case .sum(let field), .average(let field): ["field": ["fieldPath": .string(field)]]
    }
  }
}
