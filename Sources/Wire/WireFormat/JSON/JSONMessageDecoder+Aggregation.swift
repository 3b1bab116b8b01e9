package import DocumentModel

extension JSONMessageDecoder {
  /// Decodes a `google.firestore.v1.StructuredAggregationQuery` below a parent. Aggregations without an alias are
  /// named `field_1`, `field_2`, and so on (firestore-api.md, section 5.1).
  /// - Throws: ``WireError`` with the documented text if the message is malformed.
  package func aggregationQuery(
    _ value: JSONValue, below parent: ResourcePath
  ) throws(WireError) -> (query: Query?, aggregations: [Aggregation]) {
    var query: Query?
    var aggregations: [Aggregation] = []
    var members = try members(of: value, "google.firestore.v1.StructuredAggregationQuery")
    while let (name, value) = members.next() {
      switch name {
      case "structuredQuery", "structured_query":
        enter("structured_query")
        query = try self.query(value, below: parent)
        leave()
      case "aggregations":
        enter("aggregations")
        var list = try elements(of: value)
        while let item = list.next() {
          element(aggregations.count)
          aggregations.append(try aggregation(item))
        }
        leave()
      default: throw unknown(name)
      }
    }
    aggregations.nameUnnamed()
    return (query, aggregations)
  }

  private func aggregation(_ value: JSONValue) throws(WireError) -> Aggregation {
    var op: Aggregation.Operator?
    var alias = ""
    var members = try members(of: value, "google.firestore.v1.StructuredAggregationQuery.Aggregation")
    while let (name, value) = members.next() {
      switch name {
      case "alias":
        alias = String(decoding: try string(value, "alias"), as: UTF8.self)
        continue
      case "count", "sum", "avg": break
      default: throw unknown(name)
      }
      guard op == nil else { throw alreadySet("operator", name) }
      switch name {
      case "count":
        enter("count")
        op = .count(upTo: try upTo(value))
        leave()
      case "sum":
        enter("sum")
        op = .sum(try aggregatedField(value))
        leave()
      default:
        enter("avg")
        op = .average(try aggregatedField(value))
        leave()
      }
    }
    guard let op else { throw .model(.emptyAggregation) }
    return Aggregation(op, alias: alias)
  }

  private func upTo(_ value: JSONValue) throws(WireError) -> Int? {
    var limit: Int?
    var members = try members(of: value, "google.firestore.v1.StructuredAggregationQuery.Aggregation.Count")
    while let (name, value) = members.next() {
      guard "upTo" ~= name || "up_to" ~= name else { throw unknown(name) }
      limit = Int(try int64(value, "up_to"))
    }
    if let limit, limit <= 0 { throw .model(.countLimitNotPositive) }
    return limit
  }

  private func aggregatedField(_ value: JSONValue) throws(WireError) -> FieldPath {
    var path: FieldPath?
    var members = try members(of: value, "google.firestore.v1.StructuredAggregationQuery.Aggregation.Sum")
    while let (name, value) = members.next() {
      guard "field" ~= name else { throw unknown(name) }
      enter("field")
      path = try fieldReference(value)
      leave()
    }
    guard let path else { throw .model(.emptyFieldPath) }
    return path
  }
}
