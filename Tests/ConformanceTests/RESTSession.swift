import Foundation
import TestSupport

/// A session of simple requests on one database of one server, for tests that inspect responses themselves.
///
/// Use it on one thread, like its connection.
struct RESTSession {
  struct Reply: Sendable {
    let status: Int
    let json: JSONNode

    /// The name of the error's code, even if a streaming method wraps the error in an array.
    var errorStatus: String? { error?["status"]?.stringValue }
    var errorMessage: String? { error?["message"]?.stringValue }
    private var error: JSONNode? { json["error"] ?? json.elements.first?["error"] }
  }

  let database: TestDatabase
  private let client: TestHTTPClient

  init(port: UInt16, database: TestDatabase, timeoutSeconds: Int = 10) {
    self.database = database
    client = TestHTTPClient(port: port, timeoutSeconds: timeoutSeconds)
  }

  /// Sends a request as the administrator. The body is null if the response is not JSON.
  func send(_ method: String, _ target: String, _ body: JSONNode? = nil) throws -> Reply {
    let bytes = body.map { Array($0.text.utf8) } ?? (method == "GET" || method == "DELETE" ? nil : [])
    let response = try client.send(
      method, target, headers: [("Authorization", "Bearer owner"), ("Content-Type", "application/json")], body: bytes)
    let isJSON = response.header("content-type")?.hasPrefix("application/json") == true
    return Reply(status: response.status, json: isJSON ? try JSONNode(parsing: response.body) : .null)
  }

  func get(_ path: String, query: [(String, String)] = []) throws -> Reply {
    try send("GET", database.url(path) + queryString(query))
  }

  /// Replaces a document.
  @discardableResult
  func set(_ path: String, _ fields: JSONNode) throws -> Reply {
    try send("PATCH", database.url(path), ["fields": fields])
  }

  @discardableResult
  func delete(_ path: String) throws -> Reply { try send("DELETE", database.url(path)) }

  func call(_ verb: String, _ body: JSONNode, on path: String = "") throws -> Reply {
    try send("POST", database.url(path, verb: verb), body)
  }

  func begin(_ options: JSONNode = [:]) throws -> String {
    try call("beginTransaction", ["options": options]).json["transaction"]?.stringValue ?? ""
  }

  func commit(_ writes: [JSONNode], transaction: String? = nil) throws -> Reply {
    var body: [JSONNode.Member] = [.init("writes", .array(writes))]
    if let transaction { body.append(.init("transaction", .string(transaction))) }
    return try call("commit", .object(body))
  }

  /// The documents of `paths` by their path, `nil` if missing.
  func batchGet(_ paths: [String], transaction: String? = nil) throws -> [String: JSONNode?] {
    var body: [JSONNode.Member] = [.init("documents", .array(paths.map { .string(database.name($0)) }))]
    if let transaction { body.append(.init("transaction", .string(transaction))) }
    let reply = try call("batchGet", .object(body))
    guard reply.status == 200 else { throw UnexpectedResponse(reply: reply) }
    var found: [String: JSONNode?] = [:]
    for element in reply.json.elements {
      let name = element["found"]?["name"]?.stringValue ?? element["missing"]?.stringValue
      if let name { found[String(name.dropFirst(database.root.count + 1))] = .some(element["found"]) }
    }
    return found
  }

  /// All documents of a collection.
  func list(_ path: String) throws -> [JSONNode] {
    var documents: [JSONNode] = []
    var token: String?
    repeat {
      let reply = try get(path, query: [("pageSize", "300")] + (token.map { [("pageToken", $0)] } ?? []))
      guard reply.status == 200 else { throw UnexpectedResponse(reply: reply) }
      documents += reply.json["documents"]?.elements ?? []
      token = reply.json["nextPageToken"]?.stringValue
    } while token != nil
    return documents
  }

  /// A write that replaces a document.
  func update(_ path: String, _ fields: JSONNode) -> JSONNode {
    ["update": ["name": .string(database.name(path)), "fields": fields]]
  }
}

struct UnexpectedResponse: Error, CustomStringConvertible {
  let reply: RESTSession.Reply
  var description: String { "unexpected response \(reply.status) \(reply.json.text)" }
}
