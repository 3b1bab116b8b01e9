import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat
@testable import QueryEngine

/// Vector searches match a naive implementation of their definition.
@Suite struct NearestTests {
  /// Components are small integers, so that sums are exact in any order.
  @Test(arguments: 1...12) func searchMatchesItsDefinition(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    var generator = QueryGenerator(seed: seed)
    let database = try QueryDatabase()
    let dimensions = Int.random(in: 1...9, using: &random)
    var documents = generator.documents()
    for index in documents.indices where !random.chance(oneIn: 6) {
      // Some vectors have other dimensions.
      let count = random.chance(oneIn: 8) ? dimensions + 1 : dimensions
      documents[index].fields["v"] = .vector(Self.vector(count, &random))
    }
    let version = try database.set(documents)
    let model = QueryModel(database.id)
    var found = 0
    var queries: [(query: Query, results: [String])] = []
    for _ in 0..<60 {
      var query = generator.query()
      (query.start, query.end) = (nil, nil)
      guard let orders = try? ResolvedQuery(query, in: database.id).orders else { continue }
      var search = FindNearest(
        field("v"), near: Self.vector(dimensions, &random), by: random.pick(FindNearest.Measure.allCases),
        limit: random.pick([1, 2, 5, 1000]))
      if random.chance(oneIn: 2) { search.threshold = Double(Int.random(in: -4...12, using: &random)) / 2 }
      if random.chance(oneIn: 2) { search.resultField = field("d") }
      let candidates = Set(model.results(query, orders: orders, in: documents).map { Array($0.utf8) })
      let expected = Self.nearest(search, documents.filter { candidates.contains($0.path.bytes) })
      query.findNearest = search
      let results = try database.nearest(query)
      #expect(results == expected, "seed \(seed): \(query)")
      #expect(try database.nearest(query, units: 40) == expected, "seed \(seed), in slices: \(query)")
      found += results.count
      queries.append((query, expected))
    }
    #expect(found > 20, "seed \(seed): too few results")
    try database.commit(documents.prefix(documents.count / 2).map { Write(.delete, key: document($0.path.text)) })
    for (query, results) in queries {
      #expect(try database.nearest(query, at: version) == results, "seed \(seed), in the past: \(query)")
    }
  }

  private static func vector(_ count: Int, _ random: inout SplitMix) -> [Double] {
    if random.chance(oneIn: 10) { return Array(repeating: 0, count: count) }
    return (0..<count).map { _ in
      random.chance(oneIn: 60) ? .infinity : Double(Int.random(in: -3...3, using: &random))
    }
  }

  /// Returns the results by definition, each with its distance.
  private static func nearest(_ search: FindNearest, _ documents: [QueryModel.Document]) -> [String] {
    var rows: [(distance: Double, path: ResourcePath)] = []
    for document in documents {
      guard let value = document.fields[search.field], let vector = FindNearest.components(of: value),
        vector.count == search.vector.count
      else { continue }
      let pairs = zip(vector, search.vector)
      let dot = pairs.reduce(0) { $0 + $1.0 * $1.1 }
      let squares = vector.reduce(0) { $0 + $1 * $1 }
      let querySquares = search.vector.reduce(0) { $0 + $1 * $1 }
      let distance =
        switch search.measure {
        case .euclidean: pairs.reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }.squareRoot()
        case .cosine: 1 - dot / (querySquares.squareRoot() * squares.squareRoot())
        case .dotProduct: dot
        }
      if let threshold = search.threshold {
        guard search.measure == .dotProduct ? distance >= threshold : distance <= threshold else { continue }
      }
      rows.append((distance, document.path))
    }
    rows.sort { a, b in
      if a.distance.isNaN || b.distance.isNaN {
        return a.distance.isNaN == b.distance.isNaN ? a.path < b.path : b.distance.isNaN
      }
      if a.distance == b.distance { return a.path < b.path }
      return search.measure == .dotProduct ? a.distance > b.distance : a.distance < b.distance
    }
    return rows.prefix(search.limit).map { row in
      search.resultField == nil ? row.path.text : "\(row.path.text) \(row.distance + 0.0)"
    }
  }

  @Test func cosineIsRoundedAsInProduction() throws {
    let database = try QueryDatabase()
    try database.commit([.set("c/x", ("v", .vector([3, 4, 5])))])
    var query = Query(collectionID: "c")
    query.findNearest = FindNearest(field("v"), near: [1, 2, 3], by: .cosine, limit: 1)
    query.findNearest?.resultField = field("d")
    #expect(try database.nearest(query) == ["c/x 0.017292370176009153"])
  }

  @Test func distanceIsStoredInFieldOrder() throws {
    let database = try QueryDatabase()
    try database.commit([.set("c/x", ("a", 1), ("m", 2), ("v", .vector([3, 4])), ("z", 3))])
    for name in ["", "a", "b", "m", "n", "v", "z", "zz", "m.k"] {
      var query = Query(collectionID: "c")
      query.findNearest = FindNearest(field("v"), near: [0, 0], by: .euclidean, limit: 1)
      if !name.isEmpty { query.findNearest?.resultField = FieldPath(field: name) }
      var expected = map(("a", 1), ("m", 2), ("v", .vector([3, 4])), ("z", 3))
      if case .map(var fields) = expected, !name.isEmpty {
        fields[name] = 5.0
        expected = .map(fields)
      }
      let found = try database.results(query) { try ValueCodec.decode(EncodedMap(documentFields: $1.fields)) }
      #expect(found.map(Value.map) == [expected], "\(name)")
    }
  }

  struct InvalidSearch: Sendable {
    var text: String
    var change: @Sendable (inout Query) -> Void

    init(_ text: String, _ change: @escaping @Sendable (inout Query) -> Void) {
      self.text = text
      self.change = change
    }
  }

  private static let limitText = "FindNearest.limit must be a positive integer of no more than 1000"
  static let invalidSearches = [
    InvalidSearch("A query limit cannot be used with FindNearest") { $0.limit = 0 },
    InvalidSearch("A query offset cannot be used with FindNearest") { $0.offset = 1 },
    InvalidSearch("A cursor cannot be used with FindNearest") { $0.start = QueryBound([], isBefore: true) },
    InvalidSearch("A cursor cannot be used with FindNearest") { $0.end = QueryBound([], isBefore: true) },
    InvalidSearch(limitText) { $0.findNearest?.limit = 0 },
    InvalidSearch(limitText) { $0.findNearest?.limit = 1001 },
    InvalidSearch(limitText) { $0.findNearest?.limit = -1 },
    InvalidSearch("distanceThreshold must be a finite number.") { $0.findNearest?.threshold = .nan },
    InvalidSearch("distanceThreshold must be a finite number.") { $0.findNearest?.threshold = .infinity },
    InvalidSearch("The distanceResultField.property.name \"__d__\" is reserved.") {
      $0.findNearest?.resultField = FieldPath(field: "__d__")
    },
    InvalidSearch("The distanceResultField.property.name is longer than 1500 bytes.") {
      $0.findNearest?.resultField = FieldPath(field: String(repeating: "d", count: 1501))
    },
  ]

  @Test(arguments: invalidSearches.indices) func refusesInvalidSearches(row: Int) throws {
    var query = Query(collectionID: "c")
    query.findNearest = FindNearest(field("v"), near: [1], by: .cosine, limit: 1000)
    let id = try QueryDatabase().id
    _ = try ResolvedQuery(query, in: id)
    Self.invalidSearches[row].change(&query)
    let error = #expect(throws: QueryError.self) { _ = try ResolvedQuery(query, in: id) }
    #expect(error?.description == Self.invalidSearches[row].text)
  }
}

extension QueryDatabase {
  /// Returns the paths of a search's results, each with the distance in field `d` if the search asks for it.
  fileprivate func nearest(_ query: Query, at version: Int64? = nil, units: Int = 1_000_000) throws -> [String] {
    try results(query, at: version, units: units) { key, document in
      guard query.findNearest?.resultField != nil else { return key.path.text }
      let distance = try EncodedMap(documentFields: document.fields).value(for: "d")
      guard case .double(let distance)? = try distance?.content else { return "\(key.path.text) without a distance" }
      return "\(key.path.text) \(distance + 0.0)"
    }
  }

  /// Returns the value of `body` for each result.
  fileprivate func results<R>(
    _ query: Query, at version: Int64? = nil, units: Int = 1_000_000, _ body: (DocumentKey, StoredDocument) throws -> R
  ) throws -> [R] {
    let version = try version ?? lastVersion()
    let results = try database.read { try ResolvedQuery(query, in: id).results($0.snapshot, at: version) }
    var found: [R] = []
    while !results.isAtEnd {
      try database.read { reader in
        try results.slice(reader.snapshot, units: units) { key, document in
          found.append(try body(key, document))
          return found.count % 3 != 0
        }
      }
    }
    return found
  }
}
