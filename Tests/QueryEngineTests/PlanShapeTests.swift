import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@testable import QueryEngine

/// Queries that differ only in values, which use the indexes that the planner chose for the first of them.
@Suite struct PlanShapeTests {
  private static let configuration = IndexConfiguration(indexes: [
    index(("a", .ascending), ("n", .descending)), index(("a", .ascending), ("b", .ascending), ("n", .descending)),
    index(("b", .ascending), ("n", .descending)), index(("t", .contains), ("n", .descending)),
  ])

  private static func index(_ fields: (String, IndexDefinition.Mode)...) -> IndexDefinition {
    IndexDefinition(
      collectionID: "c", scope: .collection, fields: fields.map { IndexDefinition.Field(field($0.0), $0.1) })
  }

  private static func query(
    _ filters: QueryFilter..., start: QueryBound? = nil, limit: Int? = 5, parent: ResourcePath = .root
  ) -> Query {
    var query = Query(parent: parent, collectionID: "c")
    query.filter = .and(filters)
    query.orders = [Order(field("n"), isDescending: true)]
    query.start = start
    query.limit = limit
    return query
  }

  private static func equal(_ path: String, _ value: Value) -> QueryFilter { .field(field(path), .equal, value) }
  private static let long = String(repeating: "x", count: 2000)

  private struct Outcome: Equatable {
    let plan: String
    let paths: [String]
  }

  private let database: QueryDatabase

  init() throws {
    database = try QueryDatabase()
    var writes: [Write] = []
    for number in 0..<60 {
      let fields: [(String, Value)] = [
        ("a", number % 7 == 0 ? .string(Self.long + "\(number)") : .integer(Int64(number % 3))),
        ("b", .boolean(number.isMultiple(of: 2))), ("n", .integer(Int64(number * 31 % 60))),
        ("t", .array([.integer(Int64(number % 4)), .string("all")])),
      ]
      writes.append(Write(.update(EncodedFields(MapValue(fields)), mask: nil), key: document("c/d\(number)")))
    }
    try database.commit(writes)
    try database.setIndexes(Self.configuration)
  }

  /// The catalog that the requests of a server share.
  private var catalog: IndexCatalog {
    get throws { try database.database.read { try database.database.indexes(&$0) } }
  }

  private func run(_ query: Query, _ catalog: IndexCatalog) throws -> Outcome {
    let version = try database.lastVersion()
    let resolved = try ResolvedQuery(query, in: database.id)
    return try database.database.read { reader in
      let results = try resolved.results(reader.snapshot, at: version, PlanOptions(indexes: catalog))
      var paths: [String] = []
      try results.slice(reader.snapshot, units: .max) { key, _ in
        paths.append(key.path.text)
        return true
      }
      return Outcome(plan: results.planText, paths: paths)
    }
  }

  /// Runs a query with the shared catalog, and compares it with a run whose planner knows no earlier query.
  @discardableResult
  private func check(_ query: Query, _ location: SourceLocation = #_sourceLocation) throws -> Outcome {
    let outcome = try run(query, catalog)
    let alone = try run(query, database.database.read { try IndexCatalog(&$0) })
    #expect(outcome == alone, sourceLocation: location)
    return outcome
  }

  private func choice(for query: Query) throws -> [StoredIndex]? {
    let resolved = try ResolvedQuery(query, in: database.id)
    return PlanShape(resolved, resolved.alternatives).flatMap { try? catalog.choices[$0] }
  }

  @Test func otherValuesUseTheChosenIndexes() throws {
    let first = Self.query(Self.equal("a", .integer(1)), Self.equal("b", .boolean(true)))
    #expect(try choice(for: first) == nil)
    let plan = try check(first).plan
    // The store keeps an index and its reverse as one.
    let index = "c (a descending, b descending, n ascending)"
    #expect(plan.contains("index \(index):"), "\(plan)")
    #expect(try choice(for: first)?.map(\.definition.text) == [index])
    for a in 0..<4 {
      for b in [true, false] {
        let other = Self.query(Self.equal("a", .integer(Int64(a))), Self.equal("b", .boolean(b)), limit: a + 1)
        #expect(try choice(for: other) != nil)
        try check(other)
      }
    }
  }

  /// The indexes do not suit all values.
  @Test func unsuitableValuesArePlannedAnew() throws {
    try check(Self.query(Self.equal("a", .integer(1))))
    // The code of a long value is cut, so that its entries are not in the order of the query.
    let long = try check(Self.query(Self.equal("a", .string(Self.long + "7"))))
    #expect(!long.plan.contains("index"), "\(long.plan)")
    #expect(long.paths == ["c/d7"])
    try check(Self.query(Self.equal("a", .integer(1)), Self.equal("b", .boolean(true))))
    try check(Self.query(Self.equal("a", .string(Self.long + "14")), Self.equal("b", .boolean(true))))
    // Two values that contradict each other, in the shape of two equal ones.
    try check(Self.query(Self.equal("a", .integer(1)), Self.equal("a", .integer(1))))
    #expect(try check(Self.query(Self.equal("a", .integer(1)), Self.equal("a", .integer(2)))).paths == [])
    #expect(try check(Self.query(Self.equal("a", .integer(1)), limit: 0)).plan == "limit 0\n  nothing")
  }

  @Test func aCatalogWithOtherIndexesForgetsTheChoices() throws {
    let query = Self.query(Self.equal("a", .integer(1)), Self.equal("b", .boolean(true)))
    try check(query)
    let before = try catalog
    try database.setIndexes(IndexConfiguration(indexes: [Self.configuration.indexes[0]]))
    #expect(try catalog !== before)
    #expect(try choice(for: query) == nil)
    #expect(try !check(query).plan.contains("b ascending"))
    try database.setIndexes(IndexConfiguration())
    #expect(try !check(query).plan.contains("index"))
    try database.setIndexes(Self.configuration)
    try check(query)
    try database.commit([Write(.delete, key: document("c/d1"))])
    try check(query)
  }

  /// Random values in some shapes, with commits between them.
  @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
  func randomValuesGiveTheResultsOfNewPlans(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    func value(_ random: inout SplitMix) -> Value {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: .string(Self.long + "\(Int.random(in: 0..<60, using: &random))")
      case 1: .boolean(Bool.random(using: &random))
      case 2: .null
      default: .integer(Int64.random(in: -1..<5, using: &random))
      }
    }
    for step in 0..<150 {
      var filters: [QueryFilter] = []
      if Bool.random(using: &random) { filters.append(Self.equal("a", value(&random))) }
      if Bool.random(using: &random) { filters.append(Self.equal("b", value(&random))) }
      if Int.random(in: 0..<3, using: &random) == 0 {
        filters.append(.field(field("t"), .arrayContains, value(&random)))
      }
      if Bool.random(using: &random) {
        let op = Bool.random(using: &random) ? FieldOperator.lessThan : .greaterThanOrEqual
        filters.append(.field(field("n"), op, value(&random)))
      }
      var query = Self.query(limit: Bool.random(using: &random) ? nil : Int.random(in: 0..<9, using: &random))
      query.filter = filters.isEmpty ? nil : .and(filters)
      query.orders[0] = Order(field("n"), isDescending: Bool.random(using: &random))
      if Int.random(in: 0..<4, using: &random) == 0 {
        query.start = QueryBound([value(&random)], isBefore: Bool.random(using: &random))
      }
      guard (try? ResolvedQuery(query, in: database.id)) != nil else { continue }
      try check(query)
      if step.isMultiple(of: 40) { try database.commit([Write(.delete, key: document("c/d\(step / 4)"))]) }
    }
  }
}
