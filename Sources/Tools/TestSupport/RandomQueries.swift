package import DocumentModel

/// A generator of random documents and queries with few fields and values, so that queries match documents.
package struct QueryGenerator {
  private static let root = "projects/p/databases/(default)/documents/"
  private static let fields = ["a", "b", "c", "m.k"].map(field)
  private static let ids = [
    "x", "y", "z", "1", "10", "2", "A", "__id7__", "__id3__", "\u{E9}", "e\u{301}", "a b", "d1", "d2",
  ]
  private static let collections = ["c", "c", "c", "c/x/s", "c/missing/s", "d/q/s"]
  private static let values: [Value] = [
    .null, true, false, 0, 1, 2, 1.0, 1.5, .double(.nan), -0.0, .double(.infinity), 9_007_199_254_740_993,
    9_007_199_254_740_992.0, "", "a", "b", "a\u{E9}", "ae\u{301}", .bytes([97]),
    .geoPoint(GeoPoint(latitude: 1, longitude: 2)),
    .timestamp(Timestamp(uncheckedMicroseconds: 1_735_689_600_000_000)), .reference(root + "c/x"), [1, "a"], [2], [],
    [.double(.nan), .null], map(("k", 1)), map(("k", "a")), map(), .vector([1, 2]),
  ]

  private var random: SplitMix

  /// Starts a sequence. Equal seeds produce equal sequences.
  package init(seed: UInt64) { random = SplitMix(seed: seed) }

  /// Returns documents in several collections, each path once.
  package mutating func documents() -> [QueryModel.Document] {
    var documents: [QueryModel.Document] = []
    for collectionPath in Set(Self.collections).sorted() {
      for id in Self.ids where !random.chance(oneIn: 3) {
        documents.append((document("\(collectionPath)/\(id)").path, documentFields()))
      }
    }
    return documents
  }

  /// Returns the fields of one document.
  package mutating func documentFields() -> MapValue {
    var fields = MapValue()
    for name in ["a", "b", "c"] where !random.chance(oneIn: 5) { fields[name] = value() }
    if random.chance(oneIn: 2) { fields["m"] = random.chance(oneIn: 5) ? value() : map(("k", value())) }
    return fields
  }

  /// Returns a filter, valid or not.
  package mutating func filter(depth: Int = 0) -> QueryFilter {
    if depth > 1 || !random.chance(oneIn: 3) { return condition() }
    let filters = (0..<Int.random(in: 1...3, using: &random)).map { _ in filter(depth: depth + 1) }
    return random.chance(oneIn: 2) ? .or(filters) : .and(filters)
  }

  private mutating func condition() -> QueryFilter {
    let path = random.pick(Self.fields)
    if random.chance(oneIn: 8) { return .unary(path, random.pick(UnaryOperator.allCases)) }
    let isName = random.chance(oneIn: 12)
    let op = random.pick(FieldOperator.allCases)
    let takesList = op == .in || op == .notIn || op == .arrayContainsAny
    let count = takesList ? Int.random(in: 1...4, using: &random) : 1
    let operands = (0..<count).map { _ in isName ? .reference(Self.root + "c/" + random.pick(Self.ids)) : value() }
    return .field(isName ? field("__name__") : path, op, takesList ? .array(operands) : operands[0])
  }

  /// Returns a query without offset and limit, valid or not.
  package mutating func query() -> Query {
    var query =
      switch Int.random(in: 0..<10, using: &random) {
      case 0: Query(collectionID: "s", includesDescendants: true)
      case 1: Query(parent: document("c/x").path, collectionID: "s")
      case 2: Query(collectionID: nil, includesDescendants: random.chance(oneIn: 2))
      case 3: Query(parent: document("c/x").path, collectionID: nil, includesDescendants: random.chance(oneIn: 2))
      default: Query(collectionID: "c")
      }
    if !random.chance(oneIn: 4) { query.filter = filter() }
    if random.chance(oneIn: 2) {
      query.orders = Self.fields.shuffled(using: &random).prefix(Int.random(in: 1...2, using: &random))
        .map { Order($0, isDescending: random.chance(oneIn: 2)) }
      if random.chance(oneIn: 3) {
        query.orders.append(Order(field("__name__"), isDescending: random.chance(oneIn: 2)))
      }
      let count = Int.random(in: 1...query.orders.count, using: &random)
      if random.chance(oneIn: 4) { query.start = bound(count) }
      if random.chance(oneIn: 4) { query.end = bound(count) }
    } else if random.chance(oneIn: 4) {
      query.orders = [Order(field("__name__"), isDescending: random.chance(oneIn: 2))]
    }
    return query
  }

  private mutating func bound(_ count: Int) -> QueryBound {
    QueryBound((0..<count).map { _ in value() }, isBefore: random.chance(oneIn: 2))
  }

  /// Returns one of the values that documents have.
  package mutating func value() -> Value { random.pick(Self.values) }

  /// Returns a number from a range.
  package mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
}
