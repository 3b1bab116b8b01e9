import Foundation
import GatewayCore
import HearthServer
import Testing
import TestSupport

/// The route table: each row is on its page, and no row lets a stranger read or change anything.
@Suite struct RouteTableTests {
  @Test func pageMatchesTheTable() throws {
    let path = "\(GuidePage.root)/docs/reference/routes.md"
    let environment = ProcessInfo.processInfo.environment
    if environment["REFERENCE_PAGES"] == "write", environment["CI"] == nil {
      try Self.page().write(toFile: path, atomically: true, encoding: .utf8)
    }
    let page = try String(contentsOfFile: path, encoding: .utf8)
    #expect(try page == Self.page(), "docs/reference/routes.md is stale; `make reference` rewrites it")
  }

  /// The routes of a server with all APIs, in order.
  private static func routes() throws -> [any Endpoint] {
    try TestServer { $0.hosting = [.init("\(GuidePage.root)/docs")] }.server.endpoints
  }

  private static func page() throws -> String {
    var text = """
      # Routes

      <!-- Generated from the route table; `make reference` rewrites it. -->

      The server tries the routes of each API in this order. `{name}` is one segment of the path, `{name...}` any number
      of segments. A text after a colon is a verb. Some routes also depend on the query or the headers of a request.

      | access | callers |
      | --- | --- |
      | everyone | every client; the credentials are not read |
      | caller | every caller; security rules, or the service, decide about each request |
      | administrator | administrators only |
      | emulator | every client of an emulator, and no caller of a production server |
      | administratorOrEmulator | every client of an emulator, and administrators of a production server |

      """
    var api = ""
    for route in try routes() {
      if route.api != api {
        api = route.api
        text += "\n## \(api)\n\n| methods | path | access | kind in metrics |\n| --- | --- | --- | --- |\n"
      }
      for path in route.paths.map(\.text) {
        text += "| \(route.methods.text) | `\(path)` | \(route.access.rawValue) | \(route.kind.label) |\n"
      }
    }
    return text
  }

  /// The routes whose response to a stranger is a success, with the reason.
  private static let open: [String: String] = [
    "/readyz": "one word without details",
    "/v1/accounts:createAuthUri": "the ways to sign in, the same for every address",
    "/v1/projects": "the public settings of the project",
    "/relyingparty/getProjectConfig": "the public settings of the project",
    "/v1/accounts:signUp": "a guest account, unless the settings close it",
    "/relyingparty/signupNewUser": "a guest account, unless the settings close it",
    "/v1/recaptchaParams": "a constant", "/v2/recaptchaConfig": "a constant", "/v2/passwordPolicy": "a constant",
  ]

  @Test func everyRouteRefusesAStranger() throws {
    let server = try TestServer(.production)
    let routes = server.server.endpoints
    for route in routes where route.access != .everyone && route.kind != .grpc {
      for method in Self.methods(route) {
        for pattern in route.paths.map(\.text) {
          let path = Self.path(pattern)
          let query = path.contains("Listen/channel") || path.contains("Write/channel") ? "?VER=8&CVER=22" : "?key=k"
          let response = try server.request(method, path + query, method == "GET" || method == "HEAD" ? nil : "{}")
          if response.status < 400, !Self.isExpected(pattern, response) {
            Issue.record("\(method) \(path) answered a stranger with \(response.status): \(response.text.prefix(200))")
          }
          // A 404 is the response to an unknown verb.
          if route.access != .caller { #expect([401, 403, 404].contains(response.status), "\(method) \(path)") }
        }
      }
    }
    let connection = try GRPCConnection(port: server.port)
    for route in routes where route.access != .everyone && route.kind == .grpc {
      for path in route.paths.map(\.text)
      where !path.hasSuffix("/Listen") && !path.hasSuffix("/Write") && !path.contains("Health") {
        let response = try connection.call(path: path, body: GRPCConnection.framed([]))
        #expect(response.messages.isEmpty && response.status != 0 && response.status != nil, "\(path)")
      }
    }
  }

  /// Requests near the limits of a pattern, on an emulator without data, and the start of the response's body.
  @Test(arguments: [
    ("POST", "/documents:commit", 200, "{}"), ("POST", "/documents%3Acommit", 404, "Not Found"),
    ("GET", "/%64ocuments/c/x", 404, "Not Found"),
    // Only a POST has a verb; other methods read a document whose ID ends like one.
    ("GET", "/documents/c/x:runQuery", 404, "{"), ("DELETE", "/documents/c/x:runQuery", 200, "{"),
    ("POST", "/documents/c/x:runQuery", 400, "[{"), ("POST", "/documents/c:runQuery", 400, "["),
    // An empty ID is an error of the name.
    ("GET", "/documents//x", 400, "{"), ("GET", "/documents/c//", 400, "{"),
  ])
  func pathsNearThePatternsMatch(method: String, path: String, status: Int, start: String) throws {
    let server = try TestServer()
    let target = "/v1/projects/p/databases/(default)" + path
    let response = try server.request(method, target, method == "POST" ? "{}" : nil)
    #expect(response.status == status && response.text.hasPrefix(start), "\(response.status) \(response.text)")
  }

  @Test func objectsMayFollowAnEmptySegment() throws {
    let server = try TestServer()
    let upload = "/upload/storage/v1/b/p.appspot.com/o?uploadType=media&name=acl"
    #expect(try server.request("POST", upload, "x").status == 200)
    #expect(try server.request("DELETE", "/b/p.appspot.com/o//acl").status == 204)
    #expect(try server.request("GET", "/b/p.appspot.com/o/acl").status == 404)
    #expect(try server.request("GET", "/storage/v1/b/none//o").status == 404)
  }

  @Test func testSuitesMaySendAnyCredentials() throws {
    let server = try TestServer()
    let path = "/emulator/v1/projects/p/databases/(default)/documents"
    for credentials in ["Bearer a.b.c", "Basic x"] {
      let response = try server.request("DELETE", path, headers: [("Authorization", credentials)])
      #expect(response.status == 200, "\(credentials): \(response.status) \(response.text)")
    }
  }

  private static func isExpected(_ pattern: String, _ response: TestServer.Response) -> Bool {
    // A channel opens for every client; its stream refuses each target.
    if pattern.hasSuffix("/channel") { return true }
    return open.contains { pattern.hasSuffix($0.key) }
  }

  private static func methods(_ route: any Endpoint) -> [String] {
    route.methods == .all
      ? ["GET", "POST", "PUT", "PATCH", "DELETE"] : route.methods.text.components(separatedBy: ", ")
  }

  /// A path that a pattern matches.
  private static func path(_ pattern: String) -> String {
    let captures = [
      "{project}": "p", "{database}": "(default)", "{document...}": "users/ann", "{collection...}": "users",
      "{bucket}": "p.appspot.com", "{path...}": "users/ann", "{host}": "www.googleapis.com",
    ]
    var path = pattern
    for (capture, text) in captures { path = path.replacingOccurrences(of: capture, with: text) }
    return path.replacing(/\{[a-zA-Z]+(\.\.\.)?\}/, with: "x")
  }
}
