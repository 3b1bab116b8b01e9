import TestSupport

/// Generates documents, queries and aggregations as JSON, with few fields and values, so that queries match
/// documents.
///
/// Omits queries for which the emulator is known to differ:
/// - NaN as operand of NOT_EQUAL and NOT_IN: the emulator's results contain documents with NaN.
/// - null and NaN as operands of an inequality: the emulator finds nothing before it checks whether the query is
///   valid, and omits the field from the order.
/// - Collection groups below a document: the emulator rejects them.
/// - Vectors at equal distances: the emulator keeps them in the order of the query, Hearth sorts them by name.
struct QueryRequestGenerator {
  private static let fields = ["a", "b", "c", "m.k"]
  private static let ids =
    ["x", "y", "z", "1", "10", "2", "A", "__id7__", "__id3__", "\u{E9}", "a b"] + (10..<30).map { "d\($0)" }
  private static let ranges = ["LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL"]
  private static let operators =
    ranges + ["EQUAL", "NOT_EQUAL", "ARRAY_CONTAINS", "IN", "ARRAY_CONTAINS_ANY", "NOT_IN"]
  private static let directions = ["ASCENDING", "DESCENDING"]

  private static let null: JSONNode = ["nullValue": .null]
  private static let nan: JSONNode = ["doubleValue": "NaN"]
  private static let arrays: [JSONNode] = [
    ["arrayValue": ["values": [["integerValue": "1"], ["stringValue": "a"]]]],
    ["arrayValue": ["values": [["integerValue": "2"]]]], ["arrayValue": [:]],
  ]
  private static let plain: [JSONNode] = [
    ["booleanValue": true], ["booleanValue": false], ["integerValue": "0"], ["integerValue": "1"],
    ["integerValue": "2"], ["doubleValue": 1], ["doubleValue": .number("1.5")], ["doubleValue": .number("-0.0")],
    ["doubleValue": "Infinity"], ["integerValue": "9007199254740993"], ["doubleValue": 9_007_199_254_740_992],
    ["stringValue": ""], ["stringValue": "a"], ["stringValue": "b"], ["stringValue": "a\u{E9}"],
    ["bytesValue": "YQ=="], ["timestampValue": "2025-01-01T00:00:00Z"],
    ["geoPointValue": ["latitude": 1, "longitude": 2]], ["mapValue": ["fields": ["k": ["integerValue": "1"]]]],
    ["mapValue": [:]], ["mapValue": ["fields": ["k": ["stringValue": "a"]]]],
  ]

  private let database: TestDatabase
  private var random: SplitMix

  init(database: TestDatabase, seed: UInt64) {
    self.database = database
    random = SplitMix(seed: seed)
  }

  // MARK: Documents

  /// Random documents: paths and fields.
  mutating func documents() -> [(path: String, fields: JSONNode)] {
    let paths =
      Self.ids.map { "c/\($0)" } + Self.ids[..<8].map { "c/x/s/\($0)" } + Self.ids[3..<9].map { "c/missing/s/\($0)" }
      + Self.ids[..<5].map { "d/q/s/\($0)" }
    return paths.map { path in
      var fields: [JSONNode.Member] = []
      for name in ["a", "b", "c"] where random.chance(percent: 80) { fields.append(.init(name, value())) }
      if random.chance(percent: 50) { fields.append(.init("m", ["mapValue": ["fields": ["k": value()]]])) }
      if random.chance(percent: 70) { fields.append(.init("v", vector())) }
      return (path, .object(fields))
    }
  }

  private mutating func value() -> JSONNode {
    random.chance(percent: 12) ? random.pick([Self.null, Self.nan]) : operand(random.chance(percent: 15))
  }

  private mutating func operand(_ mayBeArray: Bool) -> JSONNode {
    if random.chance(percent: 4) { return reference() }
    return mayBeArray ? random.pick(Self.arrays) : random.pick(Self.plain)
  }

  /// Components have so many digits that no two vectors have the same distance from a third.
  private mutating func vector() -> JSONNode {
    let components = (0..<(random.chance(percent: 85) ? 3 : 2)).map { _ -> JSONNode in
      ["doubleValue": .number("\(Double(random.number(in: -1_000_000...1_000_000)) / 7919)")]
    }
    let map: JSONNode = [
      "__type__": ["stringValue": "__vector__"], "value": ["arrayValue": ["values": .array(components)]],
    ]
    return ["mapValue": ["fields": map]]
  }

  private mutating func reference() -> JSONNode {
    ["referenceValue": .string(database.name("c/\(random.pick(Self.ids))"))]
  }

  // MARK: Requests

  /// A request: the path of its document (empty for the root), the verb, and the body.
  mutating func request() -> (path: String, verb: String, body: JSONNode) {
    let isAggregation = random.chance(percent: 40)
    var path = ""
    var query: [JSONNode.Member] = []
    switch random.number(below: 100) {
    case ..<75: query.append(.init("from", [["collectionId": "c"]]))
    case ..<90: query.append(.init("from", [["collectionId": "s", "allDescendants": true]]))
    default:
      path = "c/x"
      query.append(.init("from", [["collectionId": "s"]]))
    }
    if random.chance(percent: 75) { query.append(.init("where", filter())) }
    if random.chance(percent: 12) {
      query.append(.init("findNearest", findNearest()))
      if random.chance(percent: 30) { query += order() }
    } else {
      if random.chance(percent: 55) { query += order() }
      if random.chance(percent: 30) { query.append(.init("limit", .number("\(random.number(in: 0...8))"))) }
      if random.chance(percent: 15) { query.append(.init("offset", .number("\(random.number(in: 0...5))"))) }
    }
    if isAggregation {
      let aggregations = (0..<random.number(in: 1...3)).map { aggregation(alias: "n\($0)") }
      let body: JSONNode = ["structuredQuery": .object(query), "aggregations": .array(aggregations)]
      return (path, "runAggregationQuery", ["structuredAggregationQuery": body])
    }
    if random.chance(percent: 15) {
      let fields = random.sample(Self.fields + ["__name__"], count: random.number(in: 1...2))
      query.append(.init("select", ["fields": .array(fields.map(Self.field))]))
    }
    return (path, "runQuery", ["structuredQuery": .object(query)])
  }

  private static func field(_ path: String) -> JSONNode { ["fieldPath": .string(path)] }

  private mutating func filter(depth: Int = 0) -> JSONNode {
    if depth > 1 || random.chance(percent: 60) { return condition() }
    let filters = (0..<random.number(in: 1...3)).map { _ in filter(depth: depth + 1) }
    return ["compositeFilter": ["op": .string(random.pick(["AND", "AND", "OR"])), "filters": .array(filters)]]
  }

  private mutating func condition() -> JSONNode {
    let field = Self.field(random.pick(Self.fields))
    if random.chance(percent: 12) {
      let op = random.pick(["IS_NAN", "IS_NULL", "IS_NOT_NAN", "IS_NOT_NULL"])
      return ["unaryFilter": ["op": .string(op), "field": field]]
    }
    if random.chance(percent: 8) {
      let op = random.pick(Self.ranges + ["EQUAL", "NOT_EQUAL", "IN"])
      let value = op == "IN" ? list(random.number(in: 1...4)) { $0.reference() } : reference()
      return ["fieldFilter": ["field": Self.field("__name__"), "op": .string(op), "value": value]]
    }
    let op = random.pick(Self.operators)
    let value: JSONNode =
      switch op {
      case "NOT_IN": list(random.number(in: 1...4)) { $0.operand(false) }
      case "IN", "ARRAY_CONTAINS_ANY":
        list(random.number(in: 1...4)) {
          $0.random.chance(percent: 8) ? $0.random.pick([Self.null, Self.nan]) : $0.operand(false)
        }
      case "EQUAL", "ARRAY_CONTAINS": self.value()
      case "NOT_EQUAL": operand(random.chance(percent: 15))
      default: operand(random.chance(percent: 15))
      }
    return ["fieldFilter": ["field": field, "op": .string(op), "value": value]]
  }

  private mutating func list(_ count: Int, _ element: (inout Self) -> JSONNode) -> JSONNode {
    ["arrayValue": ["values": .array((0..<count).map { _ in element(&self) })]]
  }

  private mutating func order() -> [JSONNode.Member] {
    var orders = random.sample(Self.fields, count: random.number(in: 1...2)).map { path -> JSONNode in
      ["field": Self.field(path), "direction": .string(random.pick(Self.directions))]
    }
    if random.chance(percent: 30), let direction = orders.last?["direction"] {
      orders.append(["field": Self.field("__name__"), "direction": direction])
    }
    var members = [JSONNode.Member("orderBy", .array(orders))]
    for name in ["startAt", "endAt"] where random.chance(percent: 25) {
      members.append(.init(name, ["values": [value()], "before": .bool(random.chance(percent: 50))]))
    }
    return members
  }

  private mutating func findNearest() -> JSONNode {
    let measure = random.pick(["EUCLIDEAN", "COSINE", "DOT_PRODUCT"])
    var members: [JSONNode.Member] = [
      .init("vectorField", Self.field(random.chance(percent: 95) ? "v" : random.pick(Self.fields))),
      .init("queryVector", vector()), .init("distanceMeasure", .string(measure)),
      .init("limit", .number("\(random.number(in: random.chance(percent: 95) ? 1...20 : -1...0))")),
    ]
    if random.chance(percent: 60) {
      members.append(.init("distanceResultField", .string(random.pick(["d", "a", "m"]))))
    }
    if random.chance(percent: 40) {
      let threshold =
        Double(random.number(in: -200...200)) / (measure == "COSINE" ? 100 : measure == "EUCLIDEAN" ? 1 : 0.01)
      members.append(.init("distanceThreshold", .number("\(threshold)")))
    }
    return .object(members)
  }

  private mutating func aggregation(alias: String) -> JSONNode {
    let field: JSONNode = ["field": Self.field(random.pick(Self.fields))]
    let alias = JSONNode.string(alias)
    switch random.number(below: 3) {
    case 0 where random.chance(percent: 40):
      return ["alias": alias, "count": ["upTo": .string("\(random.number(in: 1...9))")]]
    case 0: return ["alias": alias, "count": [:]]
    case 1: return ["alias": alias, "sum": field]
    default: return ["alias": alias, "avg": field]
    }
  }
}
