import HearthServer
import Testing

/// Files of test servers, in forks and after a reset.
@Suite struct TestServerFileTests {
  static let bucket = "/v0/b/demo.appspot.com/o"

  static func put(
    _ server: TestServer, _ name: String, _ text: String, as caller: TestServer.Caller
  ) async throws -> Int {
    let response = try await server.respond(
      to: .init("POST", "\(bucket)?name=\(name)", headers: [("content-type", "text/plain")], body: text), as: caller)
    _ = try await response.bytes()
    return response.status
  }

  static func get(_ server: TestServer, _ name: String, as caller: TestServer.Caller) async throws -> String {
    let response = try await server.respond(to: .init("GET", "\(bucket)/\(name)?alt=media"), as: caller)
    return response.status == 200 ? try await response.text() : "\(response.status)"
  }

  @Test func putFileNeedsNoRequestAndNoRules() async throws {
    let base = try TestServer()
    try base.putFile("a/b.txt", content: Array("text".utf8), contentType: "text/plain")
    let db = try base.fork()
    try db.putFile("other", content: [])
    #expect(try await Self.get(db, "a%2Fb.txt", as: .admin) == "text")
    #expect(try await Self.get(db, "other", as: .admin) == "")
    #expect(try await Self.get(base, "other", as: .admin) == "404")
    #expect(try await Self.get(db, "a%2Fb.txt", as: .nobody) == "403")
    try db.reset()
    #expect(try await Self.get(db, "other", as: .admin) == "404")
    #expect(throws: HearthError.self) { try db.putFile("", content: []) }
  }

  @Test func fileRulesSeeTheServersTime() async throws {
    let rules = """
      rules_version = '2';
      service firebase.storage {
        match /b/{bucket}/o {
          match /{name} {
            allow create: if request.resource.timeCreated > request.time - duration.value(1, 'm');
            allow get: if request.time < resource.timeCreated + duration.value(7, 'd');
          }
        }
      }
      """
    let base = try TestServer(storageRules: .text(rules))
    let db = try base.fork()
    #expect(try await Self.put(db, "share", "text", as: .nobody) == 200)
    #expect(try await Self.get(db, "share", as: .nobody) == "text")
    db.advanceTime(by: .seconds(8 * 86_400))
    #expect(try await Self.get(db, "share", as: .nobody) == "403")
    // New files get the advanced time.
    #expect(try await Self.put(db, "later", "text", as: .nobody) == 200)
    #expect(try await Self.get(try db.fork(), "later", as: .nobody) == "text")
  }

  @Test func filesAreForkedAndReset() async throws {
    let rules = """
      rules_version = '2';
      service firebase.storage {
        match /b/{bucket}/o { match /{name} { allow read, write: if name == request.auth.uid + '.txt'; } }
      }
      """
    let base = try TestServer(storageRules: .text(rules))
    #expect(try await Self.put(base, "ann.txt", "first", as: .admin) == 200)
    let db = try base.fork()
    #expect(try await Self.get(db, "ann.txt", as: .user("ann")) == "first")
    #expect(try await Self.get(db, "ann.txt", as: .user("ben")) == "403")
    #expect(try await Self.put(db, "ann.txt", "second", as: .user("ann")) == 200)
    #expect(try await Self.put(db, "ben.txt", String(repeating: "long ", count: 100_000), as: .user("ben")) == 200)
    #expect(try await Self.get(base, "ann.txt", as: .admin) == "first")
    #expect(try await Self.get(base, "ben.txt", as: .admin) == "404")
    let fork = try db.fork()
    #expect(try await Self.get(fork, "ben.txt", as: .user("ben")).utf8.count == 500_000)
    try db.reset()
    #expect(try await Self.get(db, "ann.txt", as: .user("ann")) == "first")
    #expect(try await Self.get(db, "ben.txt", as: .admin) == "404")
    #expect(try await Self.get(fork, "ann.txt", as: .admin) == "second")
  }
}
