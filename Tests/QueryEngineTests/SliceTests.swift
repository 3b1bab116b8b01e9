import DocumentModel
import QueryEngine
import Testing
import TestSupport
import WireFormat

/// A query has the same results by entries or by names, in one slice or in many, and regardless of commits between
/// slices.
@Suite struct SliceTests {
  private static let ways: [(name: String, options: PlanOptions)] = [
    ("entries", PlanOptions()),
    ("names", options { $0.ways = .names }),
    // The query stops using entries at the first change, or at the fourth.
    ("no changes", options { $0.changesMax = 0 }),
    ("three changes", options { $0.changesMax = 3 }),
  ]

  private static func options(_ set: (inout PlanOptions) -> Void) -> PlanOptions {
    var options = PlanOptions()
    set(&options)
    return options
  }

  @Test(arguments: 1...8) func everyPlanShowsTheResultsOfItsVersion(seed: UInt64) throws {
    var world = try World(seed: seed)
    let model = QueryModel(world.database.id)
    for _ in 0..<12 {
      let (query, orders) = try world.query()
      let version = try world.database.lastVersion()
      let expected = model.results(query, orders: orders, in: world.documents)
      for (name, options) in Self.ways {
        let plan = try world.database.plan(query, options)
        let whole = try world.database.run(query, at: version, options, units: 1)
        #expect(whole == expected, "seed \(seed), \(name), row by row: \(plan)\n\(query)")
        let sliced = try world.database.run(query, at: version, options, units: world.generator.number(1...60)) {
          try world.change()
        }
        #expect(sliced == expected, "seed \(seed), \(name), with changes: \(plan)\n\(query)")
        let later = try world.database.run(query, at: version, options)
        #expect(later == expected, "seed \(seed), \(name), later: \(plan)\n\(query)")
      }
    }
  }

  @Test(arguments: 1...6) func everyPlanAggregatesTheResultsOfItsVersion(seed: UInt64) throws {
    var world = try World(seed: seed)
    let model = QueryModel(world.database.id)
    let a = field("a")
    for _ in 0..<12 {
      let (query, orders) = try world.query()
      let version = try world.database.lastVersion()
      let count = Value.integer(Int64(model.results(query, orders: orders, in: world.documents).count))
      let numbers = try world.database.aggregate(
        query, [.count(upTo: nil), .sum(a), .average(a)], at: version, Self.ways[1].options)
      for (name, options) in Self.ways {
        let plan = try world.database.plan(query, options)
        let sliced = try world.database.aggregate(
          query, [.count(upTo: nil)], at: version, options, units: world.generator.number(1...60)
        ) {
          try world.change()
        }
        #expect(sliced == [count], "seed \(seed), \(name), count: \(plan)\n\(query)")
        let all = try world.database.aggregate(
          query, [.count(upTo: nil), .sum(a), .average(a)], at: version, options, units: world.generator.number(1...60)
        ) {
          try world.change()
        }
        #expect(all == numbers, "seed \(seed), \(name), sums: \(plan)\n\(query)")
      }
    }
  }

  /// Nested collections, some of which change before the query reaches them.
  @Test(arguments: 1...10) func nestedCollectionsShowOneVersion(seed: UInt64) throws {
    var world = try World(seed: seed)
    let model = QueryModel(world.database.id)
    for query in [
      Query(collectionID: nil, includesDescendants: true), Query(collectionID: "s", includesDescendants: true),
      Query(collectionID: nil), Query(parent: document("c/x").path, collectionID: nil, includesDescendants: true),
    ] {
      for _ in 0..<4 {
        let version = try world.database.lastVersion()
        let expected = model.results(query, orders: [Order(field("__name__"))], in: world.documents)
        let sliced = try world.database.run(query, at: version, units: world.generator.number(1...60)) {
          try world.change()
        }
        #expect(sliced == expected, "seed \(seed): \(query)")
      }
    }
  }

  /// The work of a slice is limited even if it finds no results.
  @Test func slicesWithoutResultsEnd() throws {
    let database = try QueryDatabase()
    try database.commit((0..<400).map { .set("c/\($0)", ("a", .integer(Int64($0))), ("b", 1)) })
    var byNames = Query(collectionID: "c")
    byNames.filter = .field(field("a"), .notIn, .array([1]))
    byNames.limit = 0
    var byEntries = Query(collectionID: "c")
    byEntries.filter = .and([.field(field("a"), .greaterThan, 5), .field(field("b"), .lessThan, 1)])
    var sorted = Query(collectionID: "c")
    sorted.orders = [Order(field("a")), Order(field("b"))]
    sorted.filter = .field(field("b"), .notIn, .array([1]))
    for query in [byEntries, sorted] {
      var slices = 0
      _ = try database.run(query, units: 100) { slices += 1 }
      #expect(slices > 10, "\(slices) slices")
    }
    #expect(try database.run(byNames) == [])
  }
}

/// The documents of a test run and their changes.
private struct World {
  let database: QueryDatabase
  var generator: QueryGenerator
  private(set) var documents: [QueryModel.Document]
  private var deleted: [QueryModel.Document] = []

  init(seed: UInt64) throws {
    database = try QueryDatabase()
    generator = QueryGenerator(seed: seed)
    documents = generator.documents()
    try database.set(documents)
  }

  /// Changes, deletes and creates some documents, or none.
  mutating func change() throws {
    guard generator.number(0...3) == 0 else { return }
    var writes: [Write] = []
    for _ in 0..<generator.number(1...3) {
      let isCreation = !deleted.isEmpty && (documents.isEmpty || generator.number(0...2) == 0)
      if isCreation {
        documents.append(deleted.remove(at: generator.number(0...deleted.count - 1)))
      }
      let index = isCreation ? documents.count - 1 : generator.number(0...documents.count - 1)
      let key = document(documents[index].path.text)
      writes.removeAll { $0.key == key }
      if !isCreation, generator.number(0...2) == 0 {
        writes.append(Write(.delete, key: key))
        deleted.append(documents.remove(at: index))
      } else {
        documents[index].fields = generator.documentFields()
        writes.append(Write(.update(EncodedFields(documents[index].fields), mask: nil), key: key))
      }
    }
    try database.commit(writes)
  }

  /// Returns a valid query with its complete order.
  mutating func query() throws -> (query: Query, orders: [Order]) {
    while true {
      var query = generator.query()
      if generator.number(0...2) == 0 { query.limit = generator.number(0...6) }
      if generator.number(0...3) == 0 { query.offset = generator.number(0...4) }
      if let orders = try? ResolvedQuery(query, in: database.id).orders { return (query, orders) }
    }
  }
}
