import Foundation
import Testing
import TestSupport

/// Responses that the tests cannot compare with the emulator, because its texts differ, it is wrong, or it never
/// responds. Hearth's responses are compared with the documentation of production.
@Suite(.needs(.hearth))
struct DocumentedAnswerTests {
  /// A request and its error, whose message contains `message`. `ROOT` means the name of the database's
  /// documents.
  struct Refusal: Sendable, CustomTestStringConvertible {
    let method: String
    /// The part after `/v1/ROOT`.
    let target: String
    let body: String
    let status: Int
    let code: String
    let message: String
    var testDescription: String { "\(method) \(target.prefix(60)) \(body.prefix(120))" }

    init(_ method: String, _ target: String, body: String = "", _ status: Int, _ code: String, _ message: String) {
      self.method = method
      self.target = target
      self.body = body
      self.status = status
      self.code = code
      self.message = message
    }

    /// A commit that fails with INVALID_ARGUMENT.
    init(commit writes: String, _ message: String) {
      self.init("POST", ":commit", body: #"{"writes":[\#(writes)]}"#, 400, "INVALID_ARGUMENT", message)
    }

    /// A write of one value that fails with INVALID_ARGUMENT.
    init(value: String, _ message: String) {
      self.init("PATCH", "/d/v", body: #"{"fields":{"x":\#(value)}}"#, 400, "INVALID_ARGUMENT", message)
    }
  }

  static let refusals: [Refusal] = [
    Refusal("GET", "/d/none", 404, "NOT_FOUND", #"Document "ROOT/d/none" not found."#),
    Refusal("POST", "/d?documentId=a", body: "{}", 409, "ALREADY_EXISTS", "Document already exists: ROOT/d/a"),
    Refusal(
      "PATCH", "/d/a?currentDocument.exists=false", body: "{}", 409, "ALREADY_EXISTS",
      "Document already exists: ROOT/d/a"),
    Refusal(
      "PATCH", "/d/none?currentDocument.exists=true", body: "{}", 404, "NOT_FOUND", "No document to update: ROOT/d/none"
    ),
    Refusal("DELETE", "/d/none?currentDocument.exists=true", 404, "NOT_FOUND", "No document to update: ROOT/d/none"),
    Refusal(
      "PATCH", "/d/none?currentDocument.updateTime=2020-01-01T00:00:00.000001Z", body: "{}", 400, "FAILED_PRECONDITION",
      "the stored version (0) does not match the required base version (1577836800000001)"),
    Refusal("PATCH", "/d", body: "{}", 400, "INVALID_ARGUMENT", #"Document name "ROOT/d" lacks "/" at index LENGTH."#),
    Refusal("DELETE", "/d", 400, "INVALID_ARGUMENT", #"Document name "ROOT/d" lacks "/" at index LENGTH."#),
    Refusal(commit: #"{"delete":"bad"}"#, #"Document name "bad" lacks "projects" at index 0."#),
    Refusal(commit: #"{"delete":"ROOT/d/__x__"}"#, #"Resource id "__x__" is invalid because it is reserved."#),
    Refusal(commit: #"{"delete":"ROOT/__x__/a"}"#, #"Collection id "__x__" is invalid because it is reserved."#),
    Refusal(
      "POST", "/d?documentId=\(String(repeating: "x", count: 1501))", body: "{}", 400, "INVALID_ARGUMENT",
      "The key path element name is longer than 1500 bytes."),
    Refusal(
      "PATCH", "/d/f", body: #"{"fields":{"":{"nullValue":null}}}"#, 400, "INVALID_ARGUMENT",
      "The property.name is the empty string."),
    Refusal(
      "PATCH", "/d/f", body: #"{"fields":{"__id__":{"nullValue":null}}}"#, 400, "INVALID_ARGUMENT",
      "field name __id__ is reserved"),
    Refusal(
      "PATCH", "/d/a?updateMask.fieldPaths=a..b", body: "{}", 400, "INVALID_ARGUMENT",
      #"Invalid property path "a..b". Unquoted property paths must match regex"#),
    Refusal(
      "PATCH", "/d/a?updateMask.fieldPaths=", body: "{}", 400, "INVALID_ARGUMENT", "Invalid empty property path string."
    ),
    Refusal(value: #"{"arrayValue":{"values":[{"arrayValue":{}}]}}"#, "Nested arrays are not allowed"),
    Refusal(value: "{}", "Cannot convert firestore.v1.Value with type unset."),
    Refusal(
      value: #"{"geoPointValue":{"latitude":91}}"#, "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."),
    Refusal(
      value: #"{"stringValue":"\#(String(repeating: "x", count: 1_048_488))"}"#,
      #"The value of property "x" is longer than 1048487 bytes."#),
    Refusal(value: #"{"integerValue":"1.5"}"#, "(TYPE_INT64)"),
    Refusal(value: #"{"bogus":1}"#, #"Unknown name "bogus" at"#),
    Refusal(value: #"{"bytesValue":"!"}"#, #"Base64 decoding failed for "!""#),
    Refusal(value: #"{"booleanValue":true,"integerValue":1}"#, "(oneof)"),
    Refusal(commit: "{}", "empty write operation"),
    Refusal(
      commit: #"{"delete":"ROOT/d/a","updateMask":{"fieldPaths":["a"]}}"#, "a delete must not specify a document mask."),
    Refusal(
      commit: #"{"delete":"projects/other/databases/(default)/documents/d/a"}"#,
      "but was attempting to access database"),
    Refusal(
      commit: #"{"transform":{"document":"ROOT/d/a","fieldTransforms":[\#(manyTransforms)]}}"#,
      "cannot have more than 500 field transforms on a single document"),
    Refusal(
      "POST", ":batchWrite", body: #"{"writes":[{"delete":"ROOT/d/x"},{"delete":"ROOT/d/x"}]}"#, 400,
      "INVALID_ARGUMENT",
      "the same document cannot be written more than once in a single request"),
    Refusal("GET", "/d?pageSize=-1", 400, "INVALID_ARGUMENT", "Page size must be nonnegative."),
    Refusal("GET", "/d?pageToken=zzzz", 400, "INVALID_ARGUMENT", "invalid page token"),
    Refusal("GET", "/d?orderBy=a%20sideways", 400, "INVALID_ARGUMENT", #"Invalid order by clause "a sideways"."#),
    Refusal("GET", "/d?pageSize=x", 400, "INVALID_ARGUMENT", ""),
    Refusal("GET", "/d/a?readTime=junk", 400, "INVALID_ARGUMENT", ""),
    Refusal("GET", "/d/a?transaction=%21", 400, "INVALID_ARGUMENT", ""),
    Refusal("PATCH", "/d/a?currentDocument.exists=maybe", body: "{}", 400, "INVALID_ARGUMENT", ""),
    Refusal("GET", "/d/%zz", 400, "INVALID_ARGUMENT", ""),
    Refusal("GET", "/d/%ff", 400, "INVALID_ARGUMENT", ""),
    Refusal(
      "GET", "/d/a?readTime=2099-01-01T00:00:00Z", 400, "INVALID_ARGUMENT",
      "The requested 'read_time' cannot be in the future."),
    Refusal("GET", "/d/a?transaction=AAAA", 400, "INVALID_ARGUMENT", "Invalid transaction."),
    Refusal("POST", ":commit", body: #"{"transaction":"AAAA"}"#, 400, "INVALID_ARGUMENT", "Invalid transaction."),
    // Streaming methods respond with an array, also for errors.
    Refusal(
      "POST", ":batchGet", body: #"{"documents":["bad"]}"#, 400, "INVALID_ARGUMENT",
      #"Document name "bad" lacks "projects" at index 0."#),
  ]

  private static let manyTransforms = (0..<501).map { #"{"fieldPath":"f\#($0)","increment":{"integerValue":"1"}}"# }
    .joined(separator: ",")

  @Test(arguments: refusals) func errorIsAsDocumented(refusal: Refusal) async throws {
    let (database, reply) = try await onNewDatabase { session -> RESTSession.Reply in
      try session.set("d/a", ["v": ["integerValue": "1"]])
      let body = refusal.body.replacing("ROOT", with: session.database.root)
      return try session.send(
        refusal.method, "/v1/\(session.database.root)\(refusal.target)",
        body.isEmpty ? nil : try JSONNode(parsing: Array(body.utf8)))
    }
    let message = refusal.message.replacing("ROOT", with: database.root)
      .replacing("LENGTH", with: "\(database.name("d").utf8.count)")
    #expect(reply.status == refusal.status)
    #expect(reply.errorStatus == refusal.code)
    #expect(
      message.isEmpty || reply.errorMessage?.contains(message) == true, "the text is \(reply.errorMessage ?? "none")")
    #expect(reply.json.elements.isEmpty == !refusal.target.hasSuffix(":batchGet"))
  }

  @Test func readTimeIsExactToTheMicrosecond() async throws {
    let (_, found) = try await onNewDatabase { session -> [String] in
      var times: [String] = []
      for number in 1...2 {
        let reply = try session.commit([session.update("d/x", ["n": ["integerValue": .string("\(number)")]])])
        times.append(reply.json["commitTime"]?.stringValue ?? "")
      }
      return try times.flatMap { time -> [String] in
        try [try justBefore(time), time].map { moment in
          let get = try session.get("d/x", query: [("readTime", moment)])
          let list = try session.get("d", query: [("readTime", moment)])
          let number = get.json["fields"]?["n"]?["integerValue"]?.stringValue ?? "\(get.status)"
          return "\(number) in \(list.json["documents"]?.elements.count ?? 0)"
        }
      }
    }
    #expect(found == ["404 in 0", "1 in 1", "1 in 1", "2 in 1"])
  }

  /// The time one microsecond before a time that a server gave.
  private func justBefore(_ time: String) throws -> String {
    // Pads to six digits, subtracts one from the last non-zero digit, and replaces the zeros after it with nines.
    var digits = Array(time.dropLast().utf8)
    if !digits.contains(UInt8(ascii: ".")) { digits.append(UInt8(ascii: ".")) }
    while digits.count < 26 { digits.append(UInt8(ascii: "0")) }
    var index = digits.count - 1
    while digits[index] == UInt8(ascii: "0") {
      digits[index] = UInt8(ascii: "9")
      index -= 1
    }
    try #require(digits[index] != UInt8(ascii: "."), "the commit time is a whole second; run the test again")
    digits[index] -= 1
    return String(decoding: digits, as: UTF8.self) + "Z"
  }

  @Test func updateTimeInTheURLIsAPrecondition() async throws {
    let (_, statuses) = try await onNewDatabase { session -> [Int] in
      let first = try session.set("d/x", ["n": ["integerValue": "1"]]).json["updateTime"]?.stringValue ?? ""
      let target = session.database.url("d/x") + queryString([("currentDocument.updateTime", first)])
      return [
        try session.send("PATCH", target, ["fields": ["n": ["integerValue": "2"]]]).status,
        try session.send("PATCH", target, ["fields": ["n": ["integerValue": "3"]]]).status,
        try session.send("DELETE", target).status,
      ]
    }
    #expect(statuses == [200, 400, 400])
  }

  @Test func errorsOfEndedTransactionsTellWhetherToRetry() async throws {
    let text = "The referenced transaction has expired or is no longer valid."
    let (_, replies) = try await onNewDatabase { session -> [String] in
      let write = session.update("d/x", [:])
      let readWrite = try session.begin()
      _ = try session.commit([write], transaction: readWrite)
      let readOnly = try session.begin(["readOnly": [:]])
      let modifying = try session.commit([write], transaction: readOnly)
      _ = try session.commit([], transaction: readOnly)
      return try [
        session.commit([write], transaction: readWrite), modifying, session.commit([], transaction: readOnly),
      ].map { "\($0.status) \($0.errorStatus ?? "") \($0.errorMessage ?? "")" }
    }
    #expect(
      replies == [
        "409 ABORTED \(text)", "400 INVALID_ARGUMENT Cannot modify entities in a read-only transaction.",
        "400 INVALID_ARGUMENT \(text)",
      ])
  }

  @Test func documentsSortByNameDescending() async throws {
    let (_, orders) = try await onNewDatabase { session -> [[String]] in
      for id in ["a", "B", "__id7__", "__id12__", "é", "z"] { try session.set("d/\(id)", ["n": ["integerValue": "1"]]) }
      return try ["__name__ desc", "n, __name__ desc", "n desc", "__name__"].map { order in
        try session.get("d", query: [("orderBy", order)]).json["documents"]?.elements.compactMap {
          $0["name"]?.stringValue?.split(separator: "/").last.map(String.init)
        } ?? []
      }
    }
    let upwards = ["__id7__", "__id12__", "B", "a", "z", "é"]
    #expect(orders == [upwards.reversed(), upwards.reversed(), upwards.reversed(), upwards])
  }

  @Test func escapesAreDecodedAfterThePathIsSplit() async throws {
    let (_, statuses) = try await onNewDatabase { session -> [Int] in
      let root = "/v1/\(session.database.root)"
      try session.set("d/a:commit", [:])
      return try [
        ("GET", "\(root)/d/a%2Fb"), ("GET", "\(root)/d/a%3Acommit"), ("GET", "\(root)/d/a:commit"),
        ("POST", "\(root)/d/a:commit:listCollectionIds"),
      ].map { try session.send($0.0, $0.1, $0.0 == "POST" ? [:] : nil).status }
    }
    #expect(statuses == [400, 200, 200, 200])
  }

  @Test func missingDocumentsAreListedWithAMask() async throws {
    let (_, documents) = try await onNewDatabase { session -> String in
      try session.set("d/a", ["x": ["integerValue": "1"], "y": ["integerValue": "2"]])
      try session.set("d/b/s/c", [:])
      let reply = try session.get("d", query: [("showMissing", "true"), ("mask.fieldPaths", "x")])
      return reply.json["documents"]?.elements.map {
        "\($0["name"]?.stringValue?.suffix(1) ?? "") \($0["fields"]?.text ?? "-") \($0["createTime"] != nil)"
      }.joined(separator: "; ") ?? ""
    }
    #expect(documents == #"a {"x":{"integerValue":"1"}} true; b - false"#)
  }

  @Test func oversizedRequestIsRefused() async throws {
    let (_, reply) = try await onNewDatabase { session -> RESTSession.Reply in
      let text = JSONNode.string(String(repeating: "x", count: 1_000_000))
      return try session.commit((0..<11).map { session.update("d/\($0)", ["x": ["stringValue": text]]) })
    }
    #expect([400, 413].contains(reply.status))
    #expect(reply.errorStatus != nil)
  }

  /// Runs `body` with a session on a new database.
  private func onNewDatabase<Result: Sendable>(
    _ body: @escaping @Sendable (RESTSession) throws -> Result
  ) async throws -> (TestDatabase, Result) {
    let database = TestDatabase(project: "documented-\(UUID().uuidString.lowercased())")
    let port = try await Self.server.value.port
    return (database, try await onDedicatedThread { try body(RESTSession(port: port, database: database)) })
  }

  private static let server = Task { try await onDedicatedThread { try HearthProcess.inMemory() } }
}
