import HearthServer
import Testing

/// Test servers in this process, without a port.
@Suite struct TestServerTests {
  static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{db}/documents {
        match /users/{uid} {
          allow read: if request.auth.uid == uid || request.auth.token.role == 'nurse';
          allow write: if request.auth.uid == uid;
        }
      }
    }
    """
  static let fixture = """
    {"$collections": ["users"], "users": {"ann": {"name": "Ann"}, "ben": {"name": "Ben"}}}
    """
  static let documents = "/v1/projects/demo/databases/(default)/documents"

  static func base() throws -> TestServer {
    try TestServer(rules: .text(rules), fixtures: [.text(fixture)])
  }

  static func get(
    _ server: TestServer, _ path: String, as caller: TestServer.Caller
  ) async throws -> (status: Int, text: String) {
    let response = try await server.respond(to: .init("GET", "\(documents)/\(path)"), as: caller)
    return (response.status, try await response.text())
  }

  static func rename(_ server: TestServer, _ uid: String, as caller: TestServer.Caller) async throws -> Int {
    let body = #"{"fields": {"name": {"stringValue": "Changed"}}}"#
    let response = try await server.respond(
      to: .init("PATCH", "\(documents)/users/\(uid)", headers: [("content-type", "application/json")], body: body),
      as: caller)
    _ = try await response.bytes()
    return response.status
  }

  @Test func rulesAuthorizeCallers() async throws {
    let server = try Self.base()
    let rows: [(TestServer.Caller, Int)] = [
      (.admin, 200), (.user("ann"), 200), (.user("ben"), 403), (.user("eve", claims: ["role": "nurse"]), 200),
      (.user("eve", claims: ["role": ["nurse", 1, true, ["deep": 2.5]]]), 403), (.nobody, 403),
    ]
    for (caller, status) in rows {
      let response = try await Self.get(server, "users/ann", as: caller)
      #expect(response.status == status, "\(caller): \(response.text)")
    }
    #expect(try await Self.get(server, "users/ann", as: .admin).text.contains(#""stringValue": "Ann""#))
  }

  @Test func forksAreIndependent() async throws {
    let base = try Self.base()
    let (one, two) = (try base.fork(), try base.fork())
    #expect(try await Self.rename(one, "ann", as: .user("ann")) == 200)
    #expect(try await Self.get(one, "users/ann", as: .admin).text.contains("Changed"))
    for other in [base, two, try base.fork()] {
      #expect(try await Self.get(other, "users/ann", as: .admin).text.contains(#""Ann""#))
    }
    // A fork of the fork begins with this change, and returns to it on a reset.
    let three = try one.fork()
    #expect(try await Self.rename(three, "ben", as: .admin) == 200)
    #expect(try await Self.get(three, "users/ann", as: .admin).text.contains("Changed"))
    try three.reset()
    #expect(try await Self.get(three, "users/ann", as: .admin).text.contains("Changed"))
    #expect(try await Self.get(three, "users/ben", as: .admin).text.contains(#""Ben""#))
    try one.reset()
    #expect(try await Self.get(one, "users/ann", as: .admin).text.contains(#""Ann""#))
  }

  @Test func forksRunConcurrently() async throws {
    let base = try Self.base()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<32 {
        group.addTask {
          let db = try base.fork()
          let uid = number.isMultiple(of: 2) ? "ann" : "ben"
          #expect(try await Self.rename(db, uid, as: .user(uid)) == 200)
          let other = uid == "ann" ? "ben" : "ann"
          #expect(try await !Self.get(db, "users/\(other)", as: .admin).text.contains("Changed"))
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func errorsNameTheirLocation() {
    let rows: [(() throws -> TestServer, String)] = [
      ({ try TestServer(rules: .text("service cloud.firestore {")) }, "rules:1:"),
      ({ try TestServer(rules: .file("/nowhere/firestore.rules")) }, "/nowhere/firestore.rules"),
      ({ try TestServer(storageRules: .text("service firebase.storage { allow }")) }, "storage rules:1:"),
      ({ try TestServer(indexes: .text("{]")) }, "indexes:1:"),
      ({ try TestServer(fixtures: [.text(Self.fixture), .text(#"{"users": {}}"#)]) }, "fixture 2"),
      ({ try TestServer(project: "No Project") }, "No Project"),
    ]
    for (make, place) in rows {
      do {
        _ = try make()
        Issue.record("no error with \(place)")
      } catch { #expect("\(error)".contains(place), "\(error)") }
    }
  }

  @Test func forksCopyAccounts() async throws {
    let base = try Self.base()
    let json = [("content-type", "application/json")].map { (name: $0.0, value: $0.1) }
    func call(_ server: TestServer, _ verb: String, _ body: String) async throws -> (Int, String) {
      let response = try await server.respond(
        to: .init("POST", "/v1/accounts:\(verb)?key=any", headers: json, body: body))
      return (response.status, try await response.text())
    }
    let ann = #"{"email": "ann@example.com", "password": "correct horse", "returnSecureToken": true}"#
    #expect(try await call(base, "signUp", ann).0 == 200)
    let db = try base.fork()
    let (status, text) = try await call(db, "signInWithPassword", ann)
    #expect(status == 200, "\(text)")
    // The account's token is valid as it would be on the port.
    let token = try #require(text.split(separator: "\"").first { $0.hasPrefix("ey") })
    let uid = try #require(text.firstMatch(of: /"localId": ?"([^"]+)"/)?.output.1)
    let response = try await db.respond(
      to: .init("GET", "\(Self.documents)/users/\(uid)", headers: [("Authorization", "Bearer \(token)")]))
    #expect(response.status == 404)
    let ben = #"{"email": "ben@example.com", "password": "correct horse", "returnSecureToken": true}"#
    #expect(try await call(db, "signUp", ben).0 == 200)
    #expect(try await call(base, "signInWithPassword", ben).0 == 400)
    try db.reset()
    #expect(try await call(db, "signInWithPassword", ben).0 == 400)
    #expect(try await call(db, "signInWithPassword", ann).0 == 200)
  }

  @Test func declaredIndexesAreBuiltOnce() async throws {
    let indexes = """
      {"indexes": [{"collectionGroup": "users", "queryScope": "COLLECTION", "fields": [
        {"fieldPath": "name", "order": "DESCENDING"}, {"fieldPath": "age", "order": "ASCENDING"}]}]}
      """
    let base = try TestServer(indexes: .text(indexes), requiresIndexes: true, fixtures: [.text(Self.fixture)])
    let db = try base.fork()
    let response = try await db.respond(
      to: .init("GET", "/hearth/v1/projects/demo/databases/(default)/indexes"), as: .admin)
    let text = try await response.text()
    #expect(text.contains(#""ready""#) && text.contains("users (name descending, age ascending)"), "\(text)")
  }

  @Test func timeAdvancesForOneServer() async throws {
    let base = try Self.base()
    let db = try base.fork()
    db.advanceTime(by: .seconds(100 * 365 * 86_400 / 4))
    #expect(try await Self.rename(db, "ann", as: .admin) == 200)
    let moved = try await Self.get(db, "users/ann", as: .admin).text
    let still = try await Self.get(base, "users/ann", as: .admin).text
    let pattern = /"updateTime": "(\d{4})/
    let (later, now) = (try #require(moved.firstMatch(of: pattern)), try #require(still.firstMatch(of: pattern)))
    #expect(try #require(Int(later.output.1)) >= 24 + (try #require(Int(now.output.1))))
    #expect(try await Self.get(try db.fork(), "users/ann", as: .admin).text.contains("Changed"))
  }
}
