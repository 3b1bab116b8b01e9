import DatabaseService
import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

/// Limits of requests per minute, over each API.
@Suite struct RateLimitTests {
  private static let openRules = "match /{document=**} { allow read, write: if true; }"

  private func rulesServer(_ rates: RequestRates) throws -> RulesServer {
    try RulesServer(rules: Self.openRules, users: ["ann", "bob"], usesSystemClock: true) { $0.rates = rates }
  }

  @Test func unauthenticatedCallersOfAnAddressAreLimited() throws {
    let server = try TestServer { $0.rates = RequestRates(addressRequests: 5) }
    func call(_ address: String, _ path: String = "/c/a", _ token: String? = nil) throws -> TestServer.Response {
      try server.call(
        "GET", path,
        headers: [("X-Forwarded-For", address)] + (token.map { [("Authorization", "Bearer \($0)")] } ?? []))
    }
    for _ in 0..<5 { #expect(try call("192.0.2.1").status == 404) }
    let refused = try call("192.0.2.1")
    #expect(refused.status == 429)
    #expect(refused.json("error", "status") == "RESOURCE_EXHAUSTED")
    #expect(
      refused.message.hasPrefix("Too many requests: the limit is 5 requests per minute and address without sign-in."))
    #expect(refused.header("retry-after").flatMap { Int($0) }.map { (1...12).contains($0) } == true)
    // Other addresses, administrators and health checks are not affected. The client cannot choose the last address.
    #expect(try call("192.0.2.2").status == 404)
    #expect(try call("192.0.2.2, 192.0.2.1").status == 429)
    #expect(try call("192.0.2.1", "/c/a", "owner").status == 404)
    #expect(try call("192.0.2.1", "/healthz").status == 200)
    // All addresses of an IPv6 network belong to one client.
    for number in 0..<5 { #expect(try call("2001:db8::\(number)").status == 404) }
    #expect(try call("2001:db8::ffff").status == 429)
    #expect(try call("2001:db8:0:1::1").status == 404)
    // Files and accounts have the same limit, in their own form.
    let file = try call("192.0.2.1", "/v0/b/p.appspot.com/o/x")
    #expect(file.status == 429 && file.header("retry-after") != nil, "\(file.text)")
    let account = try server.call(
      "POST", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=k", "{}",
      headers: [("X-Forwarded-For", "192.0.2.1"), ("Content-Type", "application/json")])
    #expect(account.status == 400 && account.message.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER"), "\(account.text)")
    let metrics = try server.request("GET", "/metrics", headers: [("Authorization", "Bearer owner")]).text
    #expect(metrics.contains(#"hearth_rate_limited_total{limit="address_requests"} 5"#), "\(metrics.prefix(3000))")
  }

  @Test func requestsOfAUserAreLimited() throws {
    let server = try rulesServer(RequestRates(userRequests: 3))
    let (ann, bob) = (try server.token("ann"), try server.token("bob"))
    for _ in 0..<3 { #expect(try server.call(ann, "GET", "/c/a").status == 404) }
    #expect(try server.call(ann, "GET", "/c/a").status == 429)
    // Another token of the same user does not help.
    #expect(try server.call(try server.token("ann"), "GET", "/c/a").status == 429)
    #expect(try server.call(bob, "GET", "/c/a").status == 404)
    for _ in 0..<10 { #expect(try server.call(nil, "GET", "/c/a").status == 404) }
    for _ in 0..<10 { #expect(try server.call(server.admin, "GET", "/c/a").status == 404) }
  }

  @Test func readsAndWritesOfAUserAreLimited() throws {
    let server = try rulesServer(RequestRates(userReads: 10, userWrites: 4))
    let (ann, bob) = (try server.token("ann"), try server.token("bob"))
    for number in 0..<20 {
      let body = #"{"fields": {"n": {"integerValue": "\#(number)"}}}"#
      #expect(try server.call(server.admin, "PATCH", "/c/d\(number)", body).status == 200)
    }
    for _ in 0..<4 { #expect(try server.call(ann, "PATCH", "/c/mine", #"{"fields": {}}"#).status == 200) }
    let refused = try server.call(ann, "PATCH", "/c/mine", #"{"fields": {}}"#)
    #expect(refused.status == 429 && refused.message.contains("4 documents written per minute and user"))
    #expect(refused.header("retry-after") != nil)
    #expect(try server.call(ann, "DELETE", "/c/mine").status == 429)
    // Reads have an allowance of their own. A query that begins within it ends.
    let page = try server.call(ann, "GET", "/c?pageSize=15")
    #expect(page.status == 200 && page.text.contains("/c/d2"))
    let next = try server.call(ann, "GET", "/c/d1")
    #expect(next.status == 429 && next.message.contains("10 documents read per minute and user"), "\(next.text)")
    let query = #"{"structuredQuery": {"from": [{"collectionId": "c"}]}}"#
    #expect(try server.call(ann, "POST", ":runQuery", query).status == 429)
    #expect(try server.call(bob, "POST", ":runQuery", query).status == 200)
    #expect(try server.call(bob, "POST", ":runQuery", query).status == 429)
    for _ in 0..<3 { #expect(try server.call(server.admin, "POST", ":runQuery", query).status == 200) }
  }

  /// Pipelines count the documents that they read, also if they return one row.
  @Test func readsOfPipelinesAreLimited() throws {
    let server = try rulesServer(RequestRates(userReads: 10))
    for number in 0..<20 {
      #expect(try server.call(server.admin, "PATCH", "/c/d\(number)", #"{"fields": {}}"#).status == 200)
    }
    let all = Pipe.call("array_agg", Pipe.field("__name__"))
    let pipeline = Pipe.body([
      Pipe.stage("collection", Pipe.reference("/c")), Pipe.stage("aggregate", Pipe.map(("all", all)), Pipe.map()),
    ])
    let ann = try server.token("ann")
    let first = try server.call(ann, "POST", ":executePipeline", pipeline)
    #expect(first.status == 200 && first.text.contains("/c/d19"), "\(first.text)")
    let second = try server.call(ann, "POST", ":executePipeline", pipeline)
    #expect(second.status == 429 && second.message.contains("10 documents read per minute and user"))
    #expect(try server.call(ann, "GET", "/c/d1").status == 429)
  }

  /// Listeners count the documents that they send, and the refusal ends only the new target.
  @Test func streamsOfAUserAreLimited() throws {
    let server = try rulesServer(RequestRates(userReads: 6, userWrites: 2))
    for number in 0..<8 {
      #expect(try server.call(server.admin, "PATCH", "/c/d\(number)", #"{"fields": {}}"#).status == 200)
    }
    let token = try server.token("ann")
    let authorization = [("authorization", "Bearer \(token)")]
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen", headers: authorization)
    grpc.send(GRPCListenTests.query(2, "c"), on: stream)
    func received(_ text: String) throws -> Bool {
      for _ in 0..<30 {
        guard let message = try grpc.next(on: stream) else { return false }
        if String(decoding: message, as: UTF8.self).contains(text) { return true }
      }
      return false
    }
    #expect(try received("/c/d7"))
    grpc.send(GRPCListenTests.query(4, "c"), on: stream)
    #expect(try received("6 documents read per minute and user"))
    // The first target continues.
    #expect(try server.call(server.admin, "PATCH", "/c/new", #"{"fields": {}}"#).status == 200)
    #expect(try received("/c/new"))
    #expect(try server.call(token, "GET", "/c/d0").status == 429)
    // Writes of a channel.
    let channel = ChannelClient(server.port, "Write")
    try channel.open(
      ChannelClient.form(
        [#"{"database":"projects/p/databases/(default)"}"#], from: 0, headers: "Authorization:Bearer \(token)\r\n"))
    try channel.listen("AID=0&CI=0")
    #expect(try channel.next().contains("streamToken"))
    for number in 1...3 {
      let write =
        #"{"streamToken":"MA==","writes":[{"update":{"name":"\#(TestServer.name)/c/w\#(number)","fields":{}}}]}"#
      _ = try channel.send(ChannelClient.form([write], from: number), acknowledging: 1)
    }
    var rest = ""
    while !rest.contains("RESOURCE_EXHAUSTED"), let part = try channel.back?.next() { rest += part }
    #expect(rest.contains("2 documents written per minute and user"), "\(rest)")
    #expect(try server.call(server.admin, "GET", "/c/w2").status == 200)
    #expect(try server.call(server.admin, "GET", "/c/w3").status == 404)
  }

  @Test func callsAndChannelsOfAUserAreLimited() throws {
    let server = try rulesServer(RequestRates(userRequests: 2))
    let token = try server.token("ann")
    let grpc = try GRPCConnection(port: server.port)
    let request = Message { ProtobufWriter.string(1, "\(TestServer.name)/c/a", to: &$0) }.bytes
    func status(_ token: String) throws -> GRPCConnection.Response {
      try grpc.call("GetDocument", request, headers: [("authorization", "Bearer \(token)")])
    }
    for _ in 0..<2 { #expect(try status(token).status == 5) }
    #expect(try status(token).status == 8)
    #expect(try status(server.admin).status == 5)
    let channel = ChannelClient(server.port)
    try channel.open(ChannelClient.form([], from: 0, headers: "Authorization:Bearer \(token)\r\n"))
    try channel.listen("AID=0&CI=0")
    #expect(try channel.next().contains("RESOURCE_EXHAUSTED"))
  }

  /// Some proxies add the port of the client, which the client can choose, and some send `Forwarded`.
  @Test func eachFormOfAnAddressIsTheSameClient() throws {
    let server = try TestServer { $0.rates = RequestRates(addressRequests: 4) }
    func status(_ name: String, _ value: String) throws -> Int {
      try server.call("GET", "/c/a", headers: [(name, value)]).status
    }
    #expect(try status("X-Forwarded-For", "192.0.2.1:1001") == 404)
    #expect(try status("X-Forwarded-For", "203.0.113.9, 192.0.2.1:1002") == 404)
    #expect(try status("Forwarded", "for=203.0.113.9;proto=https, for=192.0.2.1;proto=https") == 404)
    #expect(try status("Forwarded", "proto=https; FOR=\"192.0.2.1:77\"") == 404)
    #expect(try status("X-Forwarded-For", "192.0.2.1") == 429)
    #expect(try status("X-Forwarded-For", "[2001:db8::1]:77") == 404)
    #expect(try status("Forwarded", "for=\"[2001:db8::2]:78\"") == 404)
    for _ in 0..<2 { #expect(try status("X-Forwarded-For", "2001:db8::3") == 404) }
    #expect(try status("X-Forwarded-For", "[2001:db8::4]") == 429)
  }
}
