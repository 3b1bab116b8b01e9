import DocumentModel
import WireFormat

/// Writes queries as the API's JSON.
enum QueryJSON {
  /// Returns the body of a runQuery or runAggregationQuery request.
  /// - Throws: `WireError` if a value cannot be written.
  static func body(_ options: QueryOptions) throws(WireError) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    if options.aggregations.isEmpty {
      try append(options.query, to: &json)
    } else {
      json.key("structuredAggregationQuery")
      json.beginObject()
      try append(options.query, to: &json)
      json.key("aggregations")
      json.beginArray()
      for aggregation in options.aggregations { append(aggregation, to: &json) }
      json.endArray()
      json.endObject()
    }
    if let time = options.readTime {
      json.key("readTime")
      json.timestamp(time)
    }
    if let explain = options.explain {
      json.key("explainOptions")
      json.beginObject()
      json.key("analyze")
      json.bool(explain == .analyze)
      json.endObject()
    }
    json.endObject()
    return json.bytes
  }

  /// Returns the body of a request that listens to a query.
  /// - Throws: `WireError` if a value cannot be written.
  static func listenBody(_ query: Query, resumeToken: String?) throws(WireError) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    try append(query, to: &json)
    if let resumeToken {
      json.key("resumeToken")
      json.string(resumeToken)
    }
    json.endObject()
    return json.bytes
  }

  private static func append(_ aggregation: Aggregation, to json: inout JSONWriter) {
    json.beginObject()
    json.key("alias")
    json.string(aggregation.alias)
    switch aggregation.op {
    case .count: json.key("count")
    case .sum: json.key("sum")
    case .average: json.key("avg")
    }
    json.beginObject()
    if let field = aggregation.field { append(field, to: &json) }
    json.endObject()
    json.endObject()
  }

  private static func append(_ query: Query, to json: inout JSONWriter) throws(WireError) {
    json.key("structuredQuery")
    json.beginObject()
    json.key("from")
    json.beginArray()
    json.beginObject()
    if let id = query.collectionID {
      json.key("collectionId")
      json.string(id)
    }
    if query.includesDescendants {
      json.key("allDescendants")
      json.bool(true)
    }
    json.endObject()
    json.endArray()
    if let projection = query.projection {
      json.key("select")
      json.beginObject()
      json.key("fields")
      json.beginArray()
      for path in projection.paths {
        json.beginObject()
        json.key("fieldPath")
        json.string(path.text)
        json.endObject()
      }
      json.endArray()
      json.endObject()
    }
    if let filter = query.filter {
      json.key("where")
      try append(filter, to: &json)
    }
    if !query.orders.isEmpty {
      json.key("orderBy")
      json.beginArray()
      for order in query.orders {
        json.beginObject()
        append(order.path, to: &json)
        json.key("direction")
        json.string(order.isDescending ? "DESCENDING" : "ASCENDING")
        json.endObject()
      }
      json.endArray()
    }
    if let start = query.start {
      json.key("startAt")
      try append(start, to: &json)
    }
    if let end = query.end {
      json.key("endAt")
      try append(end, to: &json)
    }
    if query.offset > 0 {
      json.key("offset")
      json.number(query.offset)
    }
    if let limit = query.limit {
      json.key("limit")
      json.number(limit)
    }
    json.endObject()
  }

  private static func append(_ bound: QueryBound, to json: inout JSONWriter) throws(WireError) {
    json.beginObject()
    json.key("values")
    json.beginArray()
    for value in bound.values { try DocumentJSON.append(value, to: &json) }
    json.endArray()
    json.key("before")
    json.bool(bound.isBefore)
    json.endObject()
  }

  private static func append(_ field: FieldPath, to json: inout JSONWriter) {
    json.key("field")
    json.beginObject()
    json.key("fieldPath")
    json.string(field.text)
    json.endObject()
  }

  private static func append(_ filter: QueryFilter, to json: inout JSONWriter) throws(WireError) {
    json.beginObject()
    switch filter {
    case .and(let filters), .or(let filters):
      json.key("compositeFilter")
      json.beginObject()
      json.key("op")
      if case .and = filter { json.string("AND") } else { json.string("OR") }
      json.key("filters")
      json.beginArray()
      for filter in filters { try append(filter, to: &json) }
      json.endArray()
      json.endObject()
    case .field(let path, let op, let value):
      json.key("fieldFilter")
      json.beginObject()
      append(path, to: &json)
      json.key("op")
      json.string(op.wireName)
      json.key("value")
      try DocumentJSON.append(value, to: &json)
      json.endObject()
    case .unary(let path, let op):
      json.key("unaryFilter")
      json.beginObject()
      append(path, to: &json)
      json.key("op")
      json.string(name(of: op))
      json.endObject()
    }
    json.endObject()
  }

  private static func name(of op: UnaryOperator) -> String {
    switch op {
    case .isNaN: "IS_NAN"
    case .isNull: "IS_NULL"
    case .isNotNaN: "IS_NOT_NAN"
    case .isNotNull: "IS_NOT_NULL"
    }
  }
}
