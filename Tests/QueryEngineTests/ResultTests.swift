import DocumentModel
import DocumentStore
import QueryEngine
import Testing
import TestSupport
import WireFormat

/// A query has the same results with every plan.
@Suite struct ResultTests {
  @Test(arguments: 1...16) func resultsMatchTheirDefinition(seed: UInt64) throws {
    var generator = QueryGenerator(seed: seed)
    let database = try QueryDatabase()
    let model = QueryModel(database.id)
    let documents = generator.documents()
    let version = try database.set(documents)
    var queries: [(query: Query, results: [String])] = []
    for _ in 0..<120 {
      var query = generator.query()
      guard let orders = try? ResolvedQuery(query, in: database.id).orders else { continue }
      let whole = try database.run(query)
      let expected = model.results(query, orders: orders, in: documents)
      #expect(whole == expected, "seed \(seed): \(query)")
      queries.append((query, whole))

      query.offset = generator.number(0...3)
      query.limit = generator.number(0...6)
      let slice = Array(whole.dropFirst(query.offset).prefix(query.limit ?? 0))
      #expect(try database.run(query) == slice, "seed \(seed): \(query)")

      query.offset = 0
      query.limit = generator.number(1...4)
      let pages = try pages(of: query, orders: orders, model, documents, database)
      #expect(pages == whole, "seed \(seed), pages of \(query.limit ?? 0): \(query)")
    }
    // Later changes do not affect the past.
    var changes = documents.filter { _ in generator.number(0...2) == 0 }
      .map { Write(.delete, key: document($0.path.text)) }
    let removed = Set(changes.map(\.key))
    changes += documents.filter { !removed.contains(document($0.path.text)) && generator.number(0...2) == 0 }
      .map { Write(.update(EncodedFields(generator.documentFields()), mask: nil), key: document($0.path.text)) }
    changes.append(.set("c/new", ("a", 1)))
    try database.commit(changes)
    for (query, results) in queries {
      let plan = try database.plan(query)
      #expect(try database.run(query, at: version) == results, "seed \(seed), in the past: \(plan)\n\(query)")
    }
  }

  /// Returns the results in pages, each from a cursor after the last document of the previous page.
  private func pages(
    of query: Query, orders: [Order], _ model: QueryModel, _ documents: [QueryModel.Document], _ database: QueryDatabase
  ) throws -> [String] {
    var query = query
    var all: [String] = []
    while true {
      let page = try database.run(query)
      all += page
      guard let last = page.last, all.count <= documents.count else { return all }
      let found = try #require(documents.first { $0.path.text.utf8.elementsEqual(last.utf8) })
      query.start = QueryBound(model.position(of: found, orders: orders), isBefore: false)
    }
  }

  /// A field that no document has empties only its own alternative.
  @Test func unknownFieldEmptiesOnlyItsAlternative() throws {
    let database = try QueryDatabase()
    try database.commit([.set("c/x", ("a", 1)), .set("c/y", ("a", 2))])
    var query = Query(collectionID: "c")
    query.filter = .or([.field(field("a"), .equal, 1), .field(field("nowhere"), .equal, 1)])
    #expect(try database.run(query) == ["c/x"])
    query.filter = .or([.field(field("nothing"), .equal, 1), .field(field("nowhere"), .equal, 1)])
    #expect(try database.run(query) == [])
  }

  /// Values longer than an index stores tie in every plan and are ordered by name.
  @Test(arguments: [false, true]) func longValuesTieInEveryPlan(isDescending: Bool) throws {
    let database = try QueryDatabase()
    let stem = String(repeating: "v", count: 1600)
    let version = try database.commit([
      .set("c/1", ("a", .string(stem + "c"))), .set("c/2", ("a", .string(stem + "a"))), .set("c/3", ("a", "w")),
      .set("c/4", ("a", .string(stem))), .set("c/5", ("a", "u")),
    ])
    var query = Query(collectionID: "c")
    query.orders = [Order(field("a"), isDescending: isDescending)]
    let sorted = ["c/5", "c/1", "c/2", "c/4", "c/3"]
    let expected = isDescending ? sorted.reversed() : sorted
    #expect(try database.run(query) == expected)
    #expect(try database.run(query, at: version) == expected)
    // Cursors treat such values as equal; filters compare whole values.
    query.start = QueryBound([.string(stem + "b")], isBefore: false)
    #expect(try database.run(query) == (isDescending ? ["c/5"] : ["c/3"]))
    query.start = nil
    query.filter = .field(field("a"), .greaterThan, .string(stem + "b"))
    #expect(try database.run(query) == (isDescending ? ["c/3", "c/1"] : ["c/1", "c/3"]))
    #expect(try database.run(query, at: version) == (isDescending ? ["c/3", "c/1"] : ["c/1", "c/3"]))
  }
}
