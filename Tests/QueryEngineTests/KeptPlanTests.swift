import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@testable import QueryEngine

/// Queries whose plan is kept for their later runs.
@Suite struct KeptPlanTests {
  private static let byNumber = IndexDefinition(
    collectionID: "c", scope: .collection,
    fields: [.init(field("done"), .ascending), .init(field("n"), .descending)])
  private static let query: Query = {
    var query = Query(parent: .root, collectionID: "c")
    query.filter = .field(field("done"), .equal, .boolean(true))
    query.orders = [Order(field("n"), isDescending: true)]
    query.limit = 3
    return query
  }()

  private struct Outcome: Equatable {
    let plan: String
    let paths: [String]
  }

  private let database: QueryDatabase

  init() throws { database = try QueryDatabase() }

  private func set(_ id: String, _ number: Int, done: Bool = true) throws {
    let fields = EncodedFields(MapValue([("done", .boolean(done)), ("n", .integer(Int64(number)))]))
    try database.commit([Write(.update(fields, mask: nil), key: document("c/\(id)"))])
  }

  private func run(_ query: ResolvedQuery) throws -> Outcome {
    let version = try database.lastVersion()
    return try database.database.read { reader in
      let options = PlanOptions(indexes: try database.database.indexes(&reader))
      let results = try query.results(reader.snapshot, at: version, options)
      var paths: [String] = []
      try results.slice(reader.snapshot, units: QueryExecution.sliceUnits) { key, _ in
        paths.append(key.path.text)
        return true
      }
      return Outcome(plan: results.planText, paths: paths)
    }
  }

  @Test func aKeptPlanGivesTheResultsOfANewOne() throws {
    let kept = try ResolvedQuery(Self.query, in: database.id, keepsPlan: true)
    func check(_ paths: [String], usesIndex: Bool, _ location: SourceLocation = #_sourceLocation) throws {
      // Twice, so that the plan of this state is used too.
      for _ in 0..<2 {
        let outcome = try run(kept)
        #expect(outcome == (try run(ResolvedQuery(Self.query, in: database.id))), sourceLocation: location)
        #expect(outcome.paths == paths, sourceLocation: location)
        #expect(outcome.plan.contains("index") == usesIndex, "\(outcome.plan)", sourceLocation: location)
      }
    }
    try check([], usesIndex: false)
    try set("a", 1)
    try set("b", 2)
    try set("no", 9, done: false)
    try check(["c/b", "c/a"], usesIndex: false)
    try database.setIndexes(IndexConfiguration(indexes: [Self.byNumber]))
    try check(["c/b", "c/a"], usesIndex: true)
    #expect(kept.memo?.plan(for: try database.database.read { try database.database.indexes(&$0) }) != nil)
    try set("c", 3)
    try set("d", 4)
    try check(["c/d", "c/c", "c/b"], usesIndex: true)
    try set("d", 0)
    try set("c", 5, done: false)
    try check(["c/b", "c/a", "c/d"], usesIndex: true)
    try database.setIndexes(IndexConfiguration())
    try check(["c/b", "c/a", "c/d"], usesIndex: false)
  }

  /// A run that only counts has another plan.
  @Test func otherOptionsDoNotUseTheKeptPlan() throws {
    try database.setIndexes(IndexConfiguration(indexes: [Self.byNumber]))
    try set("a", 1)
    let kept = try ResolvedQuery(Self.query, in: database.id, keepsPlan: true)
    _ = try run(kept)
    let catalog = try database.database.read { try database.database.indexes(&$0) }
    #expect(kept.memo?.plan(for: catalog) != nil)
    var options = PlanOptions(indexes: catalog)
    options.ways = .names
    let plan = try database.database.read { try QueryPlanner.plan(kept, $0.snapshot, catalog, options) }
    #expect(!plan.description.contains("index"), "\(plan.description)")
  }
}
