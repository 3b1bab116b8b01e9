import Foundation
import Testing

/// `:listen` and `:changes` from end to end, over real sockets.
@Suite struct FeedTests {
  private static let events = [("Accept", "text/event-stream")]

  private func connect(
    _ server: TestServer, _ path: String, _ method: String = "GET", headers: [(String, String)] = FeedTests.events,
    body: String = ""
  ) throws -> FeedConnection {
    try FeedConnection(port: server.port, method, TestServer.root + path, headers: headers, body: body)
  }

  private func set(_ server: TestServer, _ path: String, _ number: Int) throws {
    let reply = try server.call("PATCH", "/" + path, #"{"fields": {"n": {"integerValue": "\#(number)"}}}"#)
    try #require(reply.status == 200, "\(reply.text)")
  }

  /// The events of a feed, one line each. Documents are shown by their ID; tokens and times are left out.
  private func transcript(_ body: String) -> [String] {
    body.components(separatedBy: "\n").compactMap { line -> String? in
      let text = line.hasPrefix("data: ") ? String(line.dropFirst(6)) : line
      guard text.hasPrefix("{") else { return line.hasPrefix("retry:") ? line : nil }
      guard let event = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
        return "no JSON: \(text)"
      }
      return Self.summary(event)
    }
  }

  private static func summary(_ event: [String: Any]) -> String {
    func id(_ name: Any?) -> String { (name as? String)?.split(separator: "/").last.map(String.init) ?? "?" }
    func ids(_ value: Any?) -> String { (value as? [Int]).map { "\($0)" } ?? "" }
    if let change = event["targetChange"] as? [String: Any] {
      let cause = (change["cause"] as? [String: Any])?["code"].map { " cause \($0)" } ?? ""
      let token = change["resumeToken"] == nil ? "" : " token"
      return (change["targetChangeType"] as? String ?? "NO_CHANGE") + ids(change["targetIds"]) + token + cause
    }
    if let change = event["documentChange"] as? [String: Any] {
      let document = change["document"] as? [String: Any]
      let n = ((document?["fields"] as? [String: Any])?["n"] as? [String: Any])?["integerValue"] ?? "?"
      let removed = change["removedTargetIds"] == nil ? "" : " removed \(ids(change["removedTargetIds"]))"
      return "\(id(document?["name"])) = \(n) \(ids(change["targetIds"]))\(removed)"
    }
    for kind in ["documentDelete", "documentRemove"] {
      guard let change = event[kind] as? [String: Any] else { continue }
      return "\(kind) \(id(change["document"])) \(ids(change["removedTargetIds"]))"
    }
    if let error = event["error"] as? [String: Any] { return "error \(error["status"] ?? "?")" }
    return "\(event)"
  }

  /// The last event ID of a feed of server-sent events.
  private func lastID(_ body: String) throws -> String {
    let line = try #require(body.components(separatedBy: "\n").last { $0.hasPrefix("id: ") })
    return String(line.dropFirst(4))
  }

  @Test func feedFollowsACollection() throws {
    let server = try TestServer()
    try set(server, "notes/a", 1)
    try set(server, "notes/b", 2)
    let feed = try connect(server, "/notes:listen")
    try feed.read(until: "id: ", count: 2)
    #expect(
      transcript(feed.body) == [
        "retry: 2000", "ADD[1]", "a = 1 [1]", "b = 2 [1]", "CURRENT[1] token", "NO_CHANGE token",
      ])
    try set(server, "notes/a", 3)
    try feed.read(until: "id: ", count: 3)
    _ = try server.call("DELETE", "/notes/b")
    try feed.read(until: "id: ", count: 4)
    try set(server, "others/c", 9)
    try set(server, "notes/a/below/d", 9)
    try set(server, "notes/e", 5)
    try feed.read(until: "e\"")
    try feed.read(until: "id: ", count: 5)
    #expect(
      transcript(feed.body).dropFirst(6) == [
        "a = 3 [1]", "NO_CHANGE token", "documentDelete b [1]", "NO_CHANGE token", "e = 5 [1]", "NO_CHANGE token",
      ])
  }

  @Test func feedFollowsAPipeline() throws {
    let server = try TestServer()
    for number in 1...3 { try set(server, "notes/n\(number)", number) }
    let stages = [
      Pipe.collection("notes"), Pipe.stage("where", Pipe.call("greater_than", Pipe.field("n"), Pipe.int(1))),
    ]
    let pipeline = #"{"structuredPipeline": {"pipeline": {"stages": [\#(stages.joined(separator: ","))]}}}"#
    let feed = try connect(server, ":listen?once=true", "POST", headers: [], body: pipeline)
    #expect(
      transcript(try feed.readToEnd()) == [
        "ADD[1]", "n2 = 2 [1]", "n3 = 3 [1]", "CURRENT[1] token", "NO_CHANGE token", "REMOVE[1]",
      ])
    let target = #"{"addTarget": {"targetId": 2, "pipelineQuery": \#(pipeline)}}"#
    let other = try connect(server, ":listen?once=true", "POST", headers: [], body: target)
    #expect(transcript(try other.readToEnd()).contains("n3 = 3 [2]"))
    let refused = try server.call(
      "POST", TestServer.root + ":listen",
      #"{"structuredPipeline": {"pipeline": {"stages": [\#(stages[0]), \#(Pipe.stage("offset", Pipe.int(1)))]}}}"#)
    #expect(refused.status == 400 && refused.text.contains("Stage 2 (offset): Listeners follow"), "\(refused.text)")
  }

  @Test func resumedFeedSendsOnlyChanges() throws {
    let server = try TestServer()
    for number in 0..<20 { try set(server, "notes/n\(number)", number) }
    let first = try connect(server, "/notes:listen")
    try first.read(until: "id: ", count: 2)
    let token = try lastID(first.body)
    first.close()
    // If nothing changed, the feed sends no document again.
    let idle = try connect(server, "/notes:listen", headers: Self.events + [("Last-Event-ID", token)])
    try idle.read(until: "id: ", count: 2)
    #expect(transcript(idle.body) == ["retry: 2000", "ADD[1]", "CURRENT[1] token", "NO_CHANGE token"])
    try set(server, "notes/n3", 300)
    _ = try server.call("DELETE", "/notes/n4")
    try set(server, "notes/new", 1)
    let expected: Set = ["n3 = 300 [1]", "documentDelete n4 [1]", "new = 1 [1]"]
    let encoded = token.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    for (path, headers) in [
      ("/notes:listen", [("Last-Event-ID", token)]), ("/notes:listen?resumeToken=\(encoded)", []),
      // Without percent-encoding, so with plus signs.
      ("/notes:listen?resumeToken=\(token)", []),
      // The header that a browser sends when it reconnects overrides the URL.
      ("/notes:listen?resumeToken=AAAA", [("Last-Event-ID", token)]),
    ] {
      let feed = try connect(server, path, headers: Self.events + headers)
      try feed.read(until: "id: ", count: 2)
      let lines = transcript(feed.body)
      #expect(
        lines.first == "retry: 2000" && lines[1] == "ADD[1]"
          && lines.suffix(2) == ["CURRENT[1] token", "NO_CHANGE token"])
      #expect(Set(lines.dropFirst(2).dropLast(2)) == expected, "\(path)")
    }
  }

  @Test(arguments: ["AAAA", "no base64!", "%F0%9F%8E%88"]) func unknownTokensStartOver(token: String) throws {
    let server = try TestServer()
    try set(server, "notes/a", 1)
    let feed = try connect(
      server, "/notes:listen?once=true&resumeToken=\(token.replacingOccurrences(of: " ", with: "+"))")
    #expect(
      transcript(try feed.readToEnd()) == [
        "retry: 2000", "ADD[1]", "RESET[1]", "a = 1 [1]", "CURRENT[1] token", "NO_CHANGE token", "REMOVE[1]",
      ])
  }

  @Test func feedFollowsADocument() throws {
    let server = try TestServer()
    let feed = try connect(server, "/notes/a:listen", headers: [])
    try feed.read(until: "\n", count: 4)
    #expect(transcript(feed.body) == ["ADD[1]", "documentDelete a [1]", "CURRENT[1] token", "NO_CHANGE token"])
    #expect(feed.head.contains("content-type: application/x-ndjson"))
    try set(server, "notes/b", 2)
    try set(server, "notes/a", 1)
    try feed.read(until: "\n", count: 6)
    #expect(transcript(feed.body).dropFirst(4) == ["a = 1 [1]", "NO_CHANGE token"])
  }

  @Test func documentsThatNoLongerMatchAreRemoved() throws {
    let server = try TestServer()
    for (id, n) in [("a", 1), ("b", 2), ("c", 3)] { try set(server, "notes/\(id)", n) }
    let query = """
      {"structuredQuery": {"from": [{"collectionId": "notes"}], "orderBy": [{"field": {"fieldPath": "n"}}], "limit": 2}}
      """
    let feed = try connect(server, ":listen", "POST", headers: [], body: query)
    try feed.read(until: "\n", count: 5)
    #expect(transcript(feed.body) == ["ADD[1]", "a = 1 [1]", "b = 2 [1]", "CURRENT[1] token", "NO_CHANGE token"])
    try set(server, "notes/a", 10)
    try feed.read(until: "resumeToken", count: 3)
    let lines = transcript(feed.body).dropFirst(5)
    #expect(lines.contains("c = 3 [1]"), "the window refills: \(lines)")
    #expect(lines.contains { $0 == "documentRemove a [1]" || $0 == "a = 10  removed [1]" }, "\(lines)")
  }

  @Test func feedAcceptsAListenRequest() throws {
    let server = try TestServer()
    try set(server, "notes/a", 1)
    let request = """
      {"database": "projects/p/databases/(default)", "addTarget": {"targetId": 7, "once": true,
       "documents": {"documents": ["\(TestServer.name)/notes/a", "\(TestServer.name)/notes/none"]}}}
      """
    let feed = try connect(server, ":listen?alt=sse", "POST", headers: [], body: request)
    let lines = transcript(try feed.readToEnd())
    #expect(feed.head.contains("text/event-stream"))
    #expect(Set(lines[2...3]) == ["a = 1 [7]", "documentDelete none [7]"])
    #expect(lines.suffix(3) == ["CURRENT[7] token", "NO_CHANGE token", "REMOVE[7]"])
    // A query of a parent that the path names.
    try set(server, "notes/a/below/b", 2)
    let below = try connect(
      server, "/notes/a:listen?once=true", "POST", headers: [],
      body: #"{"structuredQuery": {"from": [{"collectionId": "below"}]}}"#)
    #expect(transcript(try below.readToEnd()).contains("b = 2 [1]"))
  }

  @Test func listingParametersOrderAndLimit() throws {
    let server = try TestServer()
    for (id, n) in [("a", 1), ("b", 2), ("c", 3)] { try set(server, "notes/\(id)", n) }
    let feed = try connect(server, "/notes:listen?orderBy=n%20desc&pageSize=2&once=true", headers: [])
    #expect(
      transcript(try feed.readToEnd()) == [
        "ADD[1]", "c = 3 [1]", "b = 2 [1]", "CURRENT[1] token", "NO_CHANGE token", "REMOVE[1]",
      ])
  }

  @Test(arguments: [
    ("GET", "/notes:listen?pageSize=-1", "", 400), ("GET", "/notes:listen?orderBy=,", "", 400),
    ("GET", "/notes:listen?nonsense=1", "", 400), ("GET", "/notes/__bad__:listen", "", 400),
    ("GET", ":listen", "", 400), ("GET", "/notes:listen?readTime=yesterday", "", 400),
    ("POST", ":listen", "", 400), ("POST", ":listen", "{}", 400), ("POST", ":listen", "[", 400),
    ("POST", ":listen", #"{"removeTarget": 3}"#, 400),
    ("POST", ":listen", #"{"structuredQuery": {"from": []}, "nonsense": 1}"#, 400),
    (
      "POST", ":listen",
      #"{"addTarget": {"documents": {"documents": ["projects/q/databases/(default)/documents/a/b"]}}}"#, 400
    ),
    ("POST", ":listen", #"{"addTarget": {"targetId": 2, "pipelineQuery": {}}}"#, 400),
    ("POST", "/notes:listen", #"{"structuredQuery": {"from": [{"collectionId": "a"}]}}"#, 400),
    ("POST", ":changes", "", 404), ("GET", ":changes?since=AAAA", "", 400),
  ]) func invalidRequestsAreRefused(method: String, path: String, body: String, status: Int) throws {
    let server = try TestServer()
    let reply = try server.call(
      method, path.hasPrefix(":") ? TestServer.root + path : path, body, headers: [("Authorization", "Bearer owner")])
    #expect(reply.status == status, "\(reply.text)")
    if status != 404 { #expect(reply.json("error", "message") != nil, "\(reply.text)") }
  }

  @Test func rulesAuthorizeFeeds() throws {
    let server = try TestServer()
    let rules = """
      service cloud.firestore { match /databases/{d}/documents {
        match /open/{id} { allow read, write; }
        match /own/{id} { allow read: if request.auth.uid == id; }
      }}
      """
    let loaded = try server.call(
      "PUT", "/emulator/v1/projects/p:securityRules",
      String(
        decoding: try JSONSerialization.data(withJSONObject: ["rules": ["files": [["name": "r", "content": rules]]]]),
        as: UTF8.self))
    try #require(loaded.status == 200, "\(loaded.text)")
    let admin = [("Authorization", "Bearer owner")]
    _ = try server.call("PATCH", "/own/u1", "{}", headers: admin)
    for path in ["/closed:listen", "/own/u1:listen", "/own:listen", ":changes"] {
      let feed = try connect(server, path)
      try feed.readToEnd()
      #expect(feed.status == 403, "\(path): \(feed.body)")
      #expect(feed.body.contains("PERMISSION_DENIED"))
    }
    #expect(transcript(try connect(server, "/open:listen?once=true").readToEnd()).contains("CURRENT[1] token"))
    // EventSource sends no headers, so the token is in the query.
    func part(_ json: String) -> String {
      Data(json.utf8).base64EncodedString().replacingOccurrences(of: "=", with: "")
    }
    let token = part(#"{"alg":"none"}"#) + "." + part(#"{"sub":"u1","user_id":"u1"}"#) + "."
    for name in ["access_token", "auth"] {
      let own = try connect(server, "/own/u1:listen?once=true&\(name)=\(token)")
      try own.readToEnd()
      #expect(own.status == 200, "\(own.body)")
      let other = try connect(server, "/own/u2:listen?once=true&\(name)=\(token)")
      try other.readToEnd()
      #expect(other.status == 403)
    }
    // Only feeds accept it there.
    #expect(try server.call("GET", "/own/u1?access_token=\(token)").status == 403)
  }

  @Test func idsThatEndLikeAVerbCanBeEncoded() throws {
    let server = try TestServer()
    try set(server, "notes/a%3Alisten", 1)
    #expect(try server.call("GET", "/notes/a%3Alisten").status == 200)
    try set(server, "notes/a:changes", 2)
    #expect(try server.call("GET", "/notes/a:changes").status == 200)
  }
}
