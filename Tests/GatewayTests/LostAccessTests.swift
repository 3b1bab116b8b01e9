import Accounts
import DocumentModel
import Foundation
import Testing
import TestSupport

/// Production mode: after a user loses access, reads in the past and idle streams end too. Another user cannot use a
/// transaction.
@Suite struct LostAccessTests {
  private static func service() throws -> RulesServer {
    try RulesServer(
      rules: """
        function role() { return get(/databases/$(database)/documents/roles/$(request.auth.uid)).data.name; }
        match /team/{id} { allow read: if role() == 'reader'; }
        match /notes/{id} { allow read: if resource.data.public == true; }
        match /users/{uid} { allow read: if request.auth.uid == uid; }
        match /flags/{id} { allow get: if resource.data.open == true; }
        """, users: ["ann", "ben"], usesSystemClock: true)
  }

  /// Requests of documents at a moment; MOMENT is a member of a JSON object.
  private static let requests: [(name: String, path: String, body: String)] = [
    ("batchGet", ":batchGet", #"{"documents": ["ROOT/COL/a"], MOMENT}"#),
    ("query", ":runQuery", #"{"structuredQuery": QUERY, MOMENT}"#),
    (
      "count", ":runAggregationQuery",
      #"{"structuredAggregationQuery": {"structuredQuery": QUERY, "aggregations": [{"count": {}}]}, MOMENT}"#
    ),
  ]
  private static let query = """
    {"from": [{"collectionId": "COL"}], "where": {"fieldFilter": {
      "field": {"fieldPath": "public"}, "op": "EQUAL", "value": {"booleanValue": true}}}}
    """

  @Test(arguments: ["team", "notes"]) func lostAccessIsLostInThePast(collection: String) throws {
    let service = try Self.service()
    let ann = try service.token("ann")
    try service.set("roles/ann", "name", #"{"stringValue": "reader"}"#)
    let time = try service.set("\(collection)/a", "public", #"{"booleanValue": true}"#)
    let begun = try service.call(ann, "POST", ":beginTransaction", #"{"options": {"readOnly": {}}}"#)
    let transaction = try #require(begun.json("transaction") as String?, "\(begun.text)")
    let moments = [#""readTime": "\#(time)""#, #""transaction": "\#(transaction)""#]
    func statuses() throws -> [Int] {
      var found: [Int] = []
      for parameter in ["readTime=\(time)", "transaction=\(transaction)"] {
        let escaped = parameter.replacing("+", with: "%2B")
        found.append(try service.call(ann, "GET", "/\(collection)/a?\(escaped)").status)
      }
      for moment in moments {
        for request in Self.requests {
          let body = request.body.replacing("QUERY", with: Self.query).replacing("MOMENT", with: moment)
            .replacing("COL", with: collection).replacing("ROOT", with: TestServer.name)
          let reply = try service.call(ann, "POST", request.path, body)
          found.append(reply.status == 200 ? reply.json(0, "error", "code", as: Int.self) ?? 200 : reply.status)
        }
      }
      return found
    }
    #expect(try statuses() == Array(repeating: 200, count: 8))
    if collection == "team" {
      try service.set("roles/ann", "name", #"{"stringValue": "none"}"#)
    } else {
      try service.set("notes/a", "public", #"{"booleanValue": false}"#)
    }
    #expect(try statuses() == Array(repeating: 403, count: 8))
  }

  /// The rules need several slices for the batch. A denial has the same form in each of them.
  @Test(arguments: [0, 999]) func aDeniedBatchIsAnArrayWithOneError(place: Int) throws {
    let service = try Self.service()
    for slice in 0..<2 {
      let writes = (0..<500).map { number in
        let name = "\(TestServer.name)/flags/\(10_000 + slice * 500 + number)"
        let isOpen = slice * 500 + number != place
        return #"{"update": {"name": "\#(name)", "fields": {"open": {"booleanValue": \#(isOpen)}}}}"#
      }
      let reply = try service.call(
        service.admin, "POST", ":commit", #"{"writes": [\#(writes.joined(separator: ","))]}"#)
      try #require(reply.status == 200, "\(reply.text)")
    }
    let names = (0..<1000).map { #""\#(TestServer.name)/flags/\#(10_000 + $0)""# }
    let reply = try service.call(
      service.token("ann"), "POST", ":batchGet", #"{"documents": [\#(names.joined(separator: ","))]}"#)
    #expect(reply.status == 403)
    #expect(reply.json(0, "error", "status") == "PERMISSION_DENIED", "\(reply.text)")
  }

  @Test func transactionsBelongToTheirCallers() throws {
    let service = try Self.service()
    let (ann, ben) = (try service.token("ann"), try service.token("ben"))
    let begun = try service.call(ann, "POST", ":beginTransaction", "{}")
    let transaction = try #require(begun.json("transaction") as String?, "\(begun.text)")
    for caller in [ben, nil, service.admin] {
      for (path, body) in [(":commit", #"{"transaction": "T"}"#), (":rollback", #"{"transaction": "T"}"#)] {
        let reply = try service.call(caller, "POST", path, body.replacing("T\"", with: transaction + "\""))
        #expect(reply.status == 400 && reply.message == "Invalid transaction.", "\(path): \(reply.text)")
      }
    }
    let reply = try service.call(
      try service.token("ann"), "POST", ":commit", #"{"transaction": "\#(transaction)"}"#)
    #expect(reply.status == 200, "\(reply.text)")
  }

  /// A way to invalidate the tokens of a user.
  enum Loss: CaseIterable { case disabled, deleted, revoked }

  private static func lose(_ loss: Loss, _ uid: String, _ accounts: AccountStore) throws {
    switch loss {
    case .disabled: _ = try accounts.users.update(uid) { $0.isDisabled = true }
    case .deleted: _ = try accounts.users.remove(uid, now: accounts.now() / 1000)
    case .revoked: _ = try accounts.users.update(uid) { $0.validSince = accounts.nowSeconds + 1 }
    }
  }

  /// The time in which an idle stream must end. Without a notice it ends with the next NO_CHANGE, after up to 32 s.
  private static let endsWithin = Duration.seconds(3)

  @Test(arguments: Loss.allCases) func idleStreamsEnd(_ loss: Loss) throws {
    let service = try Self.service()
    let (port, token) = (service.port, try service.token("ann"))
    let authorization = [("authorization", "Bearer \(token)")]
    try service.set("users/ann", "n", #"{"integerValue": "1"}"#)
    let grpc = try GRPCConnection(port: port)
    let stream = grpc.open("Listen", headers: authorization)
    grpc.send(GRPCListenTests.documents(2, "users/ann"), on: stream)
    for _ in 0..<4 { _ = try #require(try grpc.next(on: stream)) }
    let feed = try FeedConnection(port: port, "GET", TestServer.root + "/users/ann:listen", headers: authorization)
    try feed.read(until: "resumeToken", count: 2)
    let channel = ChannelClient(port)
    let target = """
      {"database":"projects/p/databases/(default)","addTarget":{"documents":{"documents":[
      "\(TestServer.name)/users/ann"]},"targetId":2}}
      """
    let opened = try channel.open(
      ChannelClient.form([target], from: 0, headers: "Authorization:Bearer \(token)\r\n"))
    #expect(opened.status == 200, "\(opened.text)")
    try channel.listen("AID=0&CI=0")
    var received = ""
    while received.split(separator: "resumeToken", omittingEmptySubsequences: false).count < 3 {
      received += try channel.next()
    }
    let clock = ContinuousClock()
    // The loss of another user ends no stream of this one.
    try Self.lose(loss, "ben", service.accounts)
    let start = clock.now
    try Self.lose(loss, "ann", service.accounts)
    let end = try grpc.end(of: stream)
    #expect(end.status == 16, "\(end.statusMessage)")
    #expect(try feed.readToEnd().contains("UNAUTHENTICATED"), "\(feed.body)")
    received = ""
    while !received.contains("UNAUTHENTICATED") { received += try channel.next() }
    #expect(clock.now - start < Self.endsWithin)
  }

  @Test func theChangeFeedOfARevokedKeyEnds() throws {
    let service = try Self.service()
    let keys = service.accounts.serviceKeys
    let program = try ServiceProgram(try #require(MapValue(json: try keys.create(name: "backend", url: "http://x"))))
    let signed = try program.sign(
      [("aud", .string("https://oauth2.googleapis.com/token"))], at: service.accounts.nowSeconds)
    let token = try keys.accessToken(for: Array(signed.utf8), at: [])
    let feed = try FeedConnection(
      port: service.port, "GET", TestServer.root + ":changes", headers: [("authorization", "Bearer \(token)")])
    try feed.read(until: "resumeToken")
    let start = ContinuousClock().now
    #expect(try keys.revoke("backend"))
    #expect(try feed.readToEnd().contains("UNAUTHENTICATED"), "\(feed.body)")
    #expect(ContinuousClock().now - start < Self.endsWithin)
  }
}
