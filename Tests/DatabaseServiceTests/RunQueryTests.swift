import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@Suite struct RunQueryTests {
  private static func query(_ collectionID: String = "c", change: (inout Query) -> Void = { _ in }) -> Query {
    var query = Query(collectionID: collectionID)
    change(&query)
    return query
  }

  private static func equal(_ path: String, _ value: Value) -> QueryFilter { .field(field(path), .equal, value) }

  private static func fixture(rules: String? = nil, requiresIndexes: Bool = false) throws -> ServiceFixture {
    let fixture = try ServiceFixture(rules: rules, requiresIndexes: requiresIndexes)
    try fixture.commit(
      .set("c/a", ("n", 3)), .set("c/b", ("n", 1)), .set("c/d", ("n", 2), ("x", 1)), .set("c/a/c/deep", ("n", 0)))
    return fixture
  }

  @Test func resultsHaveTheOrderOfTheQuery() throws {
    let fixture = try Self.fixture()
    #expect(try fixture.paths(of: Self.query()) == ["c/a", "c/b", "c/d"])
    #expect(try fixture.paths(of: Self.query { $0.orders = [Order(field("n"))] }) == ["c/b", "c/d", "c/a"])
    #expect(try fixture.paths(of: Self.query { $0.filter = Self.equal("x", 1) }) == ["c/d"])
    let group = Self.query { $0.includesDescendants = true }
    #expect(try fixture.paths(of: group) == ["c/a", "c/a/c/deep", "c/b", "c/d"])
    #expect(fixture.service.counters[.queries] == 4)
  }

  @Test func offsetCountsSkippedDocuments() throws {
    let fixture = try Self.fixture()
    let query = Self.query {
      $0.offset = 1
      $0.limit = 1
    }
    let cursor = try fixture.service.runQuery(RunQueryRequest(query), in: fixture.id, as: ServiceFixture.admin)
    #expect(try fixture.paths(of: cursor) == ["c/b"])
    #expect(cursor.skipped == 1)
  }

  @Test func slicesShowTheStateAtTheStart() throws {
    let fixture = try Self.fixture()
    let cursor = try fixture.service.runQuery(RunQueryRequest(Self.query()), in: fixture.id, as: ServiceFixture.admin)
    try cursor.slice { _, _ in false }
    try fixture.commit(.delete("c/b"), .set("c/c"))
    #expect(try fixture.paths(of: cursor) == ["c/b", "c/d"])
    #expect(try fixture.paths(of: Self.query(), .readTime(cursor.readTime)) == ["c/a", "c/b", "c/d"])
    #expect(try fixture.paths(of: Self.query()) == ["c/a", "c/c", "c/d"])
  }

  @Test func queryCanBeginItsTransaction() throws {
    let fixture = try Self.fixture()
    var request = RunQueryRequest(Self.query { $0.filter = Self.equal("x", 1) })
    request.newTransaction = .readWrite(retrying: nil)
    let cursor = try fixture.service.runQuery(request, in: fixture.id, as: ServiceFixture.admin)
    let transaction = try #require(cursor.transaction)
    #expect(try fixture.paths(of: cursor) == ["c/d"])
    // Another result conflicts, and a document that the query does not find does not.
    try fixture.commit(.set("c/e", ("x", 2)))
    try fixture.commit(.set("c/f", ("x", 1)))
    #expect(fixture.failure { try fixture.commit(.set("other/x"), in: transaction) }?.code == .aborted)
  }

  @Test func invalidQueriesAreRefused() throws {
    let fixture = try Self.fixture()
    let queries = [
      Self.query { $0.limit = -1 }, Self.query { $0.offset = -1 },
      Self.query { $0.start = QueryBound([1, 2], isBefore: true) },
      Self.query { $0.filter = .field(field("a"), .`in`, .array([])) },
    ]
    for query in queries {
      #expect(fixture.failure { _ = try fixture.paths(of: query) }?.code == .invalidArgument, "\(query)")
    }
  }

  @Test func rulesMustProveEveryResult() throws {
    let fixture = try Self.fixture(rules: ServiceFixture.rules)
    try fixture.commit(.set("notes/a", ("owner", "ann")), .set("notes/b", ("owner", "ben")))
    let mine = Self.query("notes") { $0.filter = Self.equal("owner", "ann") }
    #expect(try fixture.paths(of: mine, as: ServiceFixture.ann) == ["notes/a"])
    fixture.expectDenied(to: [ServiceFixture.ben, ServiceFixture.stranger]) { _ = try fixture.paths(of: mine, as: $0) }
    // All of the results would be allowed, but the query does not show it.
    try fixture.commit(.delete("notes/b"))
    fixture.expectDenied(to: [ServiceFixture.ann]) { _ = try fixture.paths(of: Self.query("notes"), as: $0) }
  }

  /// The client does not learn the ID of the transaction, so it could not end it.
  @Test func deniedQueryLeavesNoTransactionOpen() throws {
    let fixture = try Self.fixture(rules: ServiceFixture.rules)
    var request = RunQueryRequest(Self.query("notes"))
    request.newTransaction = .readWrite(retrying: nil)
    let denial = fixture.failure {
      _ = try fixture.service.runQuery(request, in: fixture.id, as: ServiceFixture.ann)
    }
    #expect(denial?.code == .permissionDenied)
    #expect(try fixture.database.transactions.count == 0)
  }

  @Test func explainedQueryReportsItsPlanAndCost() throws {
    let fixture = try Self.fixture()
    var request = RunQueryRequest(Self.query { $0.filter = Self.equal("x", 1) })
    request.explain = .plan
    let planned = try fixture.service.runQuery(request, in: fixture.id, as: ServiceFixture.admin)
    #expect(planned.isAtEnd && planned.explainMetrics?.execution == nil)
    #expect(planned.explainMetrics?.indexesUsed.map(\.properties) == ["(x ASC, __name__ ASC)"])
    request.explain = .analyze
    let analyzed = try fixture.service.runQuery(request, in: fixture.id, as: ServiceFixture.admin)
    #expect(analyzed.explainMetrics == nil)
    #expect(try fixture.paths(of: analyzed) == ["c/d"])
    let execution = try #require(analyzed.explainMetrics?.execution)
    #expect(execution.results == 1 && execution.readOperations == 1 && execution.microseconds >= 1)
  }

  /// The statistics of a query depend on documents that its caller must not see.
  @Test func inProductionOnlyAdministratorsExplain() throws {
    for mode in [ServerMode.production, .emulator] {
      let fixture = try ServiceFixture(rules: ServiceFixture.rules, mode: mode)
      try fixture.commit(.set("notes/a", ("owner", "ann")))
      let mine = Self.query("notes") { $0.filter = Self.equal("owner", "ann") }
      var query = RunQueryRequest(mine)
      var aggregation = RunAggregationQueryRequest(mine, [Aggregation(.count(upTo: nil), alias: "n")])
      let allowed = fixture.failure { _ = try fixture.service.runQuery(query, in: fixture.id, as: ServiceFixture.ann) }
      #expect(allowed == nil)
      query.explain = .analyze
      aggregation.explain = .plan
      let explain = PipelineArgument.entries([PipelineArgument.Entry("mode", .text("analyze"))])
      let stages = [
        PipelineCall.collection("notes"), .matching(.call("equal", .field("owner"), .text("ann"))),
      ]
      let failures = [
        fixture.failure { _ = try fixture.service.runQuery(query, in: fixture.id, as: ServiceFixture.ann) },
        fixture.failure {
          _ = try fixture.service.runAggregationQuery(aggregation, in: fixture.id, as: ServiceFixture.ann)
        },
        fixture.failure {
          _ = try fixture.paths(
            of: stages, as: ServiceFixture.ann, options: [PipelineArgument.Entry("explain_options", explain)])
        },
      ]
      let expected = mode == .emulator ? nil : Status(.permissionDenied, "Only an administrator may explain a query.")
      for failure in failures { #expect(failure == expected) }
      _ = try fixture.service.runQuery(query, in: fixture.id, as: ServiceFixture.admin)
    }
  }
}
