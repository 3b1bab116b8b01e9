import DocumentModel
import DocumentStore
import QueryEngine
import Testing
import TestSupport
import WireFormat

/// Queries with declared indexes: their plans, and that indexes never change their results.
@Suite struct DeclaredIndexTests {
  private static func index(
    _ id: String, _ fields: (String, IndexDefinition.Mode)..., group: Bool = false
  ) -> IndexDefinition {
    IndexDefinition(
      collectionID: id, scope: group ? .collectionGroup : .collection,
      fields: fields.map { IndexDefinition.Field(field($0.0), $0.1) })
  }

  private static func on(_ path: String, _ op: FieldOperator, _ value: Value = 1) -> QueryFilter {
    .field(field(path), op, value)
  }

  private static func up(_ path: String) -> Order { Order(field(path)) }
  private static func down(_ path: String) -> Order { Order(field(path), isDescending: true) }

  private static let configuration = IndexConfiguration(
    indexes: [
      index("c", ("a", .ascending), ("b", .ascending)),
      index("c", ("x", .ascending), ("b", .ascending)),
      index("c", ("a", .ascending), ("b", .descending), ("d", .ascending)),
      index("c", ("t", .contains), ("b", .descending)),
      index("c", ("a", .ascending), ("x", .ascending), ("y", .ascending)),
      index("c", ("a", .ascending), ("b", .ascending), group: true),
      index("v", ("a", .ascending), ("w", .vector(dimension: 2))),
    ],
    fields: [
      FieldIndexing(
        collectionID: "c", path: field("b"),
        entries: FieldIndexing.automatic.union([.init(.collectionGroup, .descending)])),
      FieldIndexing(collectionID: "c", path: field("free"), entries: []),
    ])

  private struct Row: Sendable {
    var filter: QueryFilter?
    var orders: [Order] = []
    var start: QueryBound?
    var limit: Int?
    var isGroup = false
    var plan: String
  }

  private static let rows = [
    // Equality and order, in either direction.
    Row(
      filter: on("a", .equal), orders: [up("b")], limit: 20,
      plan:
        "limit 20\n  scan index c (a ascending, b ascending): a == …"),
    Row(
      filter: on("a", .equal), orders: [down("b")], limit: 20,
      plan:
        "limit 20\n  scan index c (a ascending, b ascending): a == … descending"),
    Row(
      filter: on("a", .equal), orders: [up("b")], start: QueryBound([5], isBefore: false),
      plan:
        "scan index c (a ascending, b ascending): a == … between cursors"),
    // A range after the equality.
    Row(
      filter: .and([on("a", .equal), on("b", .greaterThan), on("b", .lessThan, 9)]),
      plan:
        "scan index c (a ascending, b ascending): a == … and b > … and b < …"),
    Row(
      filter: .and([on("a", .equal), on("b", .notEqual)]),
      plan:
        "filter\n  scan index c (a ascending, b ascending): a == …"),
    // Different directions.
    Row(
      filter: on("a", .equal), orders: [down("b"), up("d")],
      plan:
        "scan index c (a ascending, b descending, d ascending): a == …"),
    Row(
      filter: on("a", .equal), orders: [up("b"), down("d")],
      plan:
        "scan index c (a ascending, b descending, d ascending): a == … descending"),
    Row(orders: [up("a"), up("b")], plan: "scan index c (a ascending, b ascending): all"),
    Row(
      filter: on("a", .greaterThan), orders: [up("a"), up("b")],
      plan:
        "scan index c (a ascending, b ascending): a > …"),
    // No index has these directions.
    Row(
      orders: [up("a"), down("b")],
      plan: "sort by b descending, __name__ descending within a\n  filter\n    scan entries of c: a"),
    // The order may contain a field of an equality.
    Row(filter: on("a", .equal), orders: [up("a"), up("b")], plan: "scan index c (a ascending, b ascending): a == …"),
    Row(
      filter: on("a", .equal), orders: [down("a"), up("b")], plan: "scan index c (a ascending, b ascending): a == …"),
    // Array elements.
    Row(
      filter: on("t", .arrayContains), orders: [down("b")],
      plan:
        "scan index c (t contains, b ascending): t contains … descending"),
    // Indexes that end in the same fields are used together.
    Row(
      filter: .and([on("a", .equal), on("x", .equal)]), orders: [up("b")],
      plan:
        "intersect indexes c (a ascending, b ascending) and c (x ascending, b ascending): a == … and x == …"),
    Row(
      filter: .and([on("a", .equal), on("x", .equal), on("t", .arrayContains)]), orders: [up("b")],
      plan:
        "intersect indexes c (a ascending, b ascending) and c (x ascending, b ascending) and c (t contains, b ascending): a == … and x == … and t contains …"
    ),
    // A condition without an index is filtered. A few documents are sorted, not scanned in order.
    Row(
      filter: .and([on("a", .equal), on("free", .equal)]), orders: [up("b")],
      plan:
        "sort by b, __name__\n  filter\n    scan entries of c: a == …"),
    // Several alternatives are merged in order.
    Row(
      filter: on("a", .in, [1, 2]), orders: [up("b")], limit: 5,
      plan:
        "limit 5\n  merge indexes c (a ascending, b ascending): a == … or c (a ascending, b ascending): a == …"),
    Row(
      filter: .or([on("a", .equal), on("x", .equal)]), orders: [up("b")],
      plan:
        "merge indexes c (a ascending, b ascending): a == … or c (x ascending, b ascending): x == …"),
    // Only equalities.
    Row(filter: on("a", .equal), plan: "scan entries of c: a == …"),
    Row(
      filter: .and([on("a", .equal), on("x", .equal), on("y", .equal)]),
      plan:
        "scan index c (a ascending, x ascending, y ascending): a == … and x == … and y == …"),
    // Exempt fields have no entries.
    Row(filter: on("free", .equal), plan: "filter\n  scan names of c"),
    Row(orders: [up("free")], plan: "sort by free, __name__\n  filter\n    scan names of c"),
    // Collection groups.
    Row(
      filter: on("a", .equal), orders: [up("b")], isGroup: true,
      plan:
        "scan index group of c (a ascending, b ascending): a == …"),
    Row(
      filter: on("b", .greaterThan), orders: [down("b")], isGroup: true,
      plan:
        "scan index group of c (b ascending): b > … descending"),
    Row(filter: on("b", .equal), isGroup: true, plan: "scan index group of c (b ascending): b == …"),
    Row(filter: on("a", .equal), isGroup: true, plan: "scan entries of **/c: a == …"),
  ]

  @Test func queriesUseDeclaredIndexes() throws {
    let database = try QueryDatabase(indexes: Self.configuration)
    try database.commit([
      .set("c/x", ("a", 1), ("b", 1), ("d", 1), ("t", [1]), ("x", 1), ("y", 1), ("free", 1)), .set("d/x/c/y", ("a", 1)),
    ])
    for row in Self.rows {
      var query = Query(collectionID: "c", includesDescendants: row.isGroup)
      query.filter = row.filter
      query.orders = row.orders
      query.start = row.start
      query.limit = row.limit
      let plan = try database.plan(query)
      #expect(plan == row.plan, "\(plan) is not \(row.plan)")
    }
  }

  /// Declaring an index changes the plan, and removing it restores the old plan.
  @Test func planFollowsTheDeclaredIndexes() throws {
    let database = try QueryDatabase()
    try database.commit((0..<30).map { .set("c/\($0)", ("a", 1), ("b", .integer(Int64($0)))) })
    var query = Query(collectionID: "c")
    query.filter = Self.on("a", .equal)
    query.orders = [Self.up("b")]
    let before = try database.plan(query)
    try database.setIndexes(Self.configuration)
    #expect(try database.plan(query) == "scan index c (a ascending, b ascending): a == …")
    try database.setIndexes(IndexConfiguration())
    #expect(try database.plan(query) == before)
  }

  private static func randomConfiguration(_ generator: inout SplitMix) -> IndexConfiguration {
    var configuration = IndexConfiguration()
    for _ in 0..<40 {
      var fields: [IndexDefinition.Field] = []
      for name in ["a", "b", "c", "m.k"].shuffled(using: &generator).prefix(Int.random(in: 1...3, using: &generator)) {
        let isArray = generator.chance(oneIn: 4) && !fields.contains { $0.mode == .contains }
        fields.append(.init(field(name), isArray ? .contains : generator.pick([.ascending, .descending])))
      }
      if fields.count == 1 || generator.chance(oneIn: 3) {
        fields.append(.init(field("__name__"), generator.pick([.ascending, .descending])))
      }
      let index = IndexDefinition(
        collectionID: generator.pick(["c", "c", "s"]), scope: generator.pick([.collection, .collectionGroup]),
        fields: fields)
      if !configuration.indexes.contains(index) { configuration.indexes.append(index) }
    }
    for name in ["a", "b", "m"] where generator.chance(oneIn: 4) {
      configuration.fields.append(
        FieldIndexing(collectionID: generator.pick(["c", "s"]), path: field(name), entries: []))
    }
    return configuration
  }

  /// Random queries on random documents have the defined results, regardless of the indexes.
  @Test(arguments: 41...56) func resultsDoNotDependOnIndexes(seed: UInt64) throws {
    var generator = QueryGenerator(seed: seed)
    var random = SplitMix(seed: seed)
    let database = try QueryDatabase(indexes: Self.randomConfiguration(&random))
    let model = QueryModel(database.id)
    let documents = generator.documents()
    try database.set(documents)
    var used = 0
    for round in 0..<160 {
      if round == 60 || round == 110 { try database.setIndexes(Self.randomConfiguration(&random)) }
      var query = generator.query()
      if query.includesDescendants, query.collectionID != nil, random.chance(oneIn: 3) {
        query.parent = document("c/x").path
      }
      guard let orders = try? ResolvedQuery(query, in: database.id).orders else { continue }
      let plan = try database.plan(query)
      if plan.contains("index") { used += 1 }
      let whole = model.results(query, orders: orders, in: documents)
      #expect(try database.run(query) == whole, "seed \(seed): \(query)\n\(plan)")
      #expect(try database.run(query, units: 1) == whole, "seed \(seed), in small slices: \(query)\n\(plan)")
      #expect(
        try database.aggregate(query, [.count(upTo: nil)]) == [.integer(Int64(whole.count))],
        "seed \(seed): \(query)\n\(plan)")

      query.offset = generator.number(0...3)
      query.limit = generator.number(0...6)
      let slice = Array(whole.dropFirst(query.offset).prefix(query.limit ?? 0))
      #expect(try database.run(query) == slice, "seed \(seed): \(query)\n\(plan)")

      query.offset = 0
      query.limit = generator.number(1...4)
      var pages: [String] = []
      while true {
        let page = try database.run(query)
        pages += page
        guard let last = page.last, pages.count <= documents.count else { break }
        let found = try #require(documents.first { $0.path.text.utf8.elementsEqual(last.utf8) })
        query.start = QueryBound(model.position(of: found, orders: orders), isBefore: false)
      }
      #expect(pages == whole, "seed \(seed), pages of \(query.limit ?? 0): \(query)\n\(plan)")
    }
    #expect(used > 2, "seed \(seed): only \(used) plans used a declared index")
  }

  /// The slices of a query show one version, regardless of writes and index changes between them.
  @Test(arguments: 61...72) func slicesShowOneVersion(seed: UInt64) throws {
    var generator = QueryGenerator(seed: seed)
    var random = SplitMix(seed: seed)
    let database = try QueryDatabase(indexes: Self.randomConfiguration(&random))
    let model = QueryModel(database.id)
    for round in 0..<25 {
      let documents = generator.documents()
      try database.commit(
        documents.map { Write(.update(EncodedFields($0.fields), mask: nil), key: document($0.path.text)) })
      var all: [QueryModel.Document] = []
      var steps = 0
      let query = generator.query()
      guard let orders = try? ResolvedQuery(query, in: database.id).orders else { continue }
      all = documents
      // Delete the documents of earlier rounds that this round did not write.
      try database.commit(Self.leftovers(except: documents).map { .delete($0) })
      let expected = model.results(query, orders: orders, in: all)
      let plan = try database.plan(query)
      let found = try database.run(query, units: 1) {
        steps += 1
        let victim = random.pick(documents)
        if random.chance(oneIn: 3) {
          try database.commit([.delete(victim.path.text)])
        } else {
          try database.commit([
            Write(.update(EncodedFields(generator.documentFields()), mask: nil), key: document(victim.path.text))
          ])
        }
        if steps == 4, round.isMultiple(of: 5) { try database.setIndexes(Self.randomConfiguration(&random)) }
      }
      #expect(found == expected, "seed \(seed), round \(round): \(query)\n\(plan)")
    }
  }

  /// Returns all paths of the generator except those of some documents.
  private static func leftovers(except documents: [QueryModel.Document]) -> [String] {
    let written = Set(documents.map { Array($0.path.text.utf8) })
    var generator = QueryGenerator(seed: 1)
    var all: Set<[UInt8]> = []
    for _ in 0..<30 { for document in generator.documents() { all.insert(Array(document.path.text.utf8)) } }
    return all.subtracting(written).map { String(decoding: $0, as: UTF8.self) }
  }

  /// A hundred thousand equal values, in ascending and descending order, page by page and from the middle.
  @Test(arguments: [false, true]) func equalValuesArePagedInNameOrder(isDescending: Bool) throws {
    let database = try QueryDatabase(
      indexes: IndexConfiguration(indexes: [Self.index("c", ("a", .ascending), ("b", .ascending))]), mapBytes: 2 << 30)
    let count = 100_000
    let loader = try database.database.makeLoader()
    let long = Value.string(String(repeating: "tie", count: 20))
    let names = (0..<count).map { "d\(100_000 + $0)" }
    for start in stride(from: 0, to: count, by: 10_000) {
      try loader.load(
        names[start..<start + 10_000].map {
          try BulkLoader.Item(key: document("c/\($0)"), fields: fields(("a", 1), ("b", long)), indexes: loader.indexes)
        })
    }
    var query = Query(collectionID: "c")
    query.filter = Self.on("a", .equal)
    query.orders = [Order(field("b"), isDescending: isDescending)]
    query.limit = 9_000
    let expected = isDescending ? names.reversed() : names
    var found: [String] = []
    repeat {
      let page = try database.run(query)
      if page.isEmpty { break }
      found += page.map { String($0.dropFirst(2)) }
      query.start = QueryBound(
        [long, .reference("\(database.id.documentsRoot)/\(page[page.count - 1])")], isBefore: false)
    } while found.count <= count
    #expect(found == expected)
    // A page from the middle costs no more than a page.
    query.start = QueryBound([long, .reference("\(database.id.documentsRoot)/c/d150000")], isBefore: true)
    query.limit = 3
    let results = try database.database.read {
      try ResolvedQuery(query, in: database.id).results($0.snapshot, at: try $0.lastVersion())
    }
    try database.database.read { reader in
      try results.slice(reader.snapshot, units: QueryExecution.sliceUnits) { _, _ in true }
    }
    #expect(results.isAtEnd)
    #expect(results.work.entries <= 4)
    #expect(results.planText.contains("between cursors"))
  }
}
