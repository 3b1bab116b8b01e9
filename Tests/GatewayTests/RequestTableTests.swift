import Foundation
import Testing
import TestSupport

/// Sequences of requests, each with its status and response. `N` means the documents root.
@Suite struct RequestTableTests {
  struct Step {
    var method: String
    var path: String
    var body: String?
    var status: Int
    /// The expected JSON, or the message of an error.
    var answer: String

    init(_ method: String, _ path: String, _ body: String?, _ status: Int, _ answer: String) {
      (self.method, self.path, self.body, self.status, self.answer) = (method, path, body, status, answer)
    }

    init(_ method: String, _ path: String, _ status: Int, _ answer: String) {
      self.init(method, path, nil, status, answer)
    }
  }

  private func run(_ steps: [Step], on server: TestServer? = nil, line: Int = #line) throws {
    let server = try server ?? TestServer()
    for step in steps {
      let name = { (text: String) in text.replacingOccurrences(of: "\"N/", with: "\"\(TestServer.name)/") }
      let reply = try server.call(step.method, step.path, step.body.map(name))
      let comment: Comment =
        "line \(line): \(step.method) \(step.path) \(step.body?.prefix(200) ?? "") → \(reply.status) \(reply.text.prefix(400))"
      #expect(reply.status == step.status, comment)
      if step.answer.isEmpty { continue }
      if "[{\"".contains(step.answer.prefix(1)) {
        #expect(matches(name(step.answer), reply), comment)
      } else {
        let expected = step.answer.replacingOccurrences(of: "N/", with: TestServer.name + "/")
        #expect(reply.message == expected, comment)
      }
    }
  }

  private static let one = #"{"fields":{"a":{"integerValue":"1"}}}"#
  private static func doc(_ path: String, _ fields: String = #"{"a":{"integerValue":"1"}}"#) -> String {
    fields.isEmpty
      ? #"{"name":"N/\#(path)","createTime":"*","updateTime":"*"}"#
      : #"{"name":"N/\#(path)","fields":\#(fields),"createTime":"*","updateTime":"*"}"#
  }

  @Test func documentsAreCreatedReadUpdatedAndDeleted() throws {
    func doc(_ path: String) -> String { Self.doc(path) }
    func doc(_ path: String, _ fields: String) -> String { Self.doc(path, fields) }
    try run([
      Step("GET", "/c/x", 404, #"Document "N/c/x" not found."#),
      Step("POST", "/c?documentId=x", Self.one, 200, doc("c/x")),
      Step("POST", "/c?documentId=x", Self.one, 409, "Document already exists: N/c/x"),
      Step("GET", "/c/x", 200, doc("c/x")),
      Step("GET", "/c/x?mask.fieldPaths=b", 200, doc("c/x", "")),
      Step(
        "PATCH", "/c/x?updateMask.fieldPaths=b&mask.fieldPaths=b",
        #"{"fields":{"b":{"mapValue":{"fields":{"c":{"booleanValue":true}}}}}}"#, 200,
        doc("c/x", #"{"b":{"mapValue":{"fields":{"c":{"booleanValue":true}}}}}"#)),
      Step(
        "GET", "/c/x?mask.fieldPaths=b.c&mask.field_paths=a", 200,
        doc("c/x", #"{"a":{"integerValue":"1"},"b":{"mapValue":{"fields":{"c":{"booleanValue":true}}}}}"#)),
      Step(
        "PATCH", "/c/x?update_mask.field_paths=a", "{}", 200,
        doc("c/x", #"{"b":{"mapValue":{"fields":{"c":{"booleanValue":true}}}}}"#)),
      Step("PATCH", "/c/x", Self.one, 200, doc("c/x")),
      Step("PATCH", "/c/new?currentDocument.exists=true", Self.one, 404, "No document to update: N/c/new"),
      Step("PATCH", "/c/x?currentDocument.exists=false", Self.one, 409, "Document already exists: N/c/x"),
      Step(
        "PATCH", "/c/x?currentDocument.updateTime=2020-01-01T00:00:00.0000001Z", Self.one, 400,
        "Timestamp must be microsecond-aligned."),
      Step(
        "PATCH", "/c/x?currentDocument.exists=maybe", Self.one, 400,
        "Invalid value at 'currentDocument.exists' (TYPE_BOOL), \"maybe\""),
      Step("DELETE", "/c/gone?currentDocument.exists=true", 404, "No document to update: N/c/gone"),
      Step("DELETE", "/c/gone", 200, "{}"),
      Step("DELETE", "/c/x", 200, "{}"),
      Step("GET", "/c/x", 404, #"Document "N/c/x" not found."#),
      Step("POST", "/c/p/sub?documentId=q", "", 200, doc("c/p/sub/q", "")),
      Step("POST", "/c", Self.one, 200, #"{"name":"*","fields":"*","createTime":"*","updateTime":"*"}"#),
      Step("POST", "/c?documentId=y", #"{"name":"N/c/y","fields":{}}"#, 400, "document.name must not be set"),
      Step("POST", "/c?documentId=a%2Fb", "{}", 400, #"Resource id "a/b" is invalid because it contains "/"."#),
      Step("POST", "/c?documentId=__x__", "{}", 400, #"Resource id "__x__" is invalid because it is reserved."#),
      Step("POST", "/c?documentId=__id7__", "{}", 200, doc("c/__id7__", "")),
      Step("POST", "/__c__?documentId=x", "{}", 400, #"Collection id "__c__" is invalid because it is reserved."#),
    ])
  }

  @Test func updateTimePreconditionIsChecked() throws {
    let server = try TestServer()
    let created = try server.call("PATCH", "/c/x", Self.one)
    let time: String = try #require(created.json("updateTime"))
    #expect(
      try server.call("PATCH", "/c/x?currentDocument.updateTime=\(time)", #"{"fields":{"a":{"integerValue":2}}}"#)
        .status == 200)
    let stale = try server.call("PATCH", "/c/x?currentDocument.updateTime=\(time)", Self.one)
    #expect(stale.status == 400)
    #expect(stale.json("error", "status") == "FAILED_PRECONDITION")
    #expect(
      stale.message.hasPrefix("the stored version (")
        && stale.message.contains(") does not match the required base version ("))
    #expect(try server.call("DELETE", "/c/x?currentDocument.updateTime=\(time)").status == 400)
    let missing = try server.call("DELETE", "/c/none?currentDocument.updateTime=\(time)")
    #expect(missing.message.hasPrefix("the stored version (0) does not match"))
  }

  @Test func pathsAreChecked() throws {
    let id1500 = String(repeating: "i", count: 1500)
    try run([
      Step("PATCH", "/c", Self.one, 400, "Document name \"N/c\" lacks \"/\" at index 42."),
      Step("DELETE", "/c", 400, "Document name \"N/c\" lacks \"/\" at index 42."),
      Step("POST", "/c/x", Self.one, 400, "Document parent name \"N/c\" lacks \"/\" at index 42."),
      Step("GET", "/c/..", 400, #"Document name "c/.." contains a resource id ".." at index 1."#),
      Step("GET", "/c//x", 400, ""),
      Step("GET", "/c/a%2Fb", 400, #"Resource id "a/b" is invalid because it contains "/"."#),
      Step("GET", "/c/%zz", 400, "Malformed percent-encoding in the path of the URL."),
      Step("GET", "/c/%FF", 400, "Malformed percent-encoding in the path of the URL."),
      Step("PATCH", "/c/\(id1500)", Self.one, 200, ""),
      Step("GET", "/c/\(id1500)", 200, Self.doc("c/\(id1500)")),
      Step("PATCH", "/c/\(id1500)i", Self.one, 400, "The key path element name is longer than 1500 bytes."),
      Step("PATCH", "/c/a%20b+c:d%3A%00%F0%9F%98%80", Self.one, 200, Self.doc(#"c/a b+c:d:\u0000😀"#)),
      Step("GET", "/c/a%20b%2Bc%3Ad:%00%F0%9F%98%80", 200, Self.doc(#"c/a b+c:d:\u0000😀"#)),
      Step("GET", "/c/x:commit", 404, ""),
      Step("GET", "/c/x:unknown", 404, #"Document "N/c/x:unknown" not found."#),
      Step("POST", ":unknown", "{}", 404, ""), Step("POST", "", "{}", 404, ""), Step("GET", "", 404, ""),
      Step("PUT", "/c/x", "{}", 404, ""), Step("GET", "/v1/projects/p", 404, ""), Step("GET", "/v1/other", 404, ""),
      Step(
        "GET", "/c/x?nonsense=1", 400,
        "Invalid JSON payload received. Unknown name \"nonsense\": Cannot bind query parameter. Field 'nonsense' could not be found in request message."
      ),
      Step(
        "GET",
        "/c/none?alt=json&$alt=json;enum-encoding=int&key=k&access_token=t&prettyPrint=false&upload_protocol=x&$.xgafv=2&quotaUser=q&fields=name&callback=c&requestOptions.requestTags=x",
        404,
        #"Document "N/c/none" not found."#),
      Step(
        "GET", "/c/x?mask.fieldPaths=a..b", 400,
        "Invalid property path \"a..b\". Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)"
      ),
      Step("GET", "/c/x?mask.fieldPaths=", 400, "Invalid empty property path string."),
      Step("GET", "/c/x?transaction=AAAA&readTime=2020-01-01T00:00:00Z", 400, ""),
      Step("GET", "/c/x?transaction=AAAA", 400, "Invalid transaction."),
      Step(
        "GET", "/c/x?readTime=2020-01-01T00:00:00Z", 400,
        "The requested 'read_time' cannot be before database creation time."),
      Step("GET", "/c/x?readTime=2099-01-01T00:00:00Z", 400, "The requested 'read_time' cannot be in the future."),
      Step("GET", "/c/x?readTime=yesterday", 400, ""),
    ])
  }

  @Test func listingsAreOrderedAndPaged() throws {
    let server = try TestServer()
    for (path, n) in [("b", "2"), ("a", "1"), ("__id7__", "3"), ("c", "2")] {
      _ = try server.call("PATCH", "/l/\(path)", #"{"fields":{"n":{"integerValue":\#(n)}}}"#)
    }
    _ = try server.call("PATCH", "/l/none/s/x", "{}")
    _ = try server.call("PATCH", "/l/d", "{}")
    func names(_ reply: TestServer.Response) -> [String] {
      (reply.json("documents", as: [Any].self) ?? []).compactMap {
        (($0 as? [String: Any])?["name"] as? String)?.components(separatedBy: "/").last
      }
    }
    func list(_ query: String) throws -> [String] { names(try server.call("GET", "/l\(query)")) }
    #expect(try list("") == ["__id7__", "a", "b", "c", "d"])
    #expect(try list("?showMissing=true") == ["__id7__", "a", "b", "c", "d", "none"])
    #expect(try list("?orderBy=n") == ["a", "b", "c", "__id7__"])
    #expect(try list("?orderBy=n%20desc") == ["__id7__", "c", "b", "a"])
    #expect(try list("?orderBy=n+DESC,%20__name__") == ["__id7__", "b", "c", "a"])
    #expect(try list("?orderBy=__name__%20desc") == ["d", "c", "b", "a", "__id7__"])
    for query in ["", "&showMissing=true", "&orderBy=n", "&orderBy=n%20desc", "&orderBy=__name__%20desc"] {
      for size in 1...7 {
        var (pages, token): ([String], String) = ([], "")
        repeat {
          let page = try server.call("GET", "/l?pageSize=\(size)\(query)\(token)")
          #expect(page.status == 200, "\(page.text)")
          #expect(names(page).count <= size)
          pages += names(page)
          let next: String? = page.json("nextPageToken")
          token = next.map { "&pageToken=" + $0.replacingOccurrences(of: "+", with: "%2B") } ?? ""
        } while !token.isEmpty && pages.count < 50
        #expect(try pages == list(query.isEmpty ? "" : "?" + query.dropFirst()), "pages of \(size), \(query)")
      }
    }
    let token: String = try #require(try server.call("GET", "/l?pageSize=1").json("nextPageToken"))
    let encoded = token.replacingOccurrences(of: "+", with: "%2B")
    try run(
      [
        Step("GET", "/empty", 200, "{}"), Step("GET", "/l?pageSize=-1", 400, "Page size must be nonnegative."),
        Step("GET", "/l?pageSize=x", 400, "Invalid value at 'pageSize' (TYPE_INT32), \"x\""),
        Step("GET", "/l?pageToken=AAAA", 400, "invalid page token"),
        Step("GET", "/l?pageToken=!!", 400, "invalid page token"),
        Step("GET", "/other?pageSize=1&pageToken=\(encoded)", 400, "invalid page token"),
        Step("GET", "/l?orderBy=n&pageToken=\(encoded)", 400, "invalid page token"),
        Step("GET", "/l?orderBy=a%20sideways", 400, "Invalid order by clause \"a sideways\"."),
        Step("GET", "/l?orderBy=,", 400, "Invalid order by clause \",\"."),
        Step("GET", "/l?orderBy=n&showMissing=true", 400, ""),
        Step(
          "GET", "/l?pageSize=1&mask.fieldPaths=zzz", 200,
          #"{"documents":[\#(Self.doc("l/__id7__", ""))],"nextPageToken":"*"}"#),
        Step("POST", ":listCollectionIds", "{}", 200, #"{"collectionIds":["l"]}"#),
        Step("POST", "/l/none:listCollectionIds", "", 200, #"{"collectionIds":["s"]}"#),
        Step("POST", "/l/a:listCollectionIds", "{}", 200, "{}"),
        Step("POST", "/l:listCollectionIds", "{}", 400, "Document parent name \"N/l\" lacks \"/\" at index 42."),
        Step("POST", ":listCollectionIds", #"{"pageSize":-1}"#, 400, "Page size must be nonnegative."),
        Step("POST", ":listCollectionIds", #"{"pageToken":"AAAA"}"#, 400, "invalid page token"),
        Step(
          "POST", ":listCollectionIds", #"{"junk":1}"#, 400,
          "Invalid JSON payload received. Unknown name \"junk\": Cannot find field."),
      ], on: server)
    for name in ["z1", "z2", "z3"] { _ = try server.call("PATCH", "/\(name)/x", "{}") }
    var (ids, next): ([String], String?) = ([], nil)
    repeat {
      let page = try server.call("POST", ":listCollectionIds", #"{"pageSize":2,"pageToken":"\#(next ?? "")"}"#)
      ids += page.json("collectionIds", as: [String].self) ?? []
      next = page.json("nextPageToken")
    } while next != nil
    #expect(ids == ["l", "z1", "z2", "z3"])
  }

  @Test func commitsApplyOrRefuseWrites() throws {
    let server = try TestServer()
    let result = #"{"updateTime":"*"}"#
    try run(
      [
        Step("POST", ":commit", "{}", 200, "{}"), Step("POST", ":commit", "", 200, "{}"),
        Step("POST", ":commit", #"{"writes":[]}"#, 200, "{}"),
        Step(
          "POST", ":commit",
          #"{"writes":[{"update":{"name":"N/c/x","fields":{"a":{"integerValue":"1"}}}},{"verify":"N/c/x","currentDocument":{"exists":true}},{"delete":"N/c/y"}]}"#,
          200,
          #"{"writeResults":[\#(result),\#(result),{}],"commitTime":"*"}"#),
        Step(
          "POST", ":commit",
          #"{"writes":[{"update":{"name":"N/c/x"},"updateMask":{},"updateTransforms":[{"fieldPath":"n","increment":{"integerValue":"2"}},{"fieldPath":"t","setToServerValue":"REQUEST_TIME"}]}]}"#,
          200,
          #"{"writeResults":[{"updateTime":"*","transformResults":[{"integerValue":"2"},{"timestampValue":"*"}]}],"commitTime":"*"}"#
        ),
        Step(
          "POST", ":commit",
          #"{"writes":[{"transform":{"document":"N/c/x","fieldTransforms":[{"fieldPath":"l","appendMissingElements":{"values":[{"nullValue":null}]}}]}}]}"#,
          200,
          #"{"writeResults":[{"updateTime":"*","transformResults":[{"nullValue":null}]}],"commitTime":"*"}"#),
        Step("POST", ":commit", #"{"writes":[{}]}"#, 400, "empty write operation"),
        Step(
          "POST", ":commit", #"{"writes":[{"delete":"N/c/x","updateMask":{"fieldPaths":["a"]}}]}"#, 400,
          "a delete must not specify a document mask."),
        Step(
          "POST", ":commit", #"{"writes":[{"delete":"N/c/x","update":{"name":"N/c/x"}}]}"#, 400,
          "Invalid value at 'writes[0]' (oneof), oneof field 'operation' is already set. Cannot set 'update'"),
        Step(
          "POST", ":commit", #"{"writes":[{"delete":"N/c"}]}"#, 400, "Document name \"N/c\" lacks \"/\" at index 42."),
        Step(
          "POST", ":commit", #"{"writes":[{"delete":"c/x"}]}"#, 400,
          "Document name \"c/x\" lacks \"projects\" at index 0."),
        Step(
          "POST", ":commit", #"{"writes":[{"delete":"projects/q/databases/(default)/documents/c/x"}]}"#, 400,
          "The request was for database 'projects/p/databases/(default)' but was attempting to access database 'projects/q/databases/(default)'"
        ),
        Step(
          "POST", ":commit", #"{"writes":[{"delete":"N/c/none","currentDocument":{"exists":true}}]}"#, 404,
          "No document to update: N/c/none"),
        Step(
          "POST", ":commit",
          #"{"writes":[{"update":{"name":"N/c/x"},"currentDocument":{"exists":false}},{"delete":"N/c/x"}]}"#, 409,
          "Document already exists: N/c/x"),
        Step(
          "POST", ":commit",
          #"{"writes":[{"update":{"name":"N/c/x","fields":{"a":{"arrayValue":{"values":[{"arrayValue":{}}]}}}}}]}"#,
          400, "Nested arrays are not allowed"),
        Step(
          "POST", ":commit", #"{"writes":[{"update":{"name":"N/c/x","fields":{"a":{}}}}]}"#, 400,
          "Cannot convert firestore.v1.Value with type unset."),
        Step(
          "POST", ":commit", #"{"writes":[{"update":{"name":"N/c/x","fields":{"":{"nullValue":null}}}}]}"#, 400,
          "The property.name is the empty string."),
        Step(
          "POST", ":commit", #"{"writes":[{"update":{"name":"N/c/x","fields":{"__id__":{"nullValue":null}}}}]}"#, 400,
          "field name __id__ is reserved"),
        Step(
          "POST", ":commit",
          #"{"writes":[{"update":{"name":"N/c/x","fields":{"g":{"geoPointValue":{"latitude":91}}}}}]}"#, 400,
          "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."),
        Step(
          "POST", ":commit", #"{"writes":[{"update":{"name":"N/c/x","fields":{"a":{"integerValue":"1.5"}}}}]}"#, 400, ""
        ),
        Step(
          "POST", ":commit", #"{"writes":[{"update":{"name":"N/c/x","junk":1}}]}"#, 400,
          "Invalid JSON payload received. Unknown name \"junk\" at 'writes[0].update': Cannot find field."),
        Step("POST", ":commit", #"{"transaction":"AAAA"}"#, 400, "Invalid transaction."),
        Step("POST", ":commit", #"{"writes":"#, 400, ""), Step("POST", ":commit", "[]", 400, ""),
        Step("POST", ":commit", "nonsense", 400, ""),
        Step("POST", "/c/x:commit", "{}", 404, ""),
        Step("POST", ":batchWrite", "{}", 200, "{}"),
        Step(
          "POST", ":batchWrite",
          #"{"labels":{"a":"b"},"writes":[{"update":{"name":"N/b/x"}},{"delete":"N/b/y","currentDocument":{"exists":true}},{"delete":"N/b/z"}]}"#,
          200,
          #"{"writeResults":[{"updateTime":"*"},{},{}],"status":[{},{"code":5,"message":"No document to update: \#(TestServer.name)/b/y"},{}]}"#
        ),
        Step(
          "POST", ":batchWrite", #"{"writes":[{"delete":"N/b/x"},{"delete":"N/b/x"}]}"#, 400,
          "the same document cannot be written more than once in a single request"),
        Step("GET", "/b/x", 200, Self.doc("b/x", "")),
        Step("POST", ":partitionQuery", "{}", 400, "only structured queries are supported"),
        Step("POST", ":listen", "{}", 400, ""),
      ], on: server)
    let transforms = (0..<501).map { _ in #"{"fieldPath":"n","increment":{"integerValue":1}}"# }.joined(separator: ",")
    let many = try server.call(
      "POST", ":commit",
      #"{"writes":[{"update":{"name":"\#(TestServer.name)/c/x"},"updateMask":{},"updateTransforms":[\#(transforms)]}]}"#
    )
    #expect(many.status == 400)
    #expect(many.message == "cannot have more than 500 field transforms on a single document")
  }

  @Test func batchGetsReadDocuments() throws {
    let server = try TestServer()
    for id in ["a", "b"] { _ = try server.call("PATCH", "/c/\(id)", Self.one) }
    let found = { (id: String) in #"{"found":\#(Self.doc("c/" + id)),"readTime":"*"}"# }
    try run(
      [
        Step("POST", ":batchGet", "{}", 200, "[]"),
        Step(
          "POST", ":batchGet", #"{"documents":["N/c/z","N/c/b","N/c/a","N/c/b"]}"#, 200,
          #"[\#(found("a")),\#(found("b")),{"missing":"N/c/z","readTime":"*"}]"#),
        Step(
          "POST", ":batchGet", #"{"documents":["N/c/a"],"mask":{"fieldPaths":["z"]}}"#, 200,
          #"[{"found":\#(Self.doc("c/a", "")),"readTime":"*"}]"#),
        Step(
          "POST", ":batchGet", #"{"documents":["N/c/a"],"newTransaction":{"readWrite":{}}}"#, 200,
          #"[{"transaction":"*"},\#(found("a"))]"#),
        Step("POST", ":batchGet", #"{"documents":["N/c"]}"#, 400, "Document name \"N/c\" lacks \"/\" at index 42."),
        Step("POST", ":batchGet", #"{"documents":["N/c/a"],"transaction":"AAAA"}"#, 400, "Invalid transaction."),
        Step(
          "POST", ":batchGet", #"{"documents":["N/c/a"],"readTime":"2020-01-01T00:00:00Z"}"#, 400,
          "The requested 'read_time' cannot be before database creation time."),
        Step("POST", ":batchGet", #"{"transaction":"AAAA","newTransaction":{}}"#, 400, ""),
      ], on: server)
    let error = try server.call("POST", ":batchGet", #"{"junk":1}"#)
    #expect(matches(#"[{"error":{"code":400,"message":"*","status":"INVALID_ARGUMENT"}}]"#, error))
  }

  @Test func transactionsReadAndCommit() throws {
    let server = try TestServer()
    _ = try server.call("PATCH", "/c/x", Self.one)
    func begin(_ body: String = "{}") throws -> String {
      try #require(try server.call("POST", ":beginTransaction", body).json("transaction"))
    }
    func commit(_ transaction: String, _ writes: String = "") throws -> TestServer.Response {
      try server.call("POST", ":commit", #"{"transaction":"\#(transaction)","writes":[\#(writes)]}"#)
    }
    let write = #"{"update":{"name":"\#(TestServer.name)/c/y"}}"#
    func read(_ transaction: String) throws -> TestServer.Response {
      try server.call("GET", "/c/x?transaction=\(transaction.replacingOccurrences(of: "+", with: "%2B"))")
    }
    var id = try begin()
    #expect(try read(id).status == 200)
    #expect(try commit(id, write).status == 200)
    let over = try commit(id, write)
    #expect(over.status == 409 && over.json("error", "status") == "ABORTED")
    #expect(over.message == "The referenced transaction has expired or is no longer valid.")

    id = try begin()
    _ = try read(id)
    _ = try server.call("PATCH", "/c/x", #"{"fields":{"a":{"integerValue":2}}}"#)
    #expect(try read(id).json("fields", "a", "integerValue") == "1")
    let aborted = try commit(id, write)
    #expect(aborted.status == 409 && aborted.json("error", "status") == "ABORTED")
    #expect(aborted.message.hasPrefix("Too much contention on these documents. Please try again."))
    id = try begin(#"{"options":{"readWrite":{"retryTransaction":"\#(id)"}}}"#)
    #expect(try commit(id).text == "{}\n")

    id = try begin(#"{"options":{"readOnly":{}}}"#)
    _ = try server.call("PATCH", "/c/x", #"{"fields":{"a":{"integerValue":3}}}"#)
    #expect(try read(id).json("fields", "a", "integerValue") == "2")
    let refused = try commit(id, write)
    #expect(refused.status == 400 && refused.message == "Cannot modify entities in a read-only transaction.")
    #expect(try server.call("POST", ":rollback", #"{"transaction":"\#(id)"}"#).text == "{}\n")
    let dead = try read(id)
    #expect(dead.status == 400 && dead.message == "The referenced transaction has expired or is no longer valid.")
    #expect(try server.call("POST", ":rollback", #"{"transaction":"AAAA"}"#).message == "Invalid transaction.")
    #expect(try server.call("POST", ":beginTransaction", #"{"options":{"readOnly":{},"readWrite":{}}}"#).status == 400)
    // `newTransaction: {}` begins a read-only transaction.
    let opened = try server.call("POST", ":batchGet", #"{"newTransaction":{}}"#)
    let readOnly: String = try #require(opened.json(0, "transaction"))
    #expect(try commit(readOnly, write).message == "Cannot modify entities in a read-only transaction.")
    // Listings conflict with changes of their collection.
    id = try begin()
    _ = try server.call("GET", "/c?transaction=\(id.replacingOccurrences(of: "+", with: "%2B"))")
    _ = try server.call("PATCH", "/c/fresh", "{}")
    #expect(try commit(id, write).status == 409)
  }

  @Test func readTimeShowsThePast() throws {
    let server = try TestServer()
    let first: String = try #require(try server.call("PATCH", "/c/x", Self.one).json("updateTime"))
    let second: String = try #require(
      try server.call("PATCH", "/c/x", #"{"fields":{"a":{"integerValue":2}}}"#).json("updateTime"))
    _ = try server.call("DELETE", "/c/x")
    #expect(try server.call("GET", "/c/x?readTime=\(first)").json("fields", "a", "integerValue") == "1")
    #expect(try server.call("GET", "/c/x?readTime=\(second)").json("fields", "a", "integerValue") == "2")
    #expect(try server.call("GET", "/c?readTime=\(second)").json("documents", 0, "fields", "a", "integerValue") == "2")
    #expect(try server.call("POST", ":listCollectionIds", #"{"readTime":"\#(first)"}"#).json("collectionIds", 0) == "c")
    #expect(try server.call("POST", ":listCollectionIds").text == "{}\n")
    let batch = try server.call(
      "POST", ":batchGet", #"{"documents":["\#(TestServer.name)/c/x"],"readTime":"\#(first)"}"#)
    #expect(batch.json(0, "found", "fields", "a", "integerValue") == "1")
    #expect(batch.json(0, "readTime") == first)
  }
}
