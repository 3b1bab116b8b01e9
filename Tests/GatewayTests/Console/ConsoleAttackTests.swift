import Accounts
import Foundation
import GatewayCore
import HearthServer
import Testing
import TestSupport

/// Attacks on the console of a production server: by pages of other origins, by names that lead to it, by markup, and
/// through its address.
@Suite struct ConsoleAttackTests {
  private static let page = "/_/console/"

  @Test func thePageIsServedToItsOwnNamesOnly() throws {
    let console = try OperatorConsole { $0.consoleHost = "console.example.com" }
    for host in ["evil.example", "evil.example:8081", "localhost.evil.example", "console.example.com.evil.example", ""]
    {
      for path in [Self.page, "/", "/hearth/v1/session", "/metrics"] {
        let reply = try console.request("GET", path, headers: [("Host", host)])
        #expect(reply.status == 421, "\(host) \(path): \(reply.status)")
        #expect(reply.header("access-control-allow-origin") == nil)
      }
    }
    for host in [
      "localhost", "127.0.0.1:8081", "[::1]:8081", "console.example.com", "CONSOLE.example.com:443", "hearth",
    ] {
      #expect(try console.request("GET", Self.page, headers: [("Host", host)]).status == 200, "\(host)")
    }
    // A script can set this field, so it proves nothing.
    let forged = [("Host", "evil.example"), ("X-Forwarded-Host", "localhost")]
    #expect(try console.request("GET", Self.page, headers: forged).status == 421)
  }

  @Test func thePageHasAStrictPolicyAndNoProjectOfOthers() throws {
    let console = try OperatorConsole()
    let page = try console.request("GET", Self.page)
    #expect(page.text.contains("data-mode=\"production\"") && page.header("cache-control") == "no-store")
    #expect(page.header("set-cookie") == nil && page.header("x-frame-options") == "DENY")
    let policy = try #require(page.header("content-security-policy"))
    for part in ["default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"] {
      #expect(policy.contains(part))
    }
    #expect(try console.request("GET", "/").header("location") == Self.page)
    #expect(try console.request("GET", "/_/console").header("location") == Self.page)
    for path in ["/_/console/x", "/_/console/../hearth/v1/keys", "/index.html", "/_/consolex"] {
      #expect(try console.request("GET", path).status >= 400, "\(path)")
    }
  }

  @Test func pagesOfOtherOriginsCannotAct() throws {
    let console = try OperatorConsole()
    let token = try console.token("owner")
    let own = "127.0.0.1:\(console.port)"
    let foreign: [[(String, String)]] = [
      [("Origin", "https://evil.example")], [("Origin", "null")], [("Origin", "http://127.0.0.1:\(console.main.port)")],
      [("Origin", "http://localhost:\(console.port)")], [("Origin", "http://\(own).evil.example")], [("Origin", "")],
      [("Sec-Fetch-Site", "cross-site")], [("Sec-Fetch-Site", "same-site")], [("Sec-Fetch-Site", "none")],
      [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "script")],
      [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "style")],
      [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "worker")],
      [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "serviceworker")],
      [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "document")],
      [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "iframe")],
    ]
    for headers in foreign {
      for path in ["/hearth/v1/session", "/storage/v1/b", TestServer.root + "/users"] {
        let reply = try console.request("GET", path, token: token, headers: headers)
        #expect(reply.status == 403 || reply.status == 421, "\(headers) \(path): \(reply.status)")
        #expect(reply.header("access-control-allow-origin") == nil, "\(headers)")
      }
      let sign = try console.signIn("owner", headers: headers)
      #expect(sign.status == 403 || sign.status == 421, "\(headers): \(sign.status)")
    }
    // Neither can the pages of a proxy with the same name at other ports.
    let proxied = try OperatorConsole { $0.consoleHost = "console.example.com" }
    for (origin, status) in [
      ("https://console.example.com", 401), ("http://console.example.com", 421),
      ("https://console.example.com:8443", 421),
      ("https://console.example.com.evil.example", 421), ("https://evil.example", 421),
    ] {
      #expect(try proxied.request("GET", "/metrics", headers: [("Origin", origin)]).status == status, "\(origin)")
    }
    let fetch = [("Origin", "http://\(own)"), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", "empty")]
    #expect(try console.request("GET", "/hearth/v1/session", token: token, headers: fetch).status == 200)
    // No page may ask for permission by CORS.
    let preflight = [("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST")]
    #expect(try console.request("OPTIONS", "/hearth/v1/session", headers: preflight).status == 421)
    let same = [("Origin", "http://\(own)"), ("Access-Control-Request-Method", "POST")]
    let denied = try console.request("OPTIONS", "/hearth/v1/session", headers: same)
    #expect(denied.status == 403 && denied.header("access-control-allow-origin") == nil)
  }

  @Test func otherSitesCannotFrameTheConsole() throws {
    let console = try OperatorConsole()
    for (site, destination, status) in [
      ("cross-site", "iframe", 403), ("same-site", "frame", 403), ("same-site", "script", 403),
      ("cross-site", "document", 200), ("none", "document", 200),
    ] {
      let headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Dest", destination)]
      #expect(try console.request("GET", Self.page, headers: headers).status == status, "\(site) \(destination)")
    }
  }

  @Test func nothingIsServedWithoutASession() throws {
    let console = try OperatorConsole()
    for endpoint in console.main.server.consoleEndpoints {
      for pattern in endpoint.paths.map(\.text) {
        let path = pattern.replacing(/\{(document|object)\.\.\.\}/, with: "a/b")
          .replacing(/\{\w+\.\.\.\}/, with: "a").replacing("{project}", with: "p")
          .replacing("{database}", with: "(default)").replacing(/\{\w+\}/, with: "x")
        for method in endpoint.methods.text.split(separator: ", ").map(String.init) where method != "HEAD" {
          guard !(method == "POST" && pattern == "/hearth/v1/session") else { continue }
          for token in [nil, "", "owner", "hos_", "hos_" + String(repeating: "A", count: 43), "a.b.c"] {
            let reply = try console.request(method, path, method == "GET" ? nil : "{}", token: token)
            #expect(
              [401, 403].contains(reply.status), "\(method) \(path) \(token ?? "-"): \(reply.status) \(reply.text)")
          }
        }
      }
    }
  }

  /// An uploaded page or script has the origin of the console, if a browser loads it there.
  @Test func uploadedContentDoesNotRun() throws {
    let console = try OperatorConsole()
    let token = try console.token("owner")
    let path = "/storage/v1/b/p.appspot.com/o/evil.html?alt=media"
    let made = try console.request(
      "POST", "/upload/storage/v1/b/p.appspot.com/o?uploadType=media&name=evil.html", "<script>alert(1)</script>",
      token: token, headers: [("Content-Type", "text/html")])
    #expect(made.status == 200, "\(made.text)")
    // A navigation or a script sends no token, and none is in a cookie or a URL.
    for destination in ["document", "script", "iframe", "style", "image", "serviceworker"] {
      let headers = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", destination)]
      #expect(try console.request("GET", path, token: token, headers: headers).status == 403, "\(destination)")
    }
    #expect(try console.request("GET", path).status == 401)
    #expect(try console.request("GET", path + "&access_token=\(token)").status == 401)
    let content = try console.request("GET", path, token: token)
    #expect(content.status == 200 && content.header("x-content-type-options") == "nosniff", "\(content.headers)")
  }

  @Test func namesInTheLogCannotForgeLines() throws {
    let console = try OperatorConsole()
    let body = #"{"name": "x\" signed in\noperator \"owner\u001b[2J", "password": "whatever it is"}"#
    #expect(try console.request("POST", "/hearth/v1/session", body).status == 401)
    let lines = console.log.filter { $0.hasPrefix("accounts: operator") }
    #expect(lines.count == 1 && lines[0].contains(#""x\" signed in"#), "\(lines)")
    #expect(!lines.joined().contains("\u{1B}") && !lines.joined().contains("\n"))
  }

  @Test func aUsersTokenHasTheRightsOfTheUserOnly() throws {
    let console = try OperatorConsole {
      $0.rules = []
    }
    let editor = try console.token("editor")
    let made = try console.request("POST", "/hearth/v1/tokens", #"{"uid": "ann"}"#, token: editor)
    let user: String = try #require(made.json("idToken"))
    // Without rules, only administrators have access.
    #expect(try console.request("GET", TestServer.root + "/users/ann", token: user).status == 403)
    for path in ["/hearth/v1/keys", "/hearth/v1/session", "/v1/projects/p/accounts:batchGet", "/hearth/v1/operators"] {
      #expect(try console.request("GET", path, token: user).status == 403, "\(path)")
    }
  }

  @Test func configurationsThatMakeNoSenseAreRefused() throws {
    for change in [
      { (configuration: inout HearthConfiguration) in configuration.mode = .emulator },
      { (configuration: inout HearthConfiguration) in configuration.hasConsole = false },
      { (configuration: inout HearthConfiguration) in
        (configuration.consoleAddress, configuration.consoleHost) = (nil, "console.example.com")
      },
    ] {
      #expect(throws: HearthError.self) { try OperatorConsole(change: change) }
    }
  }

  @Test func theConsoleHasFewConnectionsAndTheAppNone() throws {
    let without = try TestServer(.production)
    #expect(without.server.consoleURL == nil && without.server.consoleEndpoints.isEmpty)
  }
}
