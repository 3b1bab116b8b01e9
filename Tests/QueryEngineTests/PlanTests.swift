import DocumentModel
import QueryEngine
import Testing
import TestSupport

/// The plans of queries, in text form.
@Suite struct PlanTests {
  private struct Row: Sendable {
    var filter: QueryFilter?
    var orders: [Order] = []
    var start: QueryBound?
    var end: QueryBound?
    var limit: Int?
    var plan: String
  }

  private static func on(_ path: String, _ op: FieldOperator, _ value: Value = 1) -> QueryFilter {
    .field(field(path), op, value)
  }

  private static func named(_ op: FieldOperator, _ paths: String...) -> QueryFilter {
    let names = paths.map { Value.reference("projects/p/databases/(default)/documents/\($0)") }
    return .field(field("__name__"), op, op == .in ? .array(names) : names[0])
  }

  private static func at(_ values: Value..., before isBefore: Bool = false) -> QueryBound {
    QueryBound(values, isBefore: isBefore)
  }

  private static let name = field("__name__")

  private static let rows = [
    Row(plan: "scan names of c"),
    Row(orders: [Order(name, isDescending: true)], limit: 3, plan: "limit 3\n  scan names of c descending"),
    Row(filter: on("a", .equal), plan: "scan entries of c: a == …"),
    Row(
      filter: on("a", .equal), orders: [Order(name, isDescending: true)],
      plan:
        "scan entries of c: a == … descending"),
    Row(filter: .unary(field("a"), .isNull), plan: "scan entries of c: a == …"),
    Row(filter: on("l", .arrayContains), plan: "scan entries of c: l contains …"),
    Row(filter: .and([on("a", .equal), on("b", .equal)]), plan: "intersect entries of c: a == … and b == …"),
    Row(filter: on("a", .in, [1, 2]), plan: "unite entries of c: a == … or a == …"),
    Row(
      filter: .or([on("a", .equal), .and([on("a", .equal), on("b", .equal)])]),
      plan:
        "unite entries of c: a == … or a == … and b == …"),
    Row(filter: .or([on("a", .equal), on("nowhere", .equal)]), plan: "scan entries of c: a == …"),
    Row(filter: on("nowhere", .equal), plan: "nothing"),
    Row(filter: on("a", .equal, .null), plan: "nothing"),
    Row(filter: on("a", .greaterThan), plan: "scan entries of c: a > …"),
    Row(
      filter: .and([on("a", .greaterThan), on("a", .lessThanOrEqual)]), orders: [Order(field("a"), isDescending: true)],
      limit: 5, plan: "limit 5\n  scan entries of c: a > … and a <= … descending"),
    Row(
      filter: on("a", .greaterThan, .string(String(repeating: "v", count: 2000))),
      plan:
        "filter\n  scan entries of c: a > …"),
    Row(orders: [Order(field("a"))], plan: "scan entries of c: a"),
    Row(
      orders: [Order(field("a")), Order(name, isDescending: true)],
      plan:
        "sort by __name__ descending within a\n  scan entries of c: a"),
    Row(
      orders: [Order(field("a")), Order(field("b"))],
      plan:
        "sort by b, __name__ within a\n  filter\n    scan entries of c: a"),
    Row(
      filter: on("b", .greaterThan), orders: [Order(field("a"))],
      plan:
        "sort by a, b, __name__\n  filter\n    scan entries of c: b > …"),
    Row(
      filter: on("b", .equal), orders: [Order(field("a"))],
      plan:
        "sort by a, __name__\n  filter\n    scan entries of c: b == …"),
    Row(filter: on("a", .notEqual), plan: "filter\n  scan entries of c: a"),
    Row(filter: .unary(field("a"), .isNotNull), plan: "scan entries of c: a != null"),
    Row(limit: 0, plan: "limit 0\n  nothing"),
    // Bounds on the name.
    Row(filter: named(.greaterThan, "c/m"), plan: "scan names of c between names"),
    Row(filter: named(.equal, "c/m"), plan: "scan names of c between names"),
    Row(filter: named(.in, "c/m", "c/x", "d/y"), plan: "scan names of c at 3 names"),
    Row(filter: .and([on("a", .equal), named(.lessThan, "c/m")]), plan: "scan entries of c: a == … between names"),
    Row(filter: .and([on("a", .equal), named(.equal, "c/m")]), plan: "filter\n  scan names of c between names"),
    // Bounds from cursors.
    Row(orders: [Order(field("a"))], start: at(1), plan: "scan entries of c: a between cursors"),
    Row(
      orders: [Order(field("a"), isDescending: true)], end: at(1),
      plan:
        "scan entries of c: a between cursors descending"),
    Row(
      filter: on("b", .equal), start: at(.reference("projects/p/databases/(default)/documents/c/m")),
      plan:
        "scan entries of c: b == … between names"),
    Row(
      orders: [Order(field("a")), Order(field("b"))], start: at(1),
      plan:
        "sort by b, __name__ within a\n  filter\n    scan entries of c: a between cursors"),
  ]

  @Test func queriesOfOneCollectionHaveTheListedPlans() throws {
    let database = try QueryDatabase()
    try database.commit([.set("c/x", ("a", 1), ("b", 1), ("l", [1])), .set("d/x/c/y", ("a", 1))])
    for row in Self.rows {
      var query = Query(collectionID: "c")
      query.filter = row.filter
      query.orders = row.orders
      query.start = row.start
      query.end = row.end
      query.limit = row.limit
      let plan = try database.plan(query)
      #expect(plan == row.plan)
    }
    var query = Query(collectionID: "c")
    query.filter = Self.on("a", .greaterThan)
    var options = PlanOptions()
    options.ways = .names
    #expect(try database.plan(query, options) == "sort by a, __name__\n  filter\n    scan names of c")
  }

  @Test func queriesOfSeveralCollectionsHaveTheListedPlans() throws {
    let database = try QueryDatabase()
    try database.commit([.set("c/x", ("a", 1)), .set("d/x/c/y", ("a", 1)), .set("d/x/e/y", ("a", 1))])
    let below = document("d/x").path
    var equality = Query(collectionID: "c", includesDescendants: true)
    equality.filter = Self.on("a", .equal)
    var range = Query(collectionID: "c", includesDescendants: true)
    range.filter = Self.on("a", .greaterThan)
    var named = Query(collectionID: nil, includesDescendants: true)
    named.filter = Self.named(.greaterThan, "d/x/c/a")
    let rows = [
      (Query(collectionID: "c", includesDescendants: true), "scan names of **/c"),
      (Query(parent: below, collectionID: "c", includesDescendants: true), "scan names of d/x/**/c"),
      (Query(collectionID: nil, includesDescendants: true), "scan names of **"),
      (Query(parent: below, collectionID: nil, includesDescendants: true), "scan names of d/x/**"),
      (Query(parent: below, collectionID: nil), "scan names of d/x/*"),
      (Query(collectionID: "missing"), "nothing"),
      (equality, "scan entries of **/c: a == …"),
      (range, "sort by a, __name__\n  filter\n    scan names of **/c"),
      (named, "scan names of ** between names"),
    ]
    for (query, plan) in rows { #expect(try database.plan(query) == plan) }
  }
}
