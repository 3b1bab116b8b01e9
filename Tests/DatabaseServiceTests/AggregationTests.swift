import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@Suite struct AggregationTests {
  private static let numbers = [
    Aggregation(.count(upTo: nil), alias: "count"), Aggregation(.sum(field("n")), alias: "sum"),
    Aggregation(.average(field("n")), alias: "average"),
  ]

  private static func fixture(rules: String? = nil) throws -> ServiceFixture {
    let fixture = try ServiceFixture(rules: rules)
    try fixture.commit(.set("open/a", ("n", 3)), .set("open/b", ("n", 1)), .set("open/c", ("n", 2)))
    return fixture
  }

  @Test func numbersAreComputedOverTheResults() throws {
    let fixture = try Self.fixture()
    let outcome = try fixture.aggregate(RunAggregationQueryRequest(Query(collectionID: "open"), Self.numbers))
    #expect(outcome.values.map(\.alias) == ["count", "sum", "average"])
    #expect(outcome.values.map(\.value) == [3, 6, .double(2)])
    #expect(outcome.transaction == nil && outcome.explain == nil)
    #expect(fixture.service.counters[.aggregations] == 1)
  }

  @Test func selectorChoosesTheState() throws {
    let fixture = try Self.fixture()
    var request = RunAggregationQueryRequest(Query(collectionID: "open"), Self.numbers)
    let before = try fixture.aggregate(request)
    try fixture.commit(.set("open/d", ("n", 4)))
    request.consistency = .readTime(before.readTime)
    #expect(try fixture.aggregate(request).values.map(\.value) == [3, 6, .double(2)])
    request.consistency = .latest
    #expect(try fixture.aggregate(request).values.map(\.value) == [4, 10, .double(2.5)])
  }

  @Test func changedResultAbortsATransaction() throws {
    let fixture = try Self.fixture()
    var request = RunAggregationQueryRequest(Query(collectionID: "open"), [Self.numbers[0]])
    request.newTransaction = .readWrite(retrying: nil)
    let transaction = try #require(try fixture.aggregate(request).transaction)
    try fixture.commit(.delete("open/a"))
    #expect(fixture.failure { try fixture.commit(.set("other/x"), in: transaction) }?.code == .aborted)
  }

  @Test func invalidAggregationsAreRefused() throws {
    let fixture = try Self.fixture()
    let count = Self.numbers[0]
    let cases: [([Aggregation], String)] = [
      ([], "Aggregations can not be empty."),
      (
        (0..<6).map { Aggregation(count.op, alias: "a\($0)") },
        "The maximum number of aggregations allowed in an aggregation query is 5. Received: 6"
      ),
      ([count, count], "Aggregation aliases contain duplicate alias: count."),
    ]
    for (aggregations, message) in cases {
      let status = fixture.failure {
        _ = try fixture.aggregate(RunAggregationQueryRequest(Query(collectionID: "open"), aggregations))
      }
      #expect(status == Status(.invalidArgument, message))
    }
    var query = Query(collectionID: "open")
    query.limit = -1
    #expect(
      fixture.failure { _ = try fixture.aggregate(RunAggregationQueryRequest(query, [count])) }?.code
        == .invalidArgument)
  }

  @Test func rulesAuthorizeTheQuery() throws {
    let fixture = try Self.fixture(rules: ServiceFixture.rules)
    var query = Query(collectionID: "open")
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
      _ = try fixture.aggregate(RunAggregationQueryRequest(query, Self.numbers), as: $0)
    }
    query.limit = 2
    let outcome = try fixture.aggregate(RunAggregationQueryRequest(query, Self.numbers), as: ServiceFixture.stranger)
    #expect(outcome.values.first?.value == 2)
  }

  @Test func explainedAggregationReportsItsCost() throws {
    let fixture = try Self.fixture()
    var request = RunAggregationQueryRequest(Query(collectionID: "open"), Self.numbers)
    request.explain = .plan
    let planned = try fixture.aggregate(request)
    #expect(planned.values.isEmpty && planned.explain?.execution == nil && planned.explain?.plan.isEmpty == false)
    request.explain = .analyze
    let analyzed = try fixture.aggregate(request)
    #expect(analyzed.values.count == 3)
    #expect(analyzed.explain?.execution?.results == 1 && analyzed.explain?.execution?.readOperations == 1)
  }
}
