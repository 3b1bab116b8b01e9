import Foundation
import HearthServer
import Testing
import TestSupport

/// The page of the console, and the log of decisions that it shows.
@Suite struct ConsoleTests {
  private static let path = "/_/console/"
  private static let browser = [
    ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"), ("Sec-Fetch-Dest", "document"),
  ]

  private static func assets(_ server: TestServer) throws -> [String] {
    try server.request("GET", path).text.matches(of: /src="(a\/[^"]+)"/).map { path + $0.output.1 }
  }

  @Test func pageAdmitsOnlyItsOwnScript() throws {
    let server = try TestServer()
    var nonces: Set<String> = []
    for _ in 0..<2 {
      let page = try server.request("GET", Self.path)
      #expect(page.status == 200 && page.header("cache-control") == "no-store")
      #expect(page.header("content-type") == "text/html; charset=utf-8")
      let policy = try #require(page.header("content-security-policy"))
      let nonce = try #require(policy.firstMatch(of: /script-src 'nonce-([0-9a-f]{32})'/)?.output.1)
      nonces.insert(String(nonce))
      for part in [
        "default-src 'none'", "style-src 'nonce-\(nonce)'", "connect-src 'self'", "frame-ancestors 'none'",
        "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
      ] {
        #expect(policy.contains(part), "\(part)")
      }
      #expect(!policy.contains("unsafe") && !policy.contains("http"))
      #expect(page.header("x-frame-options") == "DENY" && page.header("referrer-policy") == "no-referrer")
      #expect(page.header("cross-origin-opener-policy") == "same-origin")
      #expect(page.header("set-cookie") == nil && page.header("access-control-allow-origin") == nil)
      // The policy blocks every script and style sheet without the nonce.
      #expect(page.text.components(separatedBy: "nonce=\"\(nonce)\"").count == 4)
      #expect(page.text.matches(of: /<(?:script|style|link)[^>]*>/).count { !$0.output.contains("nonce=") } == 1)
      #expect(!page.text.contains("{{") && page.text.contains("data-project=\"p\""))
    }
    #expect(nonces.count == 2)
  }

  @Test func assetsAreSmallAndKeptForever() throws {
    let server = try TestServer()
    let assets = try Self.assets(server)
    #expect(assets.count == 1)
    let page = try server.request("GET", Self.path, headers: [("Accept-Encoding", "gzip")])
    #expect(page.header("content-encoding") == "gzip")
    var bytes = page.body.count
    for asset in assets {
      let plain = try server.request("GET", asset)
      #expect(plain.status == 200 && plain.header("cache-control") == "public, max-age=31536000, immutable")
      #expect(plain.header("x-content-type-options") == "nosniff" && plain.header("content-encoding") == nil)
      #expect(plain.header("cross-origin-resource-policy") == "same-origin")
      let packed = try server.request("GET", asset, headers: [("Accept-Encoding", "br, gzip")])
      #expect(packed.header("content-encoding") == "gzip" && packed.header("vary") == "Accept-Encoding")
      bytes += packed.body.count
      let other = asset.replacing(/a\/[0-9a-f]+/, with: "a/0123456789abcdef")
      #expect(try server.request("GET", other).status == 404)
    }
    #expect(bytes <= 150 << 10, "the page and the script have \(bytes) bytes")
  }

  @Test func scriptIsOneModuleWithoutImports() throws {
    let server = try TestServer()
    let script = try #require(try Self.assets(server).first { $0.hasSuffix(".js") })
    let lines = try server.request("GET", script).text.split(separator: "\n")
    #expect(lines.count > 1000)
    #expect(!lines.contains { $0.hasPrefix("export ") || $0.hasPrefix("import {") && $0.hasSuffix(".js\";") })
  }

  @Test func browsersAreSentToTheConsoleAndProbesAreNot() throws {
    let server = try TestServer()
    let browser = try server.request("GET", "/", headers: Self.browser)
    #expect(browser.status == 302 && browser.header("location") == Self.path)
    for headers in [[], [("Accept", "*/*")], [("Accept", "text/html"), ("Sec-Fetch-Dest", "empty")]] {
      let probe = try server.request("GET", "/", headers: headers)
      #expect(probe.status == 200 && probe.text == "Ok\n")
    }
    #expect(try server.request("GET", "/_/console").header("location") == Self.path)
    #expect(try server.request("HEAD", Self.path).status == 200)
  }

  @Test func foreignPagesCannotLoadIt() throws {
    let server = try TestServer()
    for host in ["evil.example", "evil.example:8080", "localhost.evil.example"] {
      #expect(try server.request("GET", Self.path, headers: [("Host", host)]).status == 421, "\(host)")
    }
    for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "hearth", "db.internal"] {
      #expect(try server.request("GET", Self.path, headers: [("Host", host)]).status == 200, "\(host)")
    }
    let origin = try server.request("GET", Self.path, headers: [("Origin", "https://evil.example")])
    #expect(origin.status == 421 && origin.header("access-control-allow-origin") == nil)
    for (site, destination, status) in [
      ("cross-site", "script", 403), ("same-site", "iframe", 403), ("cross-site", "document", 200),
      ("none", "document", 200), ("same-origin", "empty", 200),
    ] {
      let headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Dest", destination)]
      #expect(try server.request("GET", Self.path, headers: headers).status == status, "\(site) \(destination)")
    }
    let log = try server.request("GET", "/hearth/v1/requests", headers: [("Origin", "https://evil.example")])
    #expect(log.status == 403)
  }

  @Test func productionHasNone() throws {
    let server = try TestServer(.production)
    for path in [Self.path, "/_/console", "/hearth/v1/requests", "/hearth/v1/rules:check", "/hearth/v1/rules:test"] {
      for method in ["GET", "POST"] { #expect(try server.request(method, path).status == 404, "\(path)") }
    }
    #expect(try server.request("GET", "/", headers: Self.browser).text == "Ok\n")
    let without = try TestServer { $0.hasConsole = false }
    #expect(try without.request("GET", Self.path).status == 404)
    #expect(try without.request("GET", "/", headers: Self.browser).text == "Ok\n")
  }

  // MARK: - Decisions

  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function isMember(data) { return request.auth != null && request.auth.uid in data.members; }
        match /rooms/{room} {
          allow read: if isMember(resource.data);
          allow write: if isMember(resource.data) && request.resource.data.name.size() < 10;
        }
        match /open/{id} { allow read, write: if true; }
      }
    }
    """

  private static func user(_ uid: String) -> [(String, String)] {
    [("Authorization", "Bearer " + UnsignedToken.make(#"{"sub":"\#(uid)"}"#))]
  }

  private static func body(_ rules: String) -> String {
    let body: JSONNode = ["rules": ["files": [["name": "f.rules", "content": .string(rules)]]]]
    return body.text
  }

  /// A server with the rules above, and a room of ann.
  private static func server() throws -> TestServer {
    let server = try TestServer()
    let loaded = try server.call("PUT", "/emulator/v1/projects/p:securityRules", body(rules))
    #expect(loaded.status == 200)
    let room = #"{"fields":{"members":{"arrayValue":{"values":[{"stringValue":"ann"}]}},"name":{"stringValue":"R"}}}"#
    let made = try server.call("PATCH", "/rooms/r1", room, headers: [("Authorization", "Bearer owner")])
    #expect(made.status == 200)
    return server
  }

  @Test func everyDecisionIsListed() throws {
    let server = try Self.server()
    #expect(try server.call("GET", "/rooms/r1", headers: Self.user("ann")).status == 200)
    #expect(try server.call("GET", "/rooms/r1", headers: Self.user("bob")).status == 403)
    #expect(try server.call("GET", "/rooms").status == 403)
    #expect(try server.call("PATCH", "/open/o1", #"{"fields":{}}"#).status == 200)
    let list = try server.call("GET", "/hearth/v1/requests")
    #expect(list.json("last", as: Int.self) == 4)
    let found = (0..<4).map { index in
      let method: String = list.json("requests", index, "targets", 0, "method") ?? "?"
      let path: String = list.json("requests", index, "targets", 0, "path") ?? "?"
      let uid: String = list.json("requests", index, "uid") ?? "nobody"
      return "\(uid) \(method) \(path) \(list.json("requests", index, "allowed", as: Bool.self) ?? false)"
    }
    #expect(
      found == [
        "ann get rooms/r1 true", "bob get rooms/r1 false", "nobody list rooms false", "nobody set open/o1 true",
      ])
    let rest = try server.call("GET", "/hearth/v1/requests?after=3")
    #expect(rest.json("requests", 0, "number", as: Int.self) == 4)
    #expect(rest.json("requests", 1, as: [String: Any].self) == nil)
    #expect(try server.call("GET", "/hearth/v1/requests?after=x").status == 400)
    #expect(try server.call("DELETE", "/hearth/v1/requests").status == 200)
    #expect(try server.call("GET", "/hearth/v1/requests").json("requests", as: [Any].self)?.isEmpty == true)
    #expect(try server.call("GET", "/hearth/v1/requests/1").status == 404)
  }

  @Test func decisionHasTheValueOfEachExpression() throws {
    let server = try Self.server()
    _ = try server.call("GET", "/rooms/r1", headers: Self.user("bob"))
    _ = try server.call("GET", "/rooms/r1", headers: Self.user("ann"))
    let denied = try server.call("GET", "/hearth/v1/requests/1")
    #expect(denied.json("rules") == Self.rules)
    #expect(denied.json("parts", 0, "outcomes", 0, "line", as: Int.self) == 6)
    #expect(denied.json("parts", 0, "outcomes", 0, "result") == "false")
    #expect(denied.json("parts", 0, "trees", 0, "value") == "false")
    #expect(denied.text.contains(#""value":"\"bob\"""#) && denied.text.contains(#"[\"ann\"]"#))
    let start = try #require(denied.json("parts", 0, "trees", 0, "start", as: Int.self))
    let end = try #require(denied.json("parts", 0, "trees", 0, "end", as: Int.self))
    #expect(String(decoding: Array(Self.rules.utf8)[start..<end], as: UTF8.self) == "isMember(resource.data)")
    // An allowed request was not traced when it was served. It is evaluated again.
    let allowed = try server.call("GET", "/hearth/v1/requests/2")
    #expect(allowed.json("parts", 0, "trees", 0, "value") == "true")
    #expect(try server.call("GET", "/hearth/v1/requests/x").status == 404)
  }

  @Test func replayFindsWhatOtherRulesWouldDecide() throws {
    let server = try Self.server()
    _ = try server.call("GET", "/rooms/r1", headers: Self.user("bob"))
    _ = try server.call("GET", "/rooms/r1", headers: Self.user("ann"))
    _ = try server.call("PATCH", "/open/o1", #"{"fields":{}}"#)
    let same = try server.call("POST", "/hearth/v1/requests:replay", Self.body(Self.rules))
    #expect(same.json("evaluated", as: Int.self) == 3 && same.json("changed", as: [Any].self)?.isEmpty == true)
    // The room stays as it was at the time of the request.
    _ = try server.call("DELETE", "/rooms/r1", headers: [("Authorization", "Bearer owner")])
    let closed = Self.rules.replacingOccurrences(of: "allow read, write: if true", with: "allow read, write: if false")
    let changed = try server.call("POST", "/hearth/v1/requests:replay", Self.body(closed))
    #expect(changed.json("changed", 0, "number", as: Int.self) == 3)
    #expect(changed.json("changed", 0, "allowed", as: Bool.self) == true)
    #expect(changed.json("changed", as: [Any].self)?.count == 1)
    let broken = try server.call("POST", "/hearth/v1/requests:replay", Self.body("service {"))
    #expect(broken.status == 400 && broken.message.hasPrefix("Error compiling rules:"))
    #expect(try server.call("POST", "/hearth/v1/requests:replay", "{}").status == 400)
    // Nothing was loaded.
    #expect(try server.call("GET", "/open/o1").status == 200)
  }

  @Test func checkReportsDiagnosticsAndLoadsNothing() throws {
    let server = try Self.server()
    let fine = try server.call("POST", "/hearth/v1/rules:check", Self.body(Self.rules))
    #expect(fine.status == 200 && !fine.text.contains(#""severity":"error""#), "\(fine.text)")
    let wrong = Self.rules.replacingOccurrences(of: "isMember(resource.data);", with: "isMembr(resource.data);")
    let found = try server.call("POST", "/hearth/v1/rules:check", Self.body(wrong))
    #expect(found.json("diagnostics", 0, "line", as: Int.self) == 6)
    let broken = try server.call("POST", "/hearth/v1/rules:check", Self.body("service cloud.firestore {"))
    #expect(broken.status == 200 && broken.json("diagnostics", 0, "severity") == "error")
    #expect(try server.call("GET", "/rooms/r1", headers: Self.user("ann")).status == 200)
  }

  private static let tests = """
    {"rules": "other.rules",
     "documents": {"$collections": ["rooms"], "rooms": {"r1": {"members": ["ann"], "name": "R"}}},
     "cases": [
       {"it": "lets a member read", "as": "ann", "get": "rooms/r1", "expect": "allow"},
       {"it": "is wrong", "as": "bob", "get": "rooms/r1", "expect": "allow"}]}
    """

  private static func testBody(_ rules: String, _ tests: String, mutate: Bool = false) -> String {
    let body: JSONNode = [
      "rules": ["files": [["name": "f.rules", "content": .string(rules)]]], "tests": .string(tests),
      "mutate": .bool(mutate),
    ]
    return body.text
  }

  @Test func testsRunByTheRulesInTheBody() throws {
    let server = try Self.server()
    let path = "/hearth/v1/rules:test"
    let found = try server.call("POST", path, Self.testBody(Self.rules, Self.tests, mutate: true))
    #expect(found.status == 200, "\(found.text)")
    #expect(found.json("run", "passed", as: Int.self) == 1 && found.json("run", "failed", as: Int.self) == 1)
    #expect(found.json("run", "cases", 0, "it") == "lets a member read")
    #expect(found.json("run", "cases", 0, "allowedBy", as: Int.self) == 6)
    #expect(found.json("run", "cases", 1, "why", 0) == "expected allow, got deny")
    #expect(found.json("coverage", 0, "sourcePosition", "line", as: Int.self) == 4)
    #expect(found.json("mutations", "complete", as: Bool.self) == true)
    let tried = try #require(found.json("mutations", "tried", as: Int.self))
    let survivors = try #require(found.json("mutations", "survivors", as: [Any].self))
    #expect(tried > survivors.count && !survivors.isEmpty)
    #expect(
      try server.call("POST", path, Self.testBody(Self.rules, Self.tests)).json("mutations", as: [String: Any].self)
        == nil)
    // The rules of the body are used, whatever the file names, and nothing is loaded.
    let open = Self.rules.replacingOccurrences(
      of: "allow read: if isMember(resource.data)", with: "allow read: if true")
    #expect(try server.call("POST", path, Self.testBody(open, Self.tests)).json("run", "failed", as: Int.self) == 0)
    #expect(try server.call("GET", "/rooms/r1").status == 403)
  }

  @Test func testsCannotNameFiles() throws {
    let server = try Self.server()
    for (tests, message) in [
      (#"{"fixture": "/etc/passwd", "cases": []}"#, #"Line 1: "fixture" names a file"#),
      (#"{"rules": "/etc/passwd"}"#, #"Line 1: the file has no "cases""#), ("{", "Line 1:"), ("[]", "Line 1:"),
    ] {
      let found = try server.call("POST", "/hearth/v1/rules:test", Self.testBody(Self.rules, tests))
      #expect(found.status == 400 && found.message.hasPrefix(message), "\(tests): \(found.text)")
    }
    let broken = try server.call("POST", "/hearth/v1/rules:test", Self.testBody("service {", Self.tests))
    #expect(broken.status == 400 && broken.message.hasPrefix("Error compiling rules:"))
    for body in ["{}", "[]", Self.body(Self.rules), #"{"tests": "{}"}"#] {
      #expect(try server.call("POST", "/hearth/v1/rules:test", body).status == 400, "\(body)")
    }
  }

  @Test func requestsBecomeTestsThatPass() throws {
    let server = try Self.server()
    _ = try server.call("GET", "/rooms/r1", headers: Self.user("ann"))
    _ = try server.call("GET", "/rooms/r1", headers: Self.user("bob"))
    let recorded = try server.call("GET", "/hearth/v1/requests:record")
    #expect(recorded.json("suites", 0, "count", as: Int.self) == 2)
    #expect(recorded.json("suites", 0, "service") == "cloud.firestore")
    let tests: String = try #require(recorded.json("suites", 0, "tests"))
    let run = try server.call("POST", "/hearth/v1/rules:test", Self.testBody(Self.rules, tests))
    #expect(run.json("run", "passed", as: Int.self) == 2 && run.json("run", "failed", as: Int.self) == 0, "\(run.text)")
  }

  @Test func logKeepsTheLastThousand() throws {
    let server = try Self.server()
    for _ in 0..<1010 { _ = try server.call("GET", "/open/o1") }
    let list = try server.call("GET", "/hearth/v1/requests")
    #expect(list.json("requests", as: [Any].self)?.count == 1000)
    #expect(list.json("requests", 0, "number", as: Int.self) == 11 && list.json("last", as: Int.self) == 1010)
  }
}
