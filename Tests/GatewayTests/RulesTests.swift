import DatabaseService
import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

/// The decision of rules for each call, over REST and gRPC, for two users, an unauthenticated caller, and an
/// administrator.
@Suite struct RulesTests {
  static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /notes/{id} {
          allow read: if request.auth != null && resource.data.owner == request.auth.uid;
          allow create: if request.resource.data.owner == request.auth.uid;
          allow update: if resource.data.owner == request.auth.uid && request.resource.data.owner == request.auth.uid;
          allow delete: if resource.data.owner == request.auth.uid;
        }
        match /public/{id} { allow read; }
        match /short/{id} { allow list: if request.query.limit <= 2; }
        match /stamped/{id} { allow write: if request.resource.data.at == request.time; }
        match /halves/{id} {
          allow write: if existsAfter(/databases/$(database)/documents/halves/$(request.resource.data.other));
        }
        match /counters/{id} {
          allow update: if request.resource.data.n == resource.data.n + 1 && request.writeFields == ['n'];
        }
        match /transactional/{id} { allow read, write: if request.inTransaction; }
        match /closed/{id} { allow write: if get(/databases/$(database)/documents/gates/g).data.open == true; }
      }
    }
    """

  static func server(_ change: (inout HearthConfiguration) -> Void = { _ in }) throws -> (
    TestServer, TemporaryDirectory
  ) {
    let directory = try TemporaryDirectory()
    try rules.write(toFile: directory.path + "/firestore.rules", atomically: true, encoding: .utf8)
    let server = try TestServer { configuration in
      configuration.rules = [HearthConfiguration.RulesFile(directory.path + "/firestore.rules")]
      configuration.mapBytes = 16 << 20
      change(&configuration)
    }
    return (server, directory)
  }

  /// The callers of a table's columns.
  static let callers: [(name: String, headers: [(String, String)])] = [
    ("ann", [("authorization", "Bearer \(UnsignedToken.make(#"{"sub":"ann"}"#))")]),
    ("ben", [("authorization", "Bearer \(UnsignedToken.make(#"{"sub":"ben"}"#))")]),
    ("nobody", []),
    ("admin", [("authorization", "bearer owner")]),
  ]

  static let seed = """
    {"writes": [
      {"update": {"name": "ROOT/notes/a", "fields": {"owner": {"stringValue": "ann"}, "text": {"stringValue": "x"}}}},
      {"update": {"name": "ROOT/notes/b", "fields": {"owner": {"stringValue": "ben"}}}},
      {"update": {"name": "ROOT/public/x", "fields": {}}}, {"update": {"name": "ROOT/short/x", "fields": {}}},
      {"update": {"name": "ROOT/counters/c", "fields": {"n": {"integerValue": "1"}}}}
    ]}
    """

  struct Case: CustomTestStringConvertible, Sendable {
    var name: String
    var request: String
    var body: String?
    /// The status for each caller.
    var statuses: [Int]
    var testDescription: String { name }

    init(_ name: String, _ request: String, _ body: String? = nil, _ statuses: Int...) {
      self.name = name
      self.request = request
      self.body = body
      self.statuses = statuses
    }
  }

  static func owner(_ name: String) -> String { #"{"fields": {"owner": {"stringValue": "\#(name)"}}}"# }

  static func update(_ path: String, _ owner: String) -> String {
    #"{"update": {"name": "ROOT/\#(path)", "fields": {"owner": {"stringValue": "\#(owner)"}}}}"#
  }

  static func half(_ path: String, of other: String) -> String {
    #"{"update": {"name": "ROOT/halves/\#(path)", "fields": {"other": {"stringValue": "\#(other)"}}}}"#
  }

  static func query(_ collection: String, _ rest: String = "") -> String {
    #"{"structuredQuery": {"from": [{"collectionId": "\#(collection)"}]\#(rest)}}"#
  }

  static let isAnns = #"""
    , "where": {"fieldFilter": {"field": {"fieldPath": "owner"}, "op": "EQUAL", "value": {"stringValue": "ann"}}}
    """#

  static let cases: [Case] = [
    Case("get", "GET /notes/a", nil, 200, 403, 403, 200),
    Case("get a missing document", "GET /notes/none", nil, 403, 403, 403, 404),
    Case("get a missing public document", "GET /public/none", nil, 404, 404, 404, 404),
    Case("get without a matching rule", "GET /other/x", nil, 403, 403, 403, 404),
    Case("batchGet", "POST :batchGet", #"{"documents": ["ROOT/notes/a", "ROOT/public/x"]}"#, 200, 403, 403, 200),
    Case(
      "batchGet, one denied", "POST :batchGet", #"{"documents": ["ROOT/notes/a", "ROOT/notes/b"]}"#, 403, 403, 403, 200),
    Case("list", "GET /notes", nil, 403, 403, 403, 200),
    Case("list, public", "GET /public", nil, 200, 200, 200, 200),
    Case("list with missing documents", "GET /public?showMissing=true", nil, 403, 403, 403, 200),
    Case("list, a page that is short enough", "GET /short?pageSize=2", nil, 200, 200, 200, 200),
    Case("list, a page that is too long", "GET /short?pageSize=3", nil, 403, 403, 403, 200),
    Case("query with proof", "POST :runQuery", query("notes", isAnns), 200, 403, 403, 200),
    Case("query without", "POST :runQuery", query("notes"), 403, 403, 403, 200),
    Case("query with limit", "POST :runQuery", query("short", #", "limit": 2"#), 200, 200, 200, 200),
    Case("query without limit", "POST :runQuery", query("short"), 403, 403, 403, 200),
    Case(
      "query of all collections", "POST :runQuery", #"{"structuredQuery": {"from": [{"allDescendants": true}]}}"#,
      403, 403, 403, 200),
    Case(
      "query in a new transaction", "POST :runQuery",
      query("notes", isAnns).dropLast() + #", "newTransaction": {"readWrite": {}}}"#, 200, 403, 403, 200),
    Case(
      "count with proof", "POST :runAggregationQuery",
      #"{"structuredAggregationQuery": \#(query("notes", isAnns).dropLast()), "aggregations": [{"alias": "n", "count": {}}]}}"#,
      200, 403, 403, 200),
    Case(
      "count without", "POST :runAggregationQuery",
      #"{"structuredAggregationQuery": \#(query("notes").dropLast()), "aggregations": [{"alias": "n", "count": {}}]}}"#,
      403, 403, 403, 200),
    Case(
      "partitions", "POST :partitionQuery",
      #"""
      {"structuredQuery": {"from": [{"collectionId": "notes", "allDescendants": true}], "orderBy": [{"field": {"fieldPath":
      "__name__"}}]}, "partitionCount": 2}
      """#, 403, 403, 403, 200),
    Case("collection ids", "POST :listCollectionIds", "{}", 403, 403, 403, 200),
    Case("begin a transaction", "POST :beginTransaction", "{}", 200, 200, 200, 200),
    Case("create", "POST /notes?documentId=new", owner("ann"), 200, 403, 403, 200),
    Case("create an existing document", "POST /notes?documentId=a", owner("ann"), 409, 403, 403, 409),
    Case("create without a matching rule", "POST /other", owner("ann"), 403, 403, 403, 200),
    Case("update a field", "PATCH /notes/a?updateMask.fieldPaths=text", #"{"fields": {}}"#, 200, 403, 403, 200),
    Case("give away", "PATCH /notes/a", owner("ben"), 403, 403, 403, 200),
    Case("set a missing document", "PATCH /notes/c", owner("ann"), 200, 403, 403, 200),
    Case("update a missing document", "PATCH /notes/c?currentDocument.exists=true", owner("ann"), 403, 403, 403, 404),
    Case("delete", "DELETE /notes/a", nil, 200, 403, 403, 200),
    Case("delete a missing document", "DELETE /notes/none", nil, 403, 403, 403, 200),
    Case(
      "delete with a precondition that fails", "DELETE /notes/a?currentDocument.updateTime=2020-01-01T00:00:00Z", nil,
      400, 403, 403, 400),
    Case(
      "commit", "POST :commit", #"{"writes": [\#(update("notes/a", "ann")), \#(update("notes/n", "ann"))]}"#,
      200, 403, 403, 200),
    Case(
      "commit, one denied", "POST :commit",
      #"{"writes": [\#(update("notes/a", "ann")), \#(update("notes/b", "ann"))]}"#,
      403, 403, 403, 200),
    Case("commit of nothing", "POST :commit", #"{"writes": []}"#, 200, 200, 200, 200),
    Case(
      "verify needs get", "POST :commit",
      #"{"writes": [{"verify": "ROOT/notes/a", "currentDocument": {"exists": true}}]}"#, 200, 403, 403, 200),
    Case(
      "delete and set is an update", "POST :commit",
      #"{"writes": [{"delete": "ROOT/notes/a"}, \#(update("notes/a", "ann"))]}"#, 200, 403, 403, 200),
    Case(
      "create and delete is a delete", "POST :commit",
      #"{"writes": [\#(update("notes/z", "ann")), {"delete": "ROOT/notes/z"}]}"#, 403, 403, 403, 200),
    Case(
      "a server timestamp is request.time", "POST :commit",
      #"""
      {"writes": [{"update": {"name": "ROOT/stamped/x", "fields": {}},
        "updateTransforms": [{"fieldPath": "at", "setToServerValue": "REQUEST_TIME"}]}]}
      """#, 200, 200, 200, 200),
    Case(
      "another time is not request.time", "POST :commit",
      #"{"writes": [{"update": {"name": "ROOT/stamped/x", "fields": {"at": {"timestampValue": "2025-01-01T00:00:00Z"}}}}]}"#,
      403, 403, 403, 200),
    Case(
      "an increment, merged", "POST :commit",
      #"""
      {"writes": [{"transform": {"document": "ROOT/counters/c",
        "fieldTransforms": [{"fieldPath": "n", "increment": {"integerValue": "1"}}]}}]}
      """#, 200, 200, 200, 200),
    Case(
      "an increment by too much", "POST :commit",
      #"""
      {"writes": [{"transform": {"document": "ROOT/counters/c",
        "fieldTransforms": [{"fieldPath": "n", "increment": {"integerValue": "2"}}]}}]}
      """#, 403, 403, 403, 200),
    Case(
      "two writes see each other", "POST :commit", #"{"writes": [\#(half("l", of: "r")), \#(half("r", of: "l"))]}"#,
      200, 200, 200, 200),
    Case("one of the two writes alone", "POST :commit", #"{"writes": [\#(half("l", of: "r"))]}"#, 403, 403, 403, 200),
    Case(
      "a write outside a transaction", "POST :commit", #"{"writes": [\#(update("transactional/t", "ann"))]}"#,
      403, 403, 403, 200),
    Case(
      "a document that the rule reads is missing", "POST :commit", #"{"writes": [\#(update("closed/t", "ann"))]}"#,
      403, 403, 403, 200),
    Case("batchWrite", "POST :batchWrite", #"{"writes": [\#(update("notes/a", "ann"))]}"#, 403, 403, 403, 200),
  ]

  @Test func rulesDecideCallsOverREST() throws {
    let (server, directory) = try Self.server()
    defer { withExtendedLifetime(directory) {} }
    for (number, item) in Self.cases.enumerated() {
      for (caller, status) in zip(Self.callers, item.statuses) {
        // A project for each request, so that no request sees another's writes.
        let root = "projects/\(caller.name)-\(number)/databases/(default)/documents"
        let seeded = try server.call(
          "POST", "/v1/\(root):commit", Self.seed.replacingOccurrences(of: "ROOT", with: root),
          headers: [("authorization", "Bearer owner")])
        #expect(seeded.status == 200, "\(seeded.text)")
        let parts = item.request.split(separator: " ").map(String.init)
        let reply = try server.call(
          parts[0], "/v1/\(root)\(parts[1])", item.body?.replacingOccurrences(of: "ROOT", with: root),
          headers: caller.headers)
        #expect(reply.status == status, "\(item.name) as \(caller.name): \(reply.status) \(reply.text)")
      }
    }
  }

  @Test func deniedCommitWritesNothingAndStatesTheReason() throws {
    let (server, directory) = try Self.server()
    defer { withExtendedLifetime(directory) {} }
    let admin = Self.callers[3].headers
    let root = TestServer.name
    _ = try server.call("POST", ":commit", Self.seed.replacingOccurrences(of: "ROOT", with: root), headers: admin)
    let writes = #"{"writes": [\#(Self.update("notes/n", "ann")), \#(Self.update("notes/b", "ann"))]}"#
    let reply = try server.call(
      "POST", ":commit", writes.replacingOccurrences(of: "ROOT", with: root), headers: Self.callers[0].headers)
    #expect(reply.message == "\nfalse for 'update' @ L7")
    #expect(reply.json("error", "status") == "PERMISSION_DENIED")
    #expect(try server.call("GET", "/notes/n", headers: admin).status == 404)
    #expect(try server.call("GET", "/notes/none").message == "\nfalse for 'get' @ L5")
    #expect(
      try server.call("GET", "/notes/none", headers: Self.callers[0].headers).message
        == "\nNull value error. for 'get' @ L5")
    #expect(try server.call("GET", "/other/x").message == "No matching allow statements")
    let query = try server.call("POST", ":runQuery", Self.query("notes"), headers: Self.callers[0].headers)
    #expect(query.json(0, "error", "code", as: Int.self) == 403, "\(query.text)")
  }

  @Test func entityTagsNeedReadAccess() throws {
    let (server, directory) = try Self.server()
    defer { withExtendedLifetime(directory) {} }
    let admin = Self.callers[3].headers
    _ = try server.call(
      "POST", ":commit", Self.seed.replacingOccurrences(of: "ROOT", with: TestServer.name), headers: admin)
    for path in ["/notes", "/notes/a"] {
      let tag = try #require(try server.call("GET", path, headers: admin).header("etag"))
      #expect(try server.call("GET", path, headers: admin + [("if-none-match", tag)]).status == 304)
      #expect(try server.call("GET", path, headers: [("if-none-match", tag)]).status == 403)
    }
  }

  @Test func rulesSeeWhetherATransactionIsOpen() throws {
    let (server, directory) = try Self.server()
    defer { withExtendedLifetime(directory) {} }
    let begun: String? = try server.call("POST", ":beginTransaction", "{}").json("transaction")
    let transaction = try #require(begun)
    let names = #"["\#(TestServer.name)/transactional/t"]"#
    #expect(try server.call("POST", ":batchGet", #"{"documents": \#(names)}"#).status == 403)
    let read = try server.call(
      "POST", ":batchGet", #"{"documents": \#(names), "transaction": "\#(transaction)"}"#)
    #expect(read.status == 200, "\(read.text)")
    let write = Self.update("transactional/t", "ann").replacingOccurrences(of: "ROOT", with: TestServer.name)
    let written = try server.call("POST", ":commit", #"{"writes": [\#(write)], "transaction": "\#(transaction)"}"#)
    #expect(written.status == 200, "\(written.text)")
  }

  /// A denied read closes the transaction that it opened, because the client does not know the transaction.
  @Test func deniedReadsLeaveNoTransactionOpen() throws {
    let (server, directory) = try Self.server()
    defer { withExtendedLifetime(directory) {} }
    let opening = #""newTransaction": {"readWrite": {}}"#
    let query = Self.query("notes")
    let aggregation = #"{"structuredAggregationQuery": \#(query.dropLast()), "aggregations": [{"count": {}}]}"#
    for (call, body) in [
      (":batchGet", #"{"documents": ["\#(TestServer.name)/notes/a"]}"#), (":runQuery", query),
      (":runAggregationQuery", aggregation + "}"),
    ] {
      #expect(try server.call("POST", call, body.dropLast() + ", " + opening + "}").status == 403)
    }
    let id = try #require(DatabaseID(project: "p"))
    #expect(try server.server.registry.database(id)?.transactions.count == 0)
    _ = try server.call("POST", ":beginTransaction", "{}")
    #expect(try server.server.registry.database(id)?.transactions.count == 1)
  }

  // MARK: gRPC

  private static func message(_ texts: [Int: String], _ messages: [(Int, [UInt8])] = []) -> [UInt8] {
    Message { out in
      for (number, text) in texts.sorted(by: { $0.key < $1.key }) { ProtobufWriter.string(number, text, to: &out) }
      for (number, message) in messages { ProtobufWriter.bytes(number, message, to: &out) }
    }.bytes
  }

  @Test func denialsStateTheReasonOverGRPC() throws {
    let (server, directory) = try Self.server()
    defer { withExtendedLifetime(directory) {} }
    let grpc = try GRPCConnection(port: server.port)
    let get = try grpc.call("GetDocument", Self.message([1: TestServer.name + "/notes/none"]), headers: [])
    #expect(get.status == 7)
    #expect(get.statusMessage == "%0Afalse for 'get' @ L5")
    let list = try grpc.call("ListDocuments", Self.message([1: TestServer.name, 2: "short"]), headers: [])
    #expect(list.statusMessage.hasSuffix(" for 'list' @ L11"), "\(list.statusMessage)")
  }

  private static func document(_ name: String?, owner: String) -> [UInt8] {
    let value = Message { ProtobufWriter.string(17, owner, to: &$0) }.bytes
    return message(name.map { [1: $0] } ?? [:], [(2, message([1: "owner"], [(2, value)]))])
  }

  @Test func rulesDecideCallsOverGRPC() throws {
    let (server, directory) = try Self.server()
    defer { withExtendedLifetime(directory) {} }
    let grpc = try GRPCConnection(port: server.port)
    func calls(_ database: String) -> [(method: String, message: [UInt8], statuses: [Int])] {
      let root = database + "/documents"
      func write(_ path: String, _ owner: String) -> [UInt8] {
        Self.message([:], [(1, Self.document(root + path, owner: owner))])
      }
      func query(_ collection: String) -> [UInt8] { Self.message([:], [(2, Self.message([2: collection]))]) }
      func aggregation(_ collection: String) -> [UInt8] {
        Self.message([:], [(1, query(collection)), (3, Self.message([7: "n"], [(1, [])]))])
      }
      return [
        ("GetDocument", Self.message([1: root + "/notes/a"]), [0, 7, 7, 0]),
        ("GetDocument", Self.message([1: root + "/notes/none"]), [7, 7, 7, 5]),
        ("BatchGetDocuments", Self.message([1: database, 2: root + "/notes/a"]), [0, 7, 7, 0]),
        ("ListDocuments", Self.message([1: root, 2: "notes"]), [7, 7, 7, 0]),
        ("ListDocuments", Self.message([1: root, 2: "public"]), [0, 0, 0, 0]),
        // A query of all collections, which no rule matches.
        ("ListDocuments", Self.message([1: root]), [7, 7, 7, 0]),
        ("RunQuery", Self.message([1: root], [(2, query("notes"))]), [7, 7, 7, 0]),
        ("RunQuery", Self.message([1: root], [(2, query("public"))]), [0, 0, 0, 0]),
        ("RunAggregationQuery", Self.message([1: root], [(2, aggregation("notes"))]), [7, 7, 7, 0]),
        ("RunAggregationQuery", Self.message([1: root], [(2, aggregation("public"))]), [0, 0, 0, 0]),
        ("ListCollectionIds", Self.message([1: root]), [7, 7, 7, 0]),
        (
          "CreateDocument", Self.message([1: root, 2: "notes", 3: "n"], [(4, Self.document(nil, owner: "ann"))]),
          [0, 7, 7, 0]
        ),
        ("UpdateDocument", Self.message([:], [(1, Self.document(root + "/notes/a", owner: "ann"))]), [0, 7, 7, 0]),
        ("DeleteDocument", Self.message([1: root + "/notes/a"]), [0, 7, 7, 0]),
        (
          "Commit", Self.message([1: database], [(2, write("/notes/x", "ann")), (2, write("/notes/y", "ann"))]),
          [0, 7, 7, 0]
        ),
        ("BatchWrite", Self.message([1: database], [(2, write("/notes/x", "ann"))]), [7, 7, 7, 0]),
        ("BeginTransaction", Self.message([1: database]), [0, 0, 0, 0]),
      ]
    }
    for number in calls("").indices {
      for (caller, column) in zip(Self.callers, 0...) {
        let database = "projects/\(caller.name)-\(number)/databases/(default)"
        let seed = Self.seed.replacingOccurrences(of: "ROOT", with: database + "/documents")
        #expect(
          try server.call("POST", "/v1/\(database)/documents:commit", seed, headers: Self.callers[3].headers).status
            == 200)
        let call = calls(database)[number]
        let reply = try grpc.call(call.method, call.message, headers: caller.headers)
        #expect(
          reply.status == call.statuses[column], "\(call.method) \(number) as \(caller.name): \(reply.statusMessage)")
      }
    }
  }
}
