import Callers
import DatabaseService
import DocumentModel
import Testing
import TestSupport
import WireFormat

/// The decisions of rules about pipelines (pipelines.md, section 7).
@Suite struct PipelineRulesTests {
  private static let mine = PipelineArgument.call("equal", .field("owner"), .text("ann"))
  private static let notes = PipelineCall.collection("notes")

  private static func fixture() throws -> ServiceFixture {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    try fixture.commit(
      .set("notes/a", ("owner", "ann")), .set("notes/b", ("owner", "ben")), .set("open/o", ("n", 1)),
      .set("secret/s", ("n", 1)))
    return fixture
  }

  @Test func conditionsProveWhatRulesRequire() throws {
    let fixture = try Self.fixture()
    let proven: [[PipelineCall]] = [
      [Self.notes, .matching(Self.mine)],
      [Self.notes, .matching(.call("exists", .field("owner"))), .matching(Self.mine)],
      [
        Self.notes, .matching(.call("and", .call("exists", .field("owner")), Self.mine)),
        PipelineCall("limit", [.int(5)]),
      ],
      [Self.notes, .matching(.call("equal_any", .field("owner"), .constant(.array(["ann"]))))],
    ]
    for stages in proven { #expect(try fixture.paths(of: stages, as: ServiceFixture.ann) == ["notes/a"], "\(stages)") }
    for stages in proven {
      fixture.expectDenied(to: [ServiceFixture.ben, ServiceFixture.stranger]) {
        _ = try fixture.paths(of: stages, as: $0)
      }
    }
  }

  @Test func otherConditionsProveNothing() throws {
    let fixture = try Self.fixture()
    let owner = PipelineArgument.field("owner")
    let added = PipelineArgument.entries([PipelineArgument.Entry("owner", .text("ann"))])
    let variable = PipelineArgument.entries([PipelineArgument.Entry("me", .text("ann"))])
    let denied: [[PipelineCall]] = [
      [Self.notes],
      [Self.notes, .matching(.call("equal", .call("to_lower", owner), .text("ann")))],
      [Self.notes, .matching(.call("or", Self.mine, .call("exists", owner)))],
      // The condition sees a field that the pipeline has computed.
      [Self.notes, PipelineCall("add_fields", [added]), .matching(Self.mine)],
      [Self.notes, PipelineCall("let", [variable]), .matching(.call("equal", owner, .variable("me")))],
      [Self.notes, PipelineCall("limit", [.int(1)]), .matching(Self.mine)],
      // Rules cannot see the limit.
      [.collection("open"), PipelineCall("limit", [.int(2)])],
      [PipelineCall("database"), .matching(Self.mine)],
      [Self.notes, .matching(Self.mine), PipelineCall("union", [.pipeline([.collection("secret")])])],
      [
        Self.notes, .matching(Self.mine),
        PipelineCall(
          "add_fields",
          [
            .entries([
              PipelineArgument.Entry("all", .call("array", .pipeline([.collection("secret")])))
            ])
          ]),
      ],
      [
        Self.notes, .matching(Self.mine),
        PipelineCall(
          "add_fields",
          [
            .entries([
              PipelineArgument.Entry(
                "all", .call("array", .pipeline([PipelineCall("subcollection", [.text("notes")])])))
            ])
          ]),
      ],
    ]
    for stages in denied {
      fixture.expectDenied(to: [ServiceFixture.ann]) { _ = try fixture.paths(of: stages, as: $0) }
    }
    fixture.expectDenied(to: [ServiceFixture.ann]) {
      _ = try fixture.paths(of: [PipelineCall("literals", [.entries([])])], as: $0)
    }
  }

  /// No stage sees a document that the proven conditions exclude, not even if the pipeline has more conditions than a
  /// query can have. Otherwise an expression could tell by an error what other documents contain.
  @Test(arguments: [false, true])
  func stagesBeforeTheConditionSeeNoOtherDocuments(isNested: Bool) throws {
    let fixture = try Self.fixture()
    try fixture.commit(
      .set("notes/a", ("owner", "ann"), ("n", 1)), .set("notes/b", ("owner", "ben"), ("n", 1), ("secret", "xyz")))
    let spy = PipelineArgument.call(
      "conditional", .call("equal", .field("secret"), .text("xyz")), .call("error", .text("It is xyz.")), .int(1))
    let many = PipelineArgument.constant(.array((0..<40).map { .integer(Int64($0)) }))
    var stages = [
      Self.notes, PipelineCall("let", [.entries([PipelineArgument.Entry("spy", spy)])]),
      .matching(.call("greater_than_or_equal", .field("n"), .int(0))),
      .matching(.call("equal_any", .field("n"), many)), .matching(Self.mine),
    ]
    if isNested {
      let me = PipelineCall("let", [.entries([PipelineArgument.Entry("me", .field("n"))])])
      let either = PipelineArgument.call(
        "or", .call("equal", .field("n"), .variable("me")), .call("equal", .field("m"), .variable("me")))
      let some = PipelineArgument.constant(.array((0..<20).map { .integer(Int64($0)) }))
      stages[3] = .matching(.call("and", either, .call("equal_any", .field("n"), some)))
      stages = [
        Self.notes, .matching(Self.mine), me,
        PipelineCall("add_fields", [.entries([PipelineArgument.Entry("all", .call("array", .pipeline(stages)))])]),
      ]
    }
    #expect(try fixture.paths(of: stages, as: ServiceFixture.ann) == ["notes/a"])
  }

  @Test func documentsByNameAreGets() throws {
    let fixture = try Self.fixture()
    func documents(_ paths: String...) -> [PipelineCall] {
      [PipelineCall("documents", paths.map { .path("/" + $0) })]
    }
    #expect(try fixture.paths(of: documents("notes/a", "open/o"), as: ServiceFixture.ann) == ["notes/a", "open/o"])
    for stages in [documents("notes/b"), documents("notes/a", "secret/s"), documents("secret/missing")] {
      fixture.expectDenied(to: [ServiceFixture.ann]) { _ = try fixture.paths(of: stages, as: $0) }
    }
  }

  @Test func usersCannotWriteByPipelines() throws {
    let fixture = try Self.fixture()
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
      _ = try fixture.paths(
        of: [Self.notes, .matching(.call("equal", .field("owner"), .text("x"))), PipelineCall("delete")], as: $0)
    }
    #expect(try fixture.paths(of: [Self.notes]) == ["notes/a", "notes/b"])
  }

  /// A user cannot read a document in the past that has become private since.
  @Test func documentsThatBecamePrivateAreDenied() throws {
    let fixture = try Self.fixture()
    let before = try fixture.service.runQuery(
      RunQueryRequest(Query(collectionID: "notes")), in: fixture.id, as: ServiceFixture.admin
    ).readTime
    fixture.time.advance(seconds: 1)
    try fixture.commit(.set("notes/a", ("owner", "ben")))
    let stages = [Self.notes, .matching(Self.mine)]
    #expect(try fixture.paths(of: stages) { $0.consistency = .readTime(before) } == ["notes/a"])
    let denied = fixture.failure {
      _ = try fixture.paths(of: stages, as: ServiceFixture.ann) { $0.consistency = .readTime(before) }
    }
    #expect(denied?.code == .permissionDenied)
  }

  @Test func writesAreRefusedInTransactions() throws {
    let fixture = try Self.fixture()
    let transaction = try fixture.begin()
    let failure = fixture.failure {
      _ = try fixture.paths(of: [Self.notes, PipelineCall("delete")]) { $0.consistency = .transaction(transaction) }
    }
    #expect(failure == Status(.invalidArgument, "A pipeline in a transaction cannot write documents."))
  }

  /// Rules that read the limit, offset or order of a query fail for a pipeline, whatever its stages are.
  @Test(arguments: [
    "request.query.limit == null", "request.query.limit != 7", "request.query.offset == 0",
    "request.query.orderBy != null", "request.query.orderBy.keys().size() == 0", "!('limit' in request.query)",
  ])
  func rulesCannotReadTheLimit(condition: String) throws {
    let fixture = try ServiceFixture(
      rules: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /c/{id} { allow list: if \(condition); }
            match /kind/{id} { allow list: if request.query.kind == 'kind'; }
          }
        }
        """)
    try fixture.commit(.set("c/a", ("n", 1)), .set("kind/a", ("n", 1)))
    let limit = PipelineCall("limit", [.int(50)])
    let isAbsence = condition.hasPrefix("!")
    for stages in [[PipelineCall.collection("c")], [.collection("c"), PipelineCall("offset", [.int(0)]), limit]] {
      if isAbsence {
        #expect(try fixture.paths(of: stages, as: ServiceFixture.ann) == ["c/a"])
      } else {
        fixture.expectDenied(to: [ServiceFixture.ann]) { _ = try fixture.paths(of: stages, as: $0) }
      }
    }
    #expect(try fixture.paths(of: [.collection("kind"), limit], as: ServiceFixture.ann) == ["kind/a"])
  }

  /// A row can name a document of another database. Its collections are not those of this one.
  @Test func subcollectionsOfOtherDatabasesAreEmpty() throws {
    let fixture = try Self.fixture()
    try fixture.commit(.set("notes/a/parts/p", ("n", 1)))
    let all = PipelineArgument.call("array", .pipeline([PipelineCall("subcollection", [.text("parts")])]))
    func count(_ root: String) throws -> [String] {
      let name = PipelineArgument.constant(.reference(root + "/notes/a"))
      return try fixture.paths(of: [
        PipelineCall("literals", [.entries([PipelineArgument.Entry("__name__", name)])]),
        PipelineCall("add_fields", [.entries([PipelineArgument.Entry("all", all)])]),
        .matching(.call("equal", .call("array_length", .field("all")), .int(1))),
      ])
    }
    #expect(try count(fixture.id.documentsRoot) == ["notes/a"])
    #expect(try count("projects/other/databases/(default)/documents") == [])
    #expect(try count("projects/p/databases/other/documents") == [])
  }
}
