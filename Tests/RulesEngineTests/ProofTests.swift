import DocumentModel
import Foundation
import Matching
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// Authorization of queries by their conditions (rules-language.md, section 14).
@Suite struct ProofTests {
  static func allows(
    _ condition: String, _ filter: QueryFilter?, limit: Int? = nil, mode: ProofMode = .sound,
    edition: Edition = .standard, pattern: String = "/t/{id}", query change: (inout Query) -> Void = { _ in }
  ) throws -> Bool {
    let rules = try Ruleset(
      compiling: "rules_version = '2'; service cloud.firestore { match /databases/{database}/documents {"
        + "match \(pattern) { allow list: if \(condition); } } }")
    var request = RulesRequest(.list, RulesFixture.path("t"), time: RulesFixture.time)
    var query = Query(collectionID: "t")
    query.filter = filter
    query.limit = limit
    change(&query)
    request.query = query
    request.edition = edition
    return rules.decide(request, mode: mode).isAllowed
  }

  private static let n = FieldPath(field: "n")
  private static let l = FieldPath(field: "l")

  // Source: rules-language.md, section 14.2.
  @Test(arguments: [
    ("F > 3", FieldOperator.greaterThan, Value.integer(3), true), ("F > 3", .greaterThan, .integer(2), false),
    ("F > 3", .greaterThanOrEqual, .integer(4), true), ("F > 3", .greaterThanOrEqual, .integer(3), false),
    ("F >= 3", .greaterThan, .integer(3), true), ("F >= 4", .greaterThan, .integer(3), false),
    ("F >= 3", .greaterThanOrEqual, .integer(3), true), ("F < 3", .lessThan, .integer(3), true),
    ("F <= 3", .lessThanOrEqual, .integer(3), true), ("F < 3", .lessThanOrEqual, .integer(3), false),
    ("F > 3", .lessThan, .integer(3), false), ("F != 3", .notEqual, .integer(3), true),
    ("F != 3", .notIn, .array([.integer(2), .integer(3)]), true), ("F != 3", .notIn, .array([.integer(2)]), false),
    ("F != 3", .greaterThan, .integer(3), true), ("F != 3", .greaterThanOrEqual, .integer(3), false),
    ("F != null", .lessThan, .integer(1), true), ("F == 3", .greaterThanOrEqual, .integer(3), false),
    ("F in [3, 4]", .greaterThan, .integer(2), false), ("!(F in [3, 4])", .greaterThan, .integer(5), false),
    ("F > 3.0", .greaterThan, .integer(3), true), ("F > 3", .greaterThan, .double(3), false),
    ("F is number", .greaterThan, .integer(3), false), ("F is int", .greaterThan, .integer(3), false),
    ("F is string", .greaterThan, .string("a"), false), ("3 < F", .greaterThan, .integer(3), true),
    ("F + 1 > 3", .greaterThan, .integer(3), false), ("F == 1", .equal, .integer(1), true),
    ("F == 1.0", .equal, .integer(1), true), ("F is int", .equal, .integer(1), false),
    ("F is number", .equal, .integer(1), true), ("F in [1]", .equal, .integer(1), false),
    ("F == 'a'", .equal, .string("a"), true), ("F in ['a']", .equal, .string("a"), true),
    ("F.size() == 1", .equal, .string("a"), true), ("F > 'a'", .greaterThan, .string("a"), true),
    ("F > '\\uffff'", .greaterThan, .string("\u{ffff}"), false), ("F == ['a']", .equal, .array([.string("a")]), true),
    ("F == [1]", .equal, .array([.integer(1)]), false), ("F > 1 || true", .equal, .string("a"), true),
  ])
  func conditionsFollowFromFilters(
    condition: String, operation: FieldOperator, operand: Value, isAllowed: Bool
  ) throws {
    let text = condition.replacingOccurrences(of: "F", with: "resource.data.n")
    #expect(try Self.allows(text, .field(Self.n, operation, operand)) == isAllowed, "\(text)")
  }

  @Test func arrayContainsProvesMembership() throws {
    let filter = QueryFilter.field(Self.l, .arrayContains, .string("a"))
    #expect(try Self.allows("'a' in resource.data.l", filter))
    #expect(try !Self.allows("'b' in resource.data.l", filter))
    #expect(try Self.allows("resource.data.l.hasAny(['b', 'a'])", filter))
    #expect(try !Self.allows("resource.data.l.hasAll(['a'])", filter))
    #expect(try !Self.allows("resource.data.l is list", filter))
    let any = QueryFilter.field(Self.l, .arrayContainsAny, .array([.string("a"), .string("b")]))
    #expect(try Self.allows("'a' in resource.data.l || 'b' in resource.data.l", any))
    #expect(try !Self.allows("'a' in resource.data.l", any))
  }

  // The official emulator allows these too.
  @Test(arguments: [
    ("resource.data.keys().hasAll(['F'])", true), ("'F' in resource.data.keys()", true),
    ("resource.data.keys().hasAny(['other', 'F'])", true), ("resource.data.keys().toSet().hasAll(['F'])", true),
    ("resource.data.keys().toSet().hasAny(['F'].toSet())", true), ("['F'].hasAny(resource.data.keys())", true),
    ("['F'].toSet().hasOnly(resource.data.keys())", true), ("'F' in resource.data", true),
    ("resource.data.keys().hasAll([])", true), ("resource.data.get('F', null) != null", true),
    ("resource.data.keys().hasAll(['F', 'other'])", false), ("'other' in resource.data.keys()", false),
    ("resource.data.keys().hasAny(['other'])", false), ("!('gone' in resource.data)", false),
    ("!('gone' in resource.data.keys())", false), ("resource.data.keys().hasOnly(['F'])", false),
    ("!resource.data.keys().hasAny(['gone'])", false), ("resource.data.keys() == ['F']", false),
    ("['F'].hasAll(resource.data.keys())", false), ("resource.data.keys().size() == 1", false),
  ])
  func filtersProveThatTheirFieldExists(condition: String, isAllowed: Bool) throws {
    let filters: [(String, QueryFilter)] = [
      ("l", .field(Self.l, .arrayContains, .string("a"))),
      ("l", .field(Self.l, .arrayContainsAny, .array([.string("a"), .string("b")]))),
      ("n", .field(Self.n, .equal, .string("a"))), ("n", .field(Self.n, .equal, .integer(1))),
      ("n", .field(Self.n, .in, .array([.string("a"), .integer(1)]))), ("n", .field(Self.n, .greaterThan, .integer(1))),
      ("n", .field(Self.n, .notEqual, .integer(1))), ("n", .field(Self.n, .notIn, .array([.integer(1)]))),
      ("n", .unary(Self.n, .isNotNull)),
    ]
    for (field, filter) in filters {
      let text = condition.replacingOccurrences(of: "F", with: field)
      #expect(try Self.allows(text, filter) == isAllowed, "\(text) by \(filter)")
    }
    #expect(try !Self.allows("resource.data.keys().hasAll(['n'])", nil))
  }

  @Test func presenceAndMembershipFollowTogether() throws {
    let member = QueryFilter.field(Self.l, .arrayContains, .string("a"))
    #expect(try Self.allows("resource.data.keys().hasAll(['l']) && 'a' in resource.data.l", member))
    #expect(try !Self.allows("resource.data.keys().hasAll(['l']) && 'b' in resource.data.l", member))
    let nested = QueryFilter.field(FieldPath(segments: ["m", "k"]), .equal, .string("a"))
    #expect(try Self.allows("resource.data.keys().hasAll(['m']) && resource.data.m.keys().hasAll(['k'])", nested))
    #expect(try !Self.allows("resource.data.m.keys().hasAll(['o'])", nested))
  }

  // Source: rules-language.md, section 14.3. The emulator wrongly allows these.
  @Test(arguments: [
    "!('secret' in resource.data)", "resource.data.get('private', false) == false",
    "resource.data.keys().hasOnly(['n'])", "!resource.data.keys().hasAny(['secret'])",
    "resource.data.keys().size() == 1", "!(resource.data.n in [1, 2])", "!(resource.data.n is string)",
  ])
  func onlyEmulatorModeAllowsUnsoundProofs(condition: String) throws {
    let filter = QueryFilter.field(Self.n, .greaterThan, .integer(0))
    // A range over numbers proves that the field is not a string.
    let follows = condition.contains("is string")
    #expect(try Self.allows(condition, filter) == follows)
    #expect(try Self.allows(condition, filter, mode: .emulator))
  }

  @Test func everyAlternativeMustBeAllowed() throws {
    let either = QueryFilter.or([
      .field(Self.n, .equal, .string("a")), .field(Self.n, .equal, .string("b")),
    ])
    #expect(try !Self.allows("resource.data.n == 'a'", either))
    #expect(try Self.allows("resource.data.n in ['a', 'b']", either))
    #expect(
      try Self.allows("resource.data.n in ['a', 'b', 'c']", .field(Self.n, .in, .array([.string("a"), .string("c")]))))
  }

  @Test func conditionsReadLimitsAndNames() throws {
    #expect(try Self.allows("request.query.limit <= 10", nil, limit: 10))
    #expect(try !Self.allows("request.query.limit <= 10", nil, limit: 11))
    #expect(try !Self.allows("request.query.limit <= 10", nil))
    #expect(try !Self.allows("id == 'a'", nil))
    #expect(try !Self.allows("resource == null", nil))
    let name = Value.reference("projects/p/databases/(default)/documents/t/a")
    #expect(try Self.allows("id == 'a' && resource.id == 'a'", .field(FieldPath(field: "__name__"), .equal, name)))
  }

  @Test func collectionGroupsNeedPatternsOfAnyDepth() throws {
    func allows(_ pattern: String, parent: String = "") throws -> Bool {
      try Self.allows("true", nil, pattern: pattern) { query in
        query = Query(parent: RulesFixture.path(parent), collectionID: "t", includesDescendants: true)
      }
    }
    #expect(try allows("/{p=**}/t/{id}"))
    #expect(try allows("/{x=**}"))
    #expect(try !allows("/t/{id}"))
    #expect(try !allows("/a/{x}/t/{id}"))
    #expect(try !allows("/a/{x=**}"))
    #expect(try allows("/a/{x=**}", parent: "a/1"))
    #expect(try !allows("/{p=**}/u/{id}"))
  }

  /// No proof allows a query whose result contains a document that the same condition denies.
  @Test(arguments: TestSeeds.of("RULES_SEED", otherwise: [1, 2])) func proofsAreSound(seed: UInt64) throws {
    var generator = QueryGenerator(seed: seed)
    let documents = (0..<60).map { _ in EncodedFields(generator.document()) }
    let database = try #require(DatabaseID(project: "p"))
    let evaluator = Evaluator()
    var proofs = 0
    for _ in 0..<4_000 {
      let condition = generator.condition()
      guard let rules = try? Ruleset(compiling: RulesFixture.rules(condition, methods: "get, list")) else {
        Issue.record("does not compile: \(condition)")
        continue
      }
      for _ in 0..<8 {
        var request = RulesRequest(.list, RulesFixture.path("t"), time: RulesFixture.time)
        var query = Query(collectionID: "t")
        query.filter = generator.filter()
        query.limit = 5
        request.query = query
        guard evaluator.decide(rules, request).isAllowed else { continue }
        if condition.contains("request.query") { continue }
        proofs += 1
        var matcher = DocumentMatcher(query.filter, in: database)
        for document in documents {
          let path = RulesFixture.path("t/z")
          guard try document.withMap({ try matcher.matches($0, at: path) }) else { continue }
          var get = RulesRequest(.get, path, time: RulesFixture.time)
          get.resource = document
          let isAllowed = evaluator.decide(rules, get).isAllowed
          let text = try
            "\(condition) for \(String(describing: query.filter)) but not \(document.decoded()), seed \(seed)"
          #expect(isAllowed, Comment(rawValue: text))
        }
      }
    }
    #expect(proofs > 300, "too few queries were proved for a meaningful test, seed \(seed)")
  }
}
