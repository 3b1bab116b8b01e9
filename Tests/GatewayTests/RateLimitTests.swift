import DatabaseService
import Foundation
import HearthServer
import Testing
import TestSupport

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
      let body = #"{"fields": {"n": {"integerValue": "\(number)"}}}"#
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
}
