import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// The changes that conflict with a query of a transaction: those that change its result, and no others.
@Suite struct QueryConflictTests {
  /// A read of a transaction before its commit.
  enum Reading: Sendable {
    case query(Query)
    case count(Query)
    case sum(Query, String)
    /// Stops reading the results after a number of them.
    case firstResults(Query, Int)
    case list(ListDocumentsRequest)
    /// Reads the second page of a listing in the transaction, but not the first.
    case secondPage(ListDocumentsRequest)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let reading: Reading
    let changes: [Write]
    let conflicts: Bool
    var testDescription: String { name }

    init(_ name: String, _ reading: Reading, _ changes: Write..., conflicts: Bool) {
      self.name = name
      self.reading = reading
      self.changes = changes
      self.conflicts = conflicts
    }
  }

  /// The documents at the start of every case.
  private static let documents: [Write] = [
    .set("tasks/a", ("owner", "ann"), ("rank", 1), ("done", false)),
    .set("tasks/b", ("owner", "ann"), ("rank", 2), ("done", false)),
    .set("tasks/c", ("owner", "ben"), ("rank", 3), ("done", false)),
    .set("tasks/d", ("owner", "ann"), ("rank", 4), ("done", true)),
    .set("tasks/e", ("owner", "ann")),
    .set("users/ann/notes/n1", ("text", "x"), ("size", 1)),
    .set("users/ben/notes/n1", ("text", "y"), ("size", 2)),
    .set("users/ben", ("name", "Ben")),
  ]

  private static func tasks(
    where filter: QueryFilter? = nil, by orders: Order..., limit: Int? = nil, offset: Int = 0
  ) -> Query {
    var query = Query(collectionID: "tasks")
    query.filter = filter
    query.orders = orders
    query.limit = limit
    query.offset = offset
    return query
  }

  private static let ofAnn = QueryFilter.field(field("owner"), .equal, "ann")
  private static let rank = Order(field("rank"))
  private static let rankDown = Order(field("rank"), isDescending: true)
  private static let notes = Query(collectionID: "notes", includesDescendants: true)
  private static let belowAnn = Query(parent: document("users/ann").path, collectionID: nil, includesDescendants: true)
  private static let atRoot = Query(collectionID: nil)

  private static func bounded(_ query: Query, from start: Value, to end: Value) -> Query {
    var query = query
    query.start = QueryBound([start], isBefore: true)
    query.end = QueryBound([end], isBefore: false)
    return query
  }

  private static func listing(
    _ path: String, pageSize: Int = 0, orderBy: String = "", showMissing: Bool = false
  ) -> Reading {
    var request = ListDocumentsRequest(collection(path))
    request.pageSize = pageSize
    request.orderBy = orderBy
    request.showMissing = showMissing
    return .list(request)
  }

  /// The second page of a listing with two documents per page.
  private static func secondPage(_ path: String, orderBy: String = "") -> Reading {
    var request = ListDocumentsRequest(collection(path))
    request.pageSize = 2
    request.orderBy = orderBy
    return .secondPage(request)
  }

  static let cases: [Case] = [
    // The filter.
    Case("a result changes", .query(tasks(where: ofAnn)), .merge("tasks/a", ["rank"], ("rank", 9)), conflicts: true),
    Case("a result is deleted", .query(tasks(where: ofAnn)), .delete("tasks/a"), conflicts: true),
    Case(
      "a result stops matching", .query(tasks(where: ofAnn)), .merge("tasks/a", ["owner"], ("owner", "ben")),
      conflicts: true),
    Case(
      "a result leaves and returns", .query(tasks(where: ofAnn)), .merge("tasks/a", ["owner"], ("owner", "ben")),
      .merge("tasks/a", ["owner"], ("owner", "ann")), conflicts: true),
    Case("a phantom is created", .query(tasks(where: ofAnn)), .set("tasks/new", ("owner", "ann")), conflicts: true),
    Case(
      "a phantom starts to match", .query(tasks(where: ofAnn)), .merge("tasks/c", ["owner"], ("owner", "ann")),
      conflicts: true),
    Case(
      "a phantom is created and deleted", .query(tasks(where: ofAnn)), .set("tasks/new", ("owner", "ann")),
      .delete("tasks/new"), conflicts: false),
    Case(
      "a document that does not match changes", .query(tasks(where: ofAnn)), .merge("tasks/c", ["rank"], ("rank", 1)),
      conflicts: false),
    Case(
      "a document that does not match is created", .query(tasks(where: ofAnn)), .set("tasks/new", ("owner", "ben")),
      conflicts: false),
    Case(
      "a document of another collection is created", .query(tasks(where: ofAnn)), .set("other/new", ("owner", "ann")),
      conflicts: false),
    Case(
      "a document of a collection below is created", .query(tasks(where: ofAnn)),
      .set("tasks/a/tasks/x", ("owner", "ann")), conflicts: false),
    Case(
      "a write changes nothing", .query(tasks(where: ofAnn)), .merge("tasks/a", ["rank"], ("rank", 1)),
      conflicts: false),
    Case(
      "a document starts to match an alternative",
      .query(tasks(where: .or([ofAnn, .field(field("rank"), .equal, 7)]))),
      .merge("tasks/c", ["rank"], ("rank", 7)), conflicts: true),
    Case(
      "a document is deleted and there are still no results",
      .query(tasks(where: .field(field("owner"), .equal, "eve"))), .delete("tasks/a"),
      conflicts: false),
    Case(
      "the first result is created", .query(tasks(where: .field(field("owner"), .equal, "eve"))),
      .set("tasks/new", ("owner", "eve")), conflicts: true),
    Case("a collection is created", .query(Query(collectionID: "fresh")), .set("fresh/x"), conflicts: true),
    // The order and its bounds.
    Case(
      "a document without the field of the order changes", .query(tasks(by: rank)), .merge("tasks/e", ["x"], ("x", 1)),
      conflicts: false),
    Case(
      "a document gets the field of the order", .query(tasks(by: rank)), .merge("tasks/e", ["rank"], ("rank", 9)),
      conflicts: true),
    Case(
      "a document before the bounds is deleted", .query(bounded(tasks(by: rank), from: 2, to: 3)), .delete("tasks/a"),
      conflicts: false),
    Case(
      "a document at a bound is deleted", .query(bounded(tasks(by: rank), from: 2, to: 3)), .delete("tasks/c"),
      conflicts: true),
    Case(
      "a document after the bounds is deleted", .query(bounded(tasks(by: rank), from: 2, to: 3)), .delete("tasks/d"),
      conflicts: false),
    Case(
      "a document moves into the bounds", .query(bounded(tasks(by: rank), from: 2, to: 3)),
      .merge("tasks/d", ["rank"], ("rank", 2)),
      conflicts: true),
    // The limit.
    Case(
      "a document after the last result is deleted", .query(tasks(by: rank, limit: 2)), .delete("tasks/c"),
      conflicts: false),
    Case(
      "a document is created after the last result", .query(tasks(by: rank, limit: 2)), .set("tasks/new", ("rank", 3)),
      conflicts: false),
    Case(
      "the last result changes", .query(tasks(by: rank, limit: 2)), .merge("tasks/b", ["x"], ("x", 1)), conflicts: true),
    Case(
      "a document is created before the last result", .query(tasks(by: rank, limit: 2)), .set("tasks/new", ("rank", 0)),
      conflicts: true),
    Case(
      "a document equal to the last result is created with a lower name", .query(tasks(by: rank, limit: 2)),
      .set("tasks/az", ("rank", 2)),
      conflicts: true),
    Case(
      "a document equal to the last result is created with a higher name", .query(tasks(by: rank, limit: 2)),
      .set("tasks/bz", ("rank", 2)),
      conflicts: false),
    Case(
      "descending: a document after the last result is deleted", .query(tasks(by: rankDown, limit: 2)),
      .delete("tasks/b"), conflicts: false),
    Case(
      "descending: a document is created before the last result", .query(tasks(by: rankDown, limit: 2)),
      .set("tasks/new", ("rank", 7)),
      conflicts: true),
    Case(
      "a document is created and the limit was not reached", .query(tasks(by: rank, limit: 9)),
      .set("tasks/new", ("rank", 99)),
      conflicts: true),
    Case(
      "a result that was not read is deleted", .firstResults(tasks(by: rank, limit: 2), 1), .delete("tasks/b"),
      conflicts: true),
    Case(
      "a document that the offset skips is deleted", .query(tasks(by: rank, limit: 1, offset: 2)), .delete("tasks/a"),
      conflicts: true),
    Case(
      "a document after offset and limit is deleted", .query(tasks(by: rank, limit: 1, offset: 2)), .delete("tasks/d"),
      conflicts: false),
    Case("a document is deleted and the limit is 0", .query(tasks(limit: 0)), .delete("tasks/a"), conflicts: false),
    // The scope.
    Case(
      "a document of a group changes", .query(notes), .merge("users/ann/notes/n1", ["size"], ("size", 9)),
      conflicts: true),
    Case("a group gets a collection", .query(notes), .set("users/new/notes/n1"), conflicts: true),
    Case(
      "a group gets a collection at a deeper level", .query(notes), .set("users/ann/notes/n1/more/m/notes/n"),
      conflicts: true),
    Case(
      "documents outside a group change", .query(notes), .set("users/ann/other/x"),
      .merge("users/ben", ["name"], ("name", "B")),
      conflicts: false),
    Case("a document is created below the parent", .query(belowAnn), .set("users/ann/new/x/deep/y"), conflicts: true),
    Case("the parent itself changes", .query(belowAnn), .set("users/ann", ("name", "Ann")), conflicts: false),
    Case(
      "a document is created below another document", .query(belowAnn), .set("users/anna/notes/n1"), conflicts: false),
    Case("a collection is created at the root", .query(atRoot), .set("fresh/x"), conflicts: true),
    Case(
      "a document is created below the root's collections", .query(atRoot), .set("users/ann/notes/n2"), conflicts: false
    ),
    // Aggregations.
    Case("a count goes up", .count(tasks(where: ofAnn)), .set("tasks/new", ("owner", "ann")), conflicts: true),
    Case("a count goes down", .count(tasks(where: ofAnn)), .delete("tasks/a"), conflicts: true),
    Case(
      "a counted document changes", .count(tasks(where: ofAnn)), .merge("tasks/a", ["rank"], ("rank", 9)),
      conflicts: false),
    Case(
      "a counted document is deleted and created", .count(tasks(where: ofAnn)), .delete("tasks/a"),
      .set("tasks/a", ("owner", "ann")), conflicts: false),
    Case(
      "a document that is not counted is deleted", .count(tasks(where: ofAnn)), .delete("tasks/c"), conflicts: false),
    Case(
      "a term of a sum changes", .sum(tasks(where: ofAnn), "rank"), .merge("tasks/a", ["rank"], ("rank", 9)),
      conflicts: true),
    Case(
      "a term of a sum stays", .sum(tasks(where: ofAnn), "rank"), .merge("tasks/a", ["done"], ("done", true)),
      conflicts: false),
    Case(
      "a document without the term changes", .sum(tasks(where: ofAnn), "rank"),
      .merge("tasks/e", ["done"], ("done", true)),
      conflicts: false),
    Case(
      "a document gets the term", .sum(tasks(where: ofAnn), "rank"), .merge("tasks/e", ["rank"], ("rank", 0)),
      conflicts: true),
    // Listings.
    Case("a document is created within a page", listing("tasks", pageSize: 2), .set("tasks/aa"), conflicts: true),
    Case(
      "documents after a page change", listing("tasks", pageSize: 2), .set("tasks/bb"), .delete("tasks/c"),
      conflicts: false),
    Case(
      "a document is created within a page by a field", listing("tasks", pageSize: 2, orderBy: "rank desc"),
      .set("tasks/new", ("rank", 9)),
      conflicts: true),
    Case(
      "a document after a page by a field is deleted", listing("tasks", pageSize: 2, orderBy: "rank desc"),
      .delete("tasks/a"),
      conflicts: false),
    Case("a document before a page is deleted", secondPage("tasks"), .delete("tasks/a"), conflicts: false),
    Case("a document on the second page is deleted", secondPage("tasks"), .delete("tasks/c"), conflicts: true),
    Case(
      "a document is created before a page by a field", secondPage("tasks", orderBy: "rank desc"),
      .set("tasks/new", ("rank", 9)),
      conflicts: false),
    Case(
      "a document moves to the second page by a field", secondPage("tasks", orderBy: "rank desc"),
      .merge("tasks/e", ["rank"], ("rank", 2)), conflicts: true),
    Case(
      "a document is created after the last result of the last page", secondPage("tasks", orderBy: "rank desc"),
      .set("tasks/new", ("rank", 0)), conflicts: true),
    Case(
      "a missing document appears and is not requested", listing("users"), .set("users/new/notes/n"), conflicts: false),
    Case("a missing document appears", listing("users", showMissing: true), .set("users/new/notes/n"), conflicts: true),
    Case(
      "a missing document appears after the page", listing("users", pageSize: 1, showMissing: true),
      .set("users/zoe/notes/n"),
      conflicts: false),
    Case(
      "a missing document gets another document below it", listing("users", showMissing: true),
      .set("users/ann/notes/n2"),
      conflicts: false),
  ]

  @Test(arguments: cases) func conflictsFollowFromTheResult(test: Case) throws {
    let database = try SimulatedService()
    try database.commit(Self.documents)
    let transaction = try database.service.beginTransaction(.readWrite(retrying: nil), in: database.id, as: .admin)
    try read(test.reading, in: transaction, database)
    for change in test.changes { try database.commit([change]) }
    // Write a document that no transaction reads, so that every commit has a write.
    let mine = Write.set("mine/x", ("by", "me"))
    let result = try database.result(of: [mine], transaction: transaction)
    switch result {
    case .success: #expect(!test.conflicts)
    case .failure(let status):
      #expect(test.conflicts)
      #expect(status.code == .aborted)
      #expect(status.message.hasPrefix("Too much contention on these documents. Please try again."))
    }
    // A second attempt after a conflict succeeds.
    let again = try database.service.beginTransaction(.readWrite(retrying: transaction), in: database.id, as: .admin)
    try read(test.reading, in: again, database)
    _ = try database.result(of: [mine], transaction: again).get()
  }

  private func read(_ reading: Reading, in transaction: TransactionID, _ database: SimulatedService) throws {
    switch reading {
    case .query(let query): _ = try database.results(of: query, .transaction(transaction))
    case .firstResults(let query, let count):
      _ = try database.results(of: query, .transaction(transaction), countMax: count)
    case .count(let query):
      _ = try database.aggregate([Aggregation(.count(upTo: nil), alias: "n")], query, .transaction(transaction))
    case .sum(let query, let name):
      _ = try database.aggregate([Aggregation(.sum(field(name)), alias: "n")], query, .transaction(transaction))
    case .list(var request):
      request.consistency = .transaction(transaction)
      _ = try database.service.listPage(request, in: database.id) { _ in }
    case .secondPage(var request):
      request.pageToken = try database.service.listPage(request, in: database.id) { _ in }
      request.consistency = .transaction(transaction)
      _ = try database.service.listPage(request, in: database.id) { _ in }
    }
  }

  /// The first query of a transaction begins it, as in clients.
  @Test func aQueryBeginsATransaction() throws {
    let database = try SimulatedService()
    try database.commit(Self.documents)
    for isAggregation in [false, true] {
      var transaction: TransactionID?
      if isAggregation {
        var request = RunAggregationQueryRequest(
          Self.tasks(where: Self.ofAnn), [Aggregation(.count(upTo: nil), alias: "n")])
        request.newTransaction = .readWrite(retrying: nil)
        transaction = try database.service.numbers(request, in: database.id).transaction
      } else {
        var request = RunQueryRequest(Self.tasks(where: Self.ofAnn))
        request.newTransaction = .readWrite(retrying: nil)
        let cursor = try database.service.runQuery(request, in: database.id, as: .admin)
        while !cursor.isAtEnd { try cursor.slice { _, _ in true } }
        transaction = cursor.transaction
      }
      try database.commit([.set("tasks/new\(isAggregation)", ("owner", "ann"))])
      let result = try database.result(of: [], transaction: transaction ?? TransactionID(bytes: []))
      #expect(throws: Status.self) { try result.get() }
    }
  }
}
