import DocumentModel
import RulesEngine
import Testing
import WireFormat

/// The statements that apply to a request, and the values that they read.
@Suite struct StatementTests {
  static let ann = RulesAuth(uid: "ann", claims: MapValue([("sub", .string("ann")), ("admin", .boolean(true))]))

  static func rules(_ body: String, version: Int = 2) throws -> Ruleset {
    try Ruleset(compiling: "rules_version = '\(version)'; service cloud.firestore { \(body) }")
  }

  static func documents(_ body: String, version: Int = 2) throws -> Ruleset {
    try rules("match /databases/{database}/documents { \(body) }", version: version)
  }

  static func request(_ method: RulesMethod, _ path: String, auth: RulesAuth? = nil) -> RulesRequest {
    RulesRequest(method, RulesFixture.path(path), auth: auth, time: RulesFixture.time)
  }

  // Source: rules-language.md, section 5.
  @Test(arguments: [
    ("/a/{d}", [true, false, false], [true, false, false]),
    ("/a/{d=**}", [true, true, false], [true, true, false]),
    ("/a/{d}/{r=**}", [false, true, false], [true, true, false]),
    ("/{r=**}", [true, true, true], [true, true, true]),
    ("/a/*", [false, false, false], [false, false, false]),
    ("/{c}/{d}", [true, false, true], [true, false, true]),
    ("/a/1", [true, false, false], [true, false, false]),
    ("/a", [false, false, false], [false, false, false]),
  ])
  func patternsMatch(pattern: String, first: [Bool], second: [Bool]) throws {
    for (version, expected) in [(1, first), (2, second)] {
      let rules = try Self.documents("match \(pattern) { allow read; }", version: version)
      for (path, isMatch) in zip(["a/1", "a/1/b/2", "b/9"], expected) {
        #expect(rules.decide(Self.request(.get, path)).isAllowed == isMatch, "\(pattern) v\(version) \(path)")
      }
    }
  }

  @Test func globsInTheMiddleBindTheirSegments() throws {
    let rules = try Self.documents(
      "match /{p=**}/b/{d} { allow get: if p[0] == 'a' && p[1] == '1' && d == '2'; allow list: if p == /x; }")
    #expect(rules.decide(Self.request(.get, "a/1/b/2")).isAllowed)
    #expect(!rules.decide(Self.request(.get, "b/9")).isAllowed)
    let empty = try Self.documents("match /{p=**}/b/{d} { allow get: if string(p) == '/'; }")
    #expect(empty.decide(Self.request(.get, "b/9")).isAllowed)
  }

  @Test func version1NeverMatchesBlocksInsideGlobs() throws {
    let body = "match /{x=**} { match /b/{d} { allow get; } }"
    #expect(try !Self.documents(body, version: 1).decide(Self.request(.get, "a/1/b/2")).isAllowed)
    #expect(try Self.documents(body, version: 2).decide(Self.request(.get, "a/1/b/2")).isAllowed)
  }

  @Test func blocksMaySplitThePrefix() throws {
    #expect(try Self.rules("match /{x=**} { allow get; }").decide(Self.request(.get, "a/1")).isAllowed)
    let named = try Self.rules("match /databases/(default)/documents/a/{x} { allow get; }")
    #expect(named.decide(Self.request(.get, "a/1")).isAllowed)
    var other = Self.request(.get, "a/1")
    other.database = "other"
    #expect(!named.decide(other).isAllowed)
    #expect(try !Self.rules("match /a/{x} { allow get; }").decide(Self.request(.get, "a/1")).isAllowed)
  }

  @Test(arguments: [
    ("read", [true, true, false, false, false]), ("write", [false, false, true, true, true]),
    ("get", [true, false, false, false, false]), ("LIST", [false, true, false, false, false]),
    ("create", [false, false, true, false, false]), ("update, delete", [false, false, false, true, true]),
    ("nonsense", [false, false, false, false, false]),
  ])
  func wordsCoverTheirMethods(words: String, expected: [Bool]) throws {
    let rules = try Self.documents("match /{c}/{d} { allow \(words); }")
    for (method, isAllowed) in zip(RulesMethod.allCases, expected) {
      let path = method == .list ? "a" : "a/1"
      #expect(rules.decide(Self.request(method, path)).isAllowed == isAllowed, "\(method)")
    }
  }

  @Test func anyStatementMayAllowAndOutcomesAreReported() throws {
    let rules = try Ruleset(
      compiling: """
        service cloud.firestore {
          match /databases/{d}/documents {
            match /a/{x} {
              allow get: if 1 == 2;
              allow get: if resource.data.zz == 1;
              allow get: if 'x';
              allow get: if x == 'ok';
            }
          }
        }
        """)
    var request = Self.request(.get, "a/1")
    let missing = rules.decide(request)
    #expect(
      missing.denialText(.get)
        == "\nfalse for 'get' @ L4, Null value error. for 'get' @ L5, "
        + "Type error. Received: [string] Expected: [bool]. for 'get' @ L6, false for 'get' @ L7")
    request.resource = EncodedFields(MapValue([("a", .integer(1))]))
    #expect(rules.decide(request).outcomes[1].result == "Property zz is undefined on object.")
    request.path = RulesFixture.path("a/ok")
    #expect(rules.decide(request).line == 7)
    #expect(rules.decide(Self.request(.get, "zz/1")).denialText(.get) == "No matching allow statements")
  }

  @Test(arguments: [
    ("request.auth.uid == 'ann' && request.auth.token.admin", true), ("request.auth != null", true),
    ("request.method == 'update' && request.path == /databases/$(database)/documents/a/1", true),
    ("request.resource.data.n == 2 && resource.data.n == 1", true),
    ("request.resource.data.diff(resource.data).affectedKeys().hasOnly(['n'])", true),
    ("request.resource.id == '1' && resource.__name__ == request.path", true),
    ("request.writeFields == ['n'] && request.transforms == null", true), ("request.query.limit == 1", false),
    ("request.auth.token.keys() == ['admin', 'sub'] && request.auth.keys() == ['token', 'uid']", true),
    ("request.time == timestamp.value(1790000000123) + duration.value(456000, 'ns')", true),
    ("resource == null", false),
    ("request.params == null", false), ("!request.inTransaction && request.headers == {}", true),
    ("request.keys().size() == 10 && 'resource' in request", true),
  ])
  func requestsHaveTheDocumentedMembers(condition: String, isAllowed: Bool) throws {
    let rules = try Self.documents("match /a/{id} { allow write: if \(condition); }")
    var request = Self.request(.update, "a/1", auth: Self.ann)
    request.resource = EncodedFields(MapValue([("n", .integer(1)), ("m", .integer(1))]))
    request.newResource = EncodedFields(MapValue([("n", .integer(2)), ("m", .integer(1))]))
    request.writeFields = ["n"]
    let decision = rules.decide(request)
    #expect(decision.isAllowed == isAllowed, "\(decision.outcomes)")
  }

  @Test func createsAndDeletesReadNull() throws {
    let rules = try Self.documents(
      "match /a/{id} { allow create: if resource == null; allow delete: if request.resource == null; }")
    var create = Self.request(.create, "a/1")
    create.newResource = EncodedFields.none
    #expect(rules.decide(create).isAllowed)
    var delete = Self.request(.delete, "a/1")
    delete.resource = EncodedFields.none
    #expect(rules.decide(delete).isAllowed)
  }

  @Test func functionsReadTheirOwnBlocks() throws {
    let rules = try Self.documents(
      """
      function outer() { return database == '(default)'; }
      function shadow() { return false; }
      match /a/{id} {
        function shadow() { let mine = id; return mine == '1'; }
        function unused(id) { return id.zz; }
        allow get: if outer() && shadow() && (unused(1) || true);
        match /b/{other} { allow get: if shadow() && id == '1' && other == '2'; }
      }
      match /c/{id} { allow get: if shadow(); }
      """)
    #expect(rules.decide(Self.request(.get, "a/1")).isAllowed)
    #expect(rules.decide(Self.request(.get, "a/1/b/2")).isAllowed)
    #expect(!rules.decide(Self.request(.get, "c/1")).isAllowed)
  }

  @Test func functionsCannotReadTheirCallers() throws {
    let rules = try Self.documents("function f() { return id == '1'; } match /a/{id} { allow get: if f(); }")
    #expect(rules.decide(Self.request(.get, "a/1")).outcomes[0].result == "Null value error.")
  }

  @Test func deniesEverythingWithoutRulesForTheService() throws {
    let rules = try Ruleset(compiling: "service firebase.storage { match /{x=**} { allow read, write; } }")
    #expect(!rules.decide(Self.request(.get, "a/1")).isAllowed)
  }

  @Test func tracesContainEveryValue() throws {
    let rules = try Self.documents("match /a/{id} { allow get: if id == 'x' || 1 + 1 == 2; }")
    let decision = Evaluator().decide(rules, Self.request(.get, "a/1"), explaining: .trace)
    #expect(
      decision.trace.map(\.value) == [
        #"{"stringValue":"1"}"#, #"{"stringValue":"x"}"#, #"{"boolValue":false}"#, #"{"intValue":"1"}"#,
        #"{"intValue":"1"}"#, #"{"intValue":"2"}"#, #"{"intValue":"2"}"#, #"{"boolValue":true}"#,
        #"{"boolValue":true}"#,
      ])
  }

  @Test func decisionsReportWhetherTheyReadTheTime() throws {
    let rules = try Self.documents("match /a/{id} { allow get: if id == '1' || request.time > timestamp.value(0); }")
    #expect(!rules.decide(Self.request(.get, "a/1")).usesTime)
    #expect(rules.decide(Self.request(.get, "a/2")).usesTime)
  }
}
