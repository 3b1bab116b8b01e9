import DocumentModel
import TestSupport
import Testing

/// How queries are answered, in the plan's text.
@Suite struct PlanTests {
  private struct Row: Sendable {
    var filter: QueryFilter?
    var orders: [Order] = []
    var limit: Int?
    var plan: String
  }

  private static func on(_ path: String, _ op: FieldOperator, _ value: Value = 1) -> QueryFilter {
    .field(field(path), op, value)
  }

  private static let rows = [
    Row(plan: "filter\n  scan names of c"),
    Row(orders: [Order(field("__name__"), isDescending: true)], limit: 3, plan:
      "limit 3\n  sort by __name__ descending\n    filter\n      scan names of c"),
    Row(filter: on("a", .equal), plan: "filter\n  scan entries of c: a == …"),
    Row(filter: on("a", .equal), orders: [Order(field("__name__"), isDescending: true)], plan:
      "filter\n  scan entries of c: a == … descending"),
    Row(filter: .unary(field("a"), .isNull), plan: "filter\n  scan entries of c: a == …"),
    Row(filter: on("l", .arrayContains), plan: "filter\n  scan entries of c: l contains …"),
    Row(filter: .and([on("a", .equal), on("b", .equal)]), plan: "filter\n  intersect entries of c: a == … and b == …"),
    Row(filter: on("a", .in, [1, 2]), plan: "filter\n  unite entries of c: a == … or a == …"),
    Row(filter: .or([on("a", .equal), .and([on("a", .equal), on("b", .equal)])]), plan:
      "filter\n  unite entries of c: a == … or a == … and b == …"),
    Row(filter: .or([on("a", .equal), on("nowhere", .equal)]), plan: "filter\n  scan entries of c: a == …"),
    Row(filter: on("nowhere", .equal), plan: "filter\n  nothing"),
    Row(filter: on("a", .greaterThan), plan: "filter\n  scan entries of c: a > …"),
    Row(filter: .and([on("a", .greaterThan), on("a", .lessThanOrEqual)]), orders: [Order(field("a"), isDescending: true)],
      limit: 5, plan: "limit 5\n  filter\n    scan entries of c: a > … and a <= … descending"),
    Row(orders: [Order(field("a"))], plan: "filter\n  scan entries of c: a"),
    Row(orders: [Order(field("a")), Order(field("__name__"), isDescending: true)], plan:
      "sort by a, __name__ descending\n  filter\n    scan entries of c: a"),
    Row(orders: [Order(field("a")), Order(field("b"))], plan: "sort by a, b, __name__\n  filter\n    scan entries of c: a"),
    Row(filter: on("b", .equal), orders: [Order(field("a"))], plan:
      "sort by a, __name__\n  filter\n    scan entries of c: b == …"),
    Row(filter: on("a", .notEqual), plan: "filter\n  scan entries of c: a"),
    Row(limit: 0, plan: "limit 0\n  filter\n    nothing"),
  ]

  @Test func plansOfACollection() throws {
    let database = try QueryDatabase()
    let version = try database.commit([.set("c/x", ("a", 1), ("b", 1), ("l", [1])), .set("d/x/c/y", ("a", 1))])
    for row in Self.rows {
      var query = Query(collectionID: "c")
      query.filter = row.filter
      query.orders = row.orders
      query.limit = row.limit
      #expect(try database.plan(query) == row.plan)
    }
    // Entries are of now: the past is scanned.
    var query = Query(collectionID: "c")
    query.filter = Self.on("a", .greaterThan)
    #expect(try database.plan(query, at: version) == "sort by a, __name__\n  filter\n    scan names of c")
  }

  @Test func plansOfManyCollections() throws {
    let database = try QueryDatabase()
    try database.commit([.set("c/x", ("a", 1)), .set("d/x/c/y", ("a", 1)), .set("d/x/e/y", ("a", 1))])
    let rows = [
      (Query(collectionID: "c", includesDescendants: true), "sort by __name__\n  filter\n    scan 2 collections"),
      (Query(parent: document("d/x").path, collectionID: "c", includesDescendants: true),
        "sort by __name__\n  filter\n    scan 1 collections"),
      (Query(collectionID: nil, includesDescendants: true), "filter\n  walk all below /"),
      (Query(parent: document("d/x").path, collectionID: nil, includesDescendants: true), "filter\n  walk all below /d/x"),
      (Query(parent: document("d/x").path, collectionID: nil), "sort by __name__\n  filter\n    scan 2 collections"),
      (Query(collectionID: "missing"), "filter\n  nothing"),
    ]
    for (query, plan) in rows { #expect(try database.plan(query) == plan) }
  }
}
