import Accounts
import DocumentStore
import Foundation
import GatewayCore
import HearthServer
import Synchronization
import Testing
import TestSupport

@testable import Gateway

/// Sign-in of operators at the console of a production server, and what each role may do.
@Suite struct OperatorSessionTests {
  private static let documents = TestServer.root

  @Test func aSessionBeginsAndEnds() throws {
    let console = try OperatorConsole()
    let made = try console.signIn("owner")
    #expect(made.status == 200 && made.header("cache-control") == "no-store" && made.header("set-cookie") == nil)
    #expect(made.json("role") == "owner" && made.json("project") == "p")
    let token: String = try #require(made.json("token"))
    let described = try console.request("GET", "/hearth/v1/session", token: token)
    #expect(described.json("name") == "owner" && described.json("token", as: String.self) == nil)
    #expect(try console.request("GET", Self.documents + "/users", token: token).status == 200)
    #expect(try console.request("DELETE", "/hearth/v1/session", token: token).status == 200)
    for path in ["/hearth/v1/session", Self.documents + "/users"] {
      let reply = try console.request("GET", path, token: token)
      #expect(reply.status == 401 && reply.message == "The session has ended. Sign in again.", "\(path)")
    }
    #expect(
      console.log.filter { $0.hasPrefix("accounts: operator") } == [
        #"accounts: operator "owner" signed in to the console from this machine"#,
        #"accounts: operator "owner" signed out of the console from this machine"#,
      ])
  }

  @Test func wrongNamesAndPasswordsCannotBeToldApart() throws {
    let console = try OperatorConsole()
    let replies = [
      try console.signIn("owner", "a wrong password"), try console.signIn("nobody", OperatorConsole.password),
      try console.signIn("", ""),
    ]
    for reply in replies {
      #expect(reply.status == 401 && reply.message == "The name or the password is wrong.")
    }
    for body in ["", "{}", #"{"name": "owner"}"#, #"{"name": 1, "password": 2}"#, "[1]"] {
      #expect(try console.request("POST", "/hearth/v1/session", body).status == 400, "\(body)")
    }
    let long = String(repeating: "x", count: 20_000)
    #expect(try console.signIn("owner", long).status == 400)
    #expect(
      console.log.contains(
        #"accounts: operator "nobody" failed to sign in to the console from this machine: wrong name or password"#))
    #expect(!console.log.contains { $0.contains(OperatorConsole.password) || $0.contains("a wrong password") })
  }

  @Test func guessingIsThrottledAndLogged() throws {
    let console = try OperatorConsole()
    for _ in 0..<SignInThrottle.guessesFromPlaceMax {
      #expect(try console.signIn("owner", "wrong wrong").status == 401)
    }
    let refused = try console.signIn("owner")
    #expect(refused.status == 429 && refused.message.contains("Try again in 15 minutes"))
    #expect(try console.signIn("viewer").status == 200)
    // A proxy on this machine names the client; another client is not affected.
    let other = [("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-Proto", "https")]
    #expect(try console.signIn("owner", headers: other).status == 200)
    #expect(console.log.contains(#"accounts: operator "owner" signed in to the console from 192.0.2.9"#))
    #expect(console.log.filter { $0.contains("too many failed attempts") }.count == 1)
  }

  @Test func nobodySignsInOverPlainHTTPFromElsewhere() throws {
    let console = try OperatorConsole()
    let plain = try console.signIn("owner", headers: [("X-Forwarded-For", "192.0.2.9")])
    #expect(plain.status == 400 && plain.message.contains("plain HTTP"))
    let proto = [("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-Proto", "http")]
    #expect(try console.signIn("owner", headers: proto).status == 400)
    // A token does not cross a network in clear text either. An upload is read piece by piece.
    let token = try console.token("owner")
    let upload = "/upload/storage/v1/b/p.appspot.com/o?uploadType=media&name=a"
    for (method, path) in [("GET", Self.documents + "/users"), ("POST", upload), ("GET", "/hearth/v1/session")] {
      let body = method == "POST" ? "x" : nil
      let reply = try console.request(method, path, body, token: token, headers: proto)
      #expect(reply.status == 400 && reply.message.contains("plain HTTP"), "\(method) \(path)")
      #expect(try console.request(method, path, body, token: token).status == 200, "\(method) \(path)")
    }
    #expect(try console.request("GET", "/_/console/", headers: proto).status == 200)
  }

  @Test func changesOfAnOperatorEndSessionsAtOnce() throws {
    let console = try OperatorConsole()
    let (owner, editor) = (try console.token("owner"), try console.token("editor"))
    let path = "/hearth/v1/operators/editor"
    let changes: [(String, String?)] = [
      ("PATCH", #"{"role": "viewer"}"#), ("PATCH", #"{"password": "another long password"}"#), ("DELETE", nil),
    ]
    var token = editor
    for (method, body) in changes {
      #expect(try console.request("GET", "/hearth/v1/session", token: token).status == 200)
      let feed = try StreamedResponse(
        port: console.port,
        request: Array(
          "GET \(Self.documents):changes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n\r\n".utf8))
      try feed.readHead()
      #expect(feed.status == 200)
      #expect(try console.request(method, path, body, token: owner).status == 200)
      #expect(try console.request("GET", "/hearth/v1/session", token: token).status == 401)
      // The stream that the session opened ends too.
      while !feed.isComplete { try feed.receive() }
      #expect(String(decoding: feed.body, as: UTF8.self).contains("the session of the operator has ended"))
      if method == "PATCH", body?.contains("role") == true { token = try console.token("editor") }
      if body?.contains("password") == true {
        #expect(try console.signIn("editor").status == 401)
        token = try #require(try console.signIn("editor", "another long password").json("token"))
      }
    }
    #expect(try console.signIn("editor", "another long password").status == 401)
    let list = try console.request("GET", "/hearth/v1/operators", token: owner)
    #expect(list.json("operators", as: [Any].self)?.count == 2 && !list.text.contains("argon2"))
  }

  @Test func sessionsEndByTime() throws {
    let time = SteppedTime()
    let console = try OperatorConsole { $0.clock = Clock { time.now } }
    let token = try console.token("viewer")
    time.advance(seconds: Int(OperatorSessions.idleSeconds) - 1)
    #expect(try console.request("GET", "/hearth/v1/session", token: token).status == 200)
    time.advance(seconds: Int(OperatorSessions.idleSeconds))
    #expect(try console.request("GET", "/hearth/v1/session", token: token).status == 401)
  }

  // MARK: Roles

  /// Requests, and the least role that may make them.
  private static let requests: [(role: OperatorRole, method: String, path: String, body: String?)] = [
    (.viewer, "GET", "\(documents)/users/ann", nil),
    (.viewer, "GET", "\(documents)/users", nil),
    (.viewer, "POST", "\(documents):runQuery", #"{"structuredQuery": {"from": [{"collectionId": "users"}]}}"#),
    (.viewer, "POST", "\(documents):batchGet", #"{"documents": []}"#),
    (.viewer, "POST", "\(documents):listCollectionIds", "{}"),
    (.viewer, "GET", "/v1/projects/p/accounts:batchGet", nil),
    (.viewer, "GET", "/hearth/v1/keys", nil),
    (.viewer, "GET", "/hearth/v1/operators", nil),
    (.viewer, "GET", "/hearth/v1/server", nil),
    (.viewer, "GET", "/hearth/v1/listeners", nil),
    (.viewer, "GET", "/hearth/v1/projects/p/databases/(default)/indexes", nil),
    (.viewer, "GET", "/hearth/v1/projects/p/databases/(default)/rules", nil),
    (.viewer, "GET", "/hearth/v1/recording", nil),
    (.viewer, "GET", "/hearth/v1/requests", nil),
    (.viewer, "GET", "/metrics", nil),
    (.viewer, "GET", "/storage/v1/b", nil),
    (.editor, "PATCH", "\(documents)/users/ann", #"{"fields": {}}"#),
    (.editor, "POST", "\(documents)/users", #"{"fields": {}}"#),
    (.editor, "POST", "\(documents):commit", #"{"writes": []}"#),
    (.editor, "POST", "\(documents):batchWrite", #"{"writes": []}"#),
    (.editor, "POST", "\(documents):executePipeline", "{}"),
    (.editor, "DELETE", "\(documents)/users/ann", nil),
    (.editor, "DELETE", "/hearth/v1/projects/p/databases/(default)/documents/users/ann", nil),
    (.editor, "POST", "/v1/projects/p/accounts", #"{"localId": "x"}"#),
    (.editor, "POST", "/v1/projects/p/accounts:update", #"{"localId": "x", "displayName": "X"}"#),
    (.editor, "POST", "/v1/projects/p/accounts:delete", #"{"localId": "x"}"#),
    (.editor, "POST", "/hearth/v1/tokens", #"{"uid": "ann"}"#),
    (.editor, "POST", "/upload/storage/v1/b/p.appspot.com/o?uploadType=media&name=a", "x"),
    (.editor, "DELETE", "/storage/v1/b/p.appspot.com/o/a", nil),
    (.owner, "POST", "/hearth/v1/keys", #"{"name": "k", "url": "http://x"}"#),
    (.owner, "DELETE", "/hearth/v1/keys/k", nil),
    (.owner, "POST", "/hearth/v1/operators", #"{"name": "x", "role": "owner", "password": "a good password"}"#),
    (.owner, "PATCH", "/hearth/v1/operators/x", #"{"role": "owner"}"#),
    (.owner, "DELETE", "/hearth/v1/operators/x", nil),
    (.owner, "POST", "/hearth/v1/backups", "{}"),
    (.owner, "POST", "/hearth/v1/recording", "{}"),
    (.owner, "DELETE", "/hearth/v1/recording", nil),
    (.owner, "DELETE", "/hearth/v1/requests", nil),
  ]

  @Test func eachRoleMakesItsRequestsOnly() throws {
    let console = try OperatorConsole()
    for role in OperatorRole.allCases {
      let token = try console.token(role.rawValue)
      for request in Self.requests {
        let reply = try console.request(request.method, request.path, request.body, token: token)
        let isRefused = reply.status == 403 && reply.message.hasPrefix("Your role is")
        #expect(
          isRefused == (role < request.role), "\(role): \(request.method) \(request.path) \(reply.status) \(reply.text)"
        )
        if role >= request.role { #expect(reply.status != 401 && reply.status < 500, "\(reply.text)") }
      }
    }
    // The log contains each change with its operator, and each refusal, but no reads.
    #expect(console.log.contains(#"accounts: operator "owner" requested "POST /hearth/v1/keys" from this machine"#))
    #expect(
      console.log.contains(
        #"accounts: operator "viewer" requested "POST /hearth/v1/keys" from this machine: refused, because the role is viewer"#
      ))
    #expect(!console.log.contains { $0.contains("\"GET ") })
  }

  @Test(arguments: ["javascript:alert(1)", "https://", "ftp://db.example.com", "https://db.example.com/\" x", ""])
  func theURLOfAKeyIsThatOfAServer(url: String) throws {
    let console = try OperatorConsole()
    let body = String(decoding: try JSONEncoder().encode(["name": "k", "url": url]), as: UTF8.self)
    let reply = try console.request("POST", "/hearth/v1/keys", body, token: try console.token("owner"))
    #expect(reply.status == 400 && reply.message.contains("must be the URL of the server"), "\(reply.text)")
  }

  @Test(arguments: ["sub", "iss", "exp", "firebase"]) func aTokenHasNoClaimsOfTheServer(name: String) throws {
    let console = try OperatorConsole()
    let editor = try console.token("editor")
    let body = #"{"uid": "ann", "claims": {"\#(name)": "x"}}"#
    let reply = try console.request("POST", "/hearth/v1/tokens", body, token: editor)
    #expect(reply.status == 400 && reply.message.contains("\"\(name)\""), "\(reply.text)")
  }

  /// The lists of backups can take long. Other requests of administrators do not wait for them.
  @Test func aListOfBackupsDelaysNoOtherRequest() throws {
    let waiting = Mutex<[@Sendable ([UInt8]) -> Void]>([])
    let console = try OperatorConsole { configuration in
      configuration.listBackups = { take in
        waiting.withLock { $0.append(take) }
        return true
      }
      configuration.createBackup = { true }
    }
    let (viewer, owner) = (try console.token("viewer"), try console.token("owner"))
    let statuses = Mutex<[Int]>([])
    let group = DispatchGroup()
    for _ in 0..<8 {
      let thread = Thread {
        let status = (try? console.request("GET", "/hearth/v1/backups", token: viewer))?.status
        statuses.withLock { $0.append(status ?? 0) }
        group.leave()
      }
      group.enter()
      thread.start()
    }
    #expect(OtherProcess.eventually { waiting.withLock { $0.count == 8 } })
    let removed = try console.request("DELETE", "/hearth/v1/operators/editor", token: owner)
    #expect(removed.status == 200 && removed.json("project") == "p", "\(removed.text)")
    for take in waiting.withLock({ $0 }) { take(Array("{}".utf8)) }
    group.wait()
    #expect(statuses.withLock { $0 } == [Int](repeating: 200, count: 8))
  }

  /// Every route that the console serves is in the list above with its role, or reads only.
  @Test func noRouteIsForgotten() throws {
    let console = try OperatorConsole()
    let tested = Set(Self.requests.filter { $0.role > .viewer }.map(\.method))
    #expect(tested == ["PATCH", "POST", "DELETE"])
    let viewer = try console.token("viewer")
    for endpoint in console.main.server.consoleEndpoints {
      for path in endpoint.paths.map(\.text) {
        // A request for each route with a method that can write, at a path that it matches.
        let target = path.replacing(/\{(document|object)\.\.\.\}/, with: "a/b")
          .replacing(/\{collection\.\.\.\}/, with: "a").replacing("{path...}", with: "a/b")
          .replacing("{project}", with: "p").replacing("{database}", with: "(default)")
          .replacing("{bucket}", with: "p.appspot.com").replacing(/\{\w+(\.\.\.)?\}/, with: "x")
        for method in ["POST", "PUT", "PATCH", "DELETE"] where endpoint.methods.text.contains(method) {
          let isReading =
            Self.requests.contains { $0.role == .viewer && $0.method == method && path.hasSuffix($0.path.suffix(9)) }
            || path.hasSuffix(":runAggregationQuery") || path.hasSuffix(":listen") || path.hasSuffix(":suggest")
            || path.hasSuffix("accounts:batchGet") || path.hasSuffix("accounts:query") || path.hasSuffix("rules:check")
            || path == "/hearth/v1/session"
          guard !isReading else { continue }
          let reply = try console.request(method, target, "{}", token: viewer)
          #expect(reply.status == 403 || reply.status == 404, "\(method) \(target): \(reply.status) \(reply.text)")
        }
      }
    }
    // Each row of the list names a route that exists.
    let served = Set(console.main.server.consoleEndpoints.map { "\($0.methods.text) \($0.paths[0].text)" })
    for row in ConsoleRoutes.rows {
      #expect(served.contains("\(row.methods) \(row.path)"), "\(row.methods) \(row.path)")
    }
    #expect(served.count == ConsoleRoutes.rows.count + 1, "only sign-in needs no role")
  }

  @Test func routesThatAreNotListedDoNotExist() throws {
    let console = try OperatorConsole()
    let owner = try console.token("owner")
    for (method, path) in [
      ("POST", "/hearth/v1/keys:rotate"), ("POST", "/v1/accounts:signUp?key=k"), ("GET", "/v1/projects/p/config"),
      ("PUT", "/emulator/v1/projects/p:securityRules"),
      ("DELETE", "/emulator/v1/projects/p/databases/(default)/documents"),
      ("GET", "/emulator/v1/projects/p/oobCodes"), ("POST", "/google.firestore.v1.Firestore/Write/channel"),
      ("POST", "/google.firestore.v1.Firestore/Commit"), ("POST", "/v1/projects/p/accounts:batchCreate"),
      ("PATCH", "/v2/projects/p/config"), ("GET", "/v0/b/p.appspot.com/o/a?alt=media"), ("GET", "/p.appspot.com/a"),
      ("POST", "/token"), ("POST", "/hearth/v1/requests:replay"), ("PUT", "/internal/setRules"),
      ("GET", "/hearth/v1/requests:record"), ("POST", "/hearth/v1/rules:test"),
      ("POST", "/hearth/v1/projects/p/databases/(default)/rules:try"),
    ] {
      let reply = try console.request(method, path, method == "GET" ? nil : "{}", token: owner)
      #expect(reply.status == 404, "\(method) \(path): \(reply.status) \(reply.text)")
    }
  }

  @Test func operatorsSeeNoHashesOfPasswords() throws {
    let console = try OperatorConsole()
    let owner = try console.token("owner")
    let body = #"{"localId": "ann", "email": "ann@example.com", "password": "secret-1"}"#
    #expect(try console.request("POST", "/v1/projects/p/accounts", body, token: owner).status == 200)
    for (method, path) in [("GET", "/v1/projects/p/accounts:batchGet"), ("POST", "/v1/projects/p/accounts:query")] {
      let reply = try console.request(method, path, method == "GET" ? nil : "{}", token: owner)
      #expect(reply.status == 200 && reply.text.contains("ann@example.com"), "\(reply.text)")
      #expect(reply.text.contains("UkVEQUNURUQ=") && !reply.text.contains("salt"), "\(reply.text)")
    }
  }

  @Test func theMainAddressKnowsNoOperators() throws {
    let console = try OperatorConsole()
    let owner = try console.token("owner")
    let headers = [("Authorization", "Bearer \(owner)")]
    for path in ["\(Self.documents)/users", "/hearth/v1/keys", "/hearth/v1/operators"] {
      #expect(try console.main.request("GET", path, headers: headers).status == 401, "\(path)")
    }
    for path in ["/_/console/", "/hearth/v1/session", "/hearth/v1/configuration", "/hearth/v1/backups"] {
      #expect(try console.main.request("GET", path).status == 404, "\(path)")
    }
    #expect(try console.main.request("POST", "/hearth/v1/session", "{}").status == 404)
  }

  @Test func administratorsManageOperatorsAtTheMainAddress() throws {
    let console = try OperatorConsole()
    let admin = [("Authorization", "Bearer \(console.main.server.accounts.serviceKeys.localAccessToken())")]
    let made = try console.main.request(
      "POST", "/hearth/v1/operators", #"{"name": "bob", "role": "viewer", "password": "a good password"}"#,
      headers: admin)
    #expect(made.status == 200, "\(made.text)")
    #expect(try console.signIn("bob", "a good password").json("role") == "viewer")
    for (body, reason) in [
      (#"{"name": "bob", "role": "viewer", "password": "a good password"}"#, "already exists"),
      (#"{"name": "eve", "role": "root", "password": "a good password"}"#, "The role must be"),
      (#"{"name": "eve", "role": "viewer", "password": "short"}"#, "at least 10 characters"),
      (#"{"name": "Eve", "role": "viewer", "password": "a good password"}"#, "lower-case"), ("{}", "The body must be"),
    ] {
      let reply = try console.main.request("POST", "/hearth/v1/operators", body, headers: admin)
      #expect(reply.status == 400 && reply.message.contains(reason), "\(reply.text)")
    }
    #expect(try console.main.request("DELETE", "/hearth/v1/operators/eve", headers: admin).status == 404)
    #expect(try console.main.request("GET", "/hearth/v1/operators").status == 403)
    // The console takes no service keys: their requests have no role.
    let token = String(admin[0].1.dropFirst("Bearer ".count))
    #expect(try console.request("GET", "/hearth/v1/keys", token: token).status == 403)
    #expect(try console.request("GET", "\(Self.documents)/users", token: token).status == 401)
  }
}
