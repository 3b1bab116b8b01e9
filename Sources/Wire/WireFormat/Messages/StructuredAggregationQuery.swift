import DocumentModel

/// The members of a `google.firestore.v1.StructuredAggregationQuery`. Aggregations without an alias are named
/// `field_1`, `field_2`, and so on (firestore-api.md, section 5.1).
struct AggregationQueryMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredAggregationQuery"
  private let parent: ResourcePath
  private var query: Query?
  private var aggregations: [Aggregation] = []

  init(below parent: ResourcePath) { self.parent = parent }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "structured_query") {
      query = try field.message(QueryMembers(below: parent))
    } else if field.matches(3, "aggregations") {
      try field.append(AggregationMembers(), to: &aggregations)
    }
  }

  func decoded() throws(WireError) -> (query: Query?, aggregations: [Aggregation]) {
    var named = aggregations
    // Only the aggregations without an alias are counted.
    var unnamed = 0
    for index in named.indices where named[index].alias.isEmpty {
      unnamed += 1
      named[index].alias = "field_\(unnamed)"
    }
    return (query, named)
  }
}

private struct AggregationMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredAggregationQuery.Aggregation"
  private var op: Aggregation.Operator?
  private var alias = ""

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "count") {
      try field.claim("operator", isSet: op != nil)
      op = .count(upTo: try field.message(CountMembers()))
    } else if field.matches(2, "sum") {
      try field.claim("operator", isSet: op != nil)
      op = .sum(try field.message(AggregatedField()))
    } else if field.matches(3, "avg") {
      try field.claim("operator", isSet: op != nil)
      op = .average(try field.message(AggregatedField()))
    } else if field.matches(7, "alias") {
      alias = try field.string()
    }
  }

  func decoded() throws(WireError) -> Aggregation {
    guard let op else { throw .model(.emptyAggregation) }
    return Aggregation(op, alias: alias)
  }
}

private struct CountMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Count"
  private var limit: Int?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "up_to") { limit = Int(try field.int64Value()) }
  }

  func decoded() throws(WireError) -> Int? {
    if let limit, limit <= 0 { throw .model(.countLimitNotPositive) }
    return limit
  }
}

/// The members of a Sum or an Avg.
private struct AggregatedField: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Sum"
  private var path: FieldPath?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "field") { path = try field.message(FieldReference()) }
  }

  func decoded() throws(WireError) -> FieldPath {
    guard let path else { throw .model(.emptyFieldPath) }
    return path
  }
}
