import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import HearthServer
import KeyValue
import WireFormat

extension Benchmark {
  static let queries = Benchmark(
    name: "queries",
    summary: "queries and counts in this process, without HTTP, over 10,000 and over 1,000,000 documents",
    meaning: """
      The cost of a DatabaseService call on one thread, including its plan and its snapshots. The documents have five
      fields. "Deep" starts from a cursor in the middle of the order. The lower bound for a count is a bare loop over
      the same keys: LMDB keeps no counts of subtrees, so a count visits every key.
      """
  ) {
    var table = ResultTable("work", "10,000 documents", "1,000,000 documents", "larger against smaller", "mark")
    let few = try QueryWorld(documents: 10_000)
    let many = try QueryWorld(documents: 1_000_000)
    defer {
      few.server.stop()
      many.server.stop()
    }
    for (name, query) in QueryWorld.queries {
      Run.progress("queries: \(name)")
      let (small, large) = (try few.microseconds(of: query), try many.microseconds(of: query))
      table.add(
        name, "\(Format.tenths(small)) µs", "\(Format.tenths(large)) µs", Format.ratio(large, to: small), "≤ 1.5 ×")
    }
    for (name, query) in QueryWorld.counts {
      Run.progress("queries: \(name)")
      let (small, large) = (try few.countsPerSecond(query), try many.countsPerSecond(query))
      table.add(
        name, "\(Format.count(small)) /s", "\(Format.count(large)) /s", "", "≥ 20,000,000 /s")
    }
    let floor = try (few.keysPerSecond(), many.keysPerSecond())
    table.add("bare loop over the same keys", "\(Format.count(floor.0)) /s", "\(Format.count(floor.1)) /s", "", "")
    return table
  }
}

/// An in-process server with one large collection, and the queries to measure.
private struct QueryWorld {
  let server: Server
  private let service: FirestoreService
  private let id: DatabaseID
  private let documents: Int

  init(documents: Int) throws {
    Run.progress("queries: loading \(Format.count(Double(documents))) documents")
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.port = 0
    server = try Server(configuration)
    service = server.service
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    self.id = id
    self.documents = documents
    let loader = try server.registry.opened(id).makeLoader()
    var samples = SampleDocuments()
    for start in stride(from: 0, to: documents, by: 20_000) {
      try loader.load(
        try (start..<min(start + 20_000, documents)).map { number in
          try BulkLoader.Item(
            key: DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: Array("tasks/t\(number)".utf8))),
            fields: samples.next())
        })
    }
  }

  /// Queries of 20 results each.
  static let queries: [(name: String, query: Query)] = [
    ("equality, by name, 20 of half", query { $0.filter = equality }),
    (
      "equality, order by another field, 20 of half",
      query {
        $0.filter = equality
        $0.orders = [Order(FieldPath(field: "createdAt"), isDescending: true)]
      }
    ),
    (
      "range in its order, 20",
      query { $0.filter = .field(FieldPath(field: "count"), .greaterThan, .integer(1 << 22)) }
    ),
    (
      "order by a field, deep, 20",
      query {
        $0.orders = [Order(FieldPath(field: "count"))]
        $0.start = QueryBound([.integer(1 << 23)], isBefore: false)
      }
    ),
    ("by name, descending, 20", query { $0.orders = [Order(FieldPath(field: "__name__"), isDescending: true)] }),
  ]

  static let counts: [(name: String, query: Query)] = [
    ("count of an equality, half of all", query(limit: nil) { $0.filter = equality }),
    (
      "count of a range, three quarters of all",
      query(limit: nil) { $0.filter = .field(FieldPath(field: "count"), .greaterThan, .integer(1 << 22)) }
    ),
    ("count of the collection", query(limit: nil) { _ in }),
  ]

  private static let equality = QueryFilter.field(FieldPath(field: "done"), .equal, .boolean(true))

  private static func query(limit: Int? = 20, _ change: (inout Query) -> Void) -> Query {
    var query = Query(collectionID: "tasks")
    query.limit = limit
    change(&query)
    return query
  }

  /// Returns the time of one query, from the fastest of several rounds.
  func microseconds(of query: Query) throws -> Double {
    let perRound = 500
    var best = Double.infinity
    for _ in 0..<6 {
      let watch = Stopwatch()
      for _ in 0..<perRound {
        let cursor = try service.runQuery(RunQueryRequest(query), in: id, as: .admin)
        var found = 0
        while !cursor.isAtEnd {
          try cursor.slice { _, document in
            found += document.fields.isEmpty ? 0 : 1
            return true
          }
        }
        guard found == query.limit else { throw BenchmarkError("\(found) results instead of 20") }
      }
      best = min(best, watch.seconds / Double(perRound) * 1e6)
    }
    return best
  }

  /// Returns the documents counted per second, from the fastest of several rounds.
  func countsPerSecond(_ query: Query) throws -> Double {
    var best = 0.0
    for _ in 0..<max(3, 300_000 / documents) {
      let watch = Stopwatch()
      let cursor = try service.runAggregationQuery(
        RunAggregationQueryRequest(query, [Aggregation(.count(upTo: nil), alias: "n")]), in: id, as: .admin)
      var outcome: AggregationOutcome?
      while outcome == nil { outcome = try cursor.slice() }
      guard case .integer(let count)? = outcome?.values.first?.value, count > 0 else {
        throw BenchmarkError("the query counted no documents")
      }
      best = max(best, Double(count) / watch.seconds)
    }
    return best
  }

  /// Returns the index keys that a bare cursor visits per second.
  func keysPerSecond() throws -> Double {
    try server.registry.opened(id).read { reader in
      let cursor = try reader.snapshot.makeCursor()
      var key = StorageKey()
      key.begin(.ascendingEntries)
      var best = 0.0
      for _ in 0..<3 {
        let watch = Stopwatch()
        var count = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) } ? 1 : 0
        while count < documents, try cursor.next() { count += 1 }
        best = max(best, Double(count) / watch.seconds)
      }
      return best
    }
  }
}
