import DatabaseService
import DocumentModel
import DocumentStore
import Transport
import WireFormat

// RunQuery, RunAggregationQuery.
extension RESTDialect {
  func runQuery(_ call: RESTCall, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let parent = try call.target.parent()
    let run = try decode(request) { (decoder, root) throws(WireError) -> RunQueryRequest? in
      guard let root else { return nil }
      return try Self.runQueryRequest(root, below: parent, decoder)
    }
    guard let run else { throw Status(.invalidArgument, "only structured queries are supported") }
    let source = QuerySource(
      try service.runQuery(run, in: call.database), projection: run.query.projection, call)
    var first: [UInt8] = []
    if try source.appendSlice(to: &first) {
      call.reply.sendJSON(first)
    } else {
      source.prepend(first)
      call.reply.streamJSON(from: source)
    }
  }

  func runAggregationQuery(_ call: RESTCall, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let parent = try call.target.parent()
    let run = try decode(request) { (decoder, root) throws(WireError) -> RunAggregationQueryRequest? in
      guard let root else { return nil }
      return try Self.runAggregationQueryRequest(root, below: parent, decoder)
    }
    guard let run else { throw Status(.invalidArgument, "only structured aggregation queries are supported") }
    let outcome = try service.runAggregationQuery(run, in: call.database)
    var json = JSONWriter(call.style)
    json.beginArray()
    json.beginObject()
    if !outcome.values.isEmpty {
      json.key("result")
      json.beginObject()
      json.key("aggregateFields")
      json.beginObject()
      for (alias, value) in outcome.values {
        json.key(alias)
        try DocumentJSON.append(value, to: &json)
      }
      json.endObject()
      json.endObject()
    }
    if let transaction = outcome.transaction {
      json.key("transaction")
      json.string(Base64.encode(transaction.bytes))
    }
    json.key("readTime")
    json.timestamp(outcome.readTime)
    if let metrics = outcome.explain { json.explainMetrics(metrics) }
    json.endObject()
    json.endArray()
    call.reply.sendJSON(json.finish())
  }

  private static func runAggregationQueryRequest(
    _ root: JSONValue, below parent: ResourcePath, _ decoder: JSONMessageDecoder
  ) throws(WireError) -> RunAggregationQueryRequest? {
    var run: RunAggregationQueryRequest?
    var explain: ExplainMode?
    var moment = RequestedMoment()
    var members = try decoder.members(of: root, "google.firestore.v1.RunAggregationQueryRequest")
    while let (name, value) = members.next() {
      switch name {
      case "structuredAggregationQuery", "structured_aggregation_query":
        decoder.enter("structured_aggregation_query")
        let (query, aggregations) = try decoder.aggregationQuery(value, below: parent)
        run = query.map { RunAggregationQueryRequest($0, aggregations) }
        decoder.leave()
      case "explainOptions", "explain_options":
        decoder.enter("explain_options")
        explain = try decoder.explainOptions(value)
        decoder.leave()
      case "parent", "requestOptions", "request_options": break
      default: try moment.read(name, value, decoder)
      }
    }
    run?.consistency = moment.consistency
    run?.newTransaction = moment.newTransaction
    run?.explain = explain
    return run
  }

  private static func runQueryRequest(
    _ root: JSONValue, below parent: ResourcePath, _ decoder: JSONMessageDecoder
  ) throws(WireError) -> RunQueryRequest? {
    var query: Query?
    var explain: ExplainMode?
    var moment = RequestedMoment()
    var members = try decoder.members(of: root, "google.firestore.v1.RunQueryRequest")
    while let (name, value) = members.next() {
      switch name {
      case "structuredQuery", "structured_query":
        decoder.enter("structured_query")
        query = try decoder.query(value, below: parent)
        decoder.leave()
      case "explainOptions", "explain_options":
        decoder.enter("explain_options")
        explain = try decoder.explainOptions(value)
        decoder.leave()
      case "parent", "requestOptions", "request_options": break
      default: try moment.read(name, value, decoder)
      }
    }
    guard let query else { return nil }
    var request = RunQueryRequest(query)
    request.consistency = moment.consistency
    request.newTransaction = moment.newTransaction
    request.explain = explain
    return request
  }
}

/// The answer to a query as a JSON array, slice by slice (firestore-api.md, section 1.3).
private final class QuerySource: BodySource {
  private let cursor: RunQueryCursor
  private let projection: FieldMask?
  private let call: RESTCall
  private var json: JSONWriter
  private var prepared: [UInt8] = []
  private var isBegun = false
  private var isSkipTold = false

  init(_ cursor: RunQueryCursor, projection: FieldMask?, _ call: RESTCall) {
    self.cursor = cursor
    self.projection = projection
    self.call = call
    json = JSONWriter(call.style)
  }

  /// Puts a slice that was already made before those to come.
  func prepend(_ slice: [UInt8]) { prepared = slice }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    if !prepared.isEmpty {
      out.append(contentsOf: prepared)
      prepared = []
      return .more
    }
    do {
      return try appendSlice(to: &out) ? .finished : .more
    } catch {
      let status = Status(error, database: call.database)
      ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &json)
      json.endArray()
      out.append(contentsOf: json.take())
      return .finished
    }
  }

  /// Appends about a slice; returns whether it was the last.
  func appendSlice(to out: inout [UInt8]) throws -> Bool {
    if !isBegun {
      json.beginArray()
      if let transaction = cursor.transaction {
        json.beginObject()
        json.key("transaction")
        json.string(Base64.encode(transaction.bytes))
        json.endObject()
      }
    }
    var isAtEnd = true
    while let (key, document) = try cursor.next() {
      tellSkipped()
      isBegun = true
      json.beginObject()
      json.key("document")
      try json.append(key, document, in: call.database, mask: projection)
      endElement()
      if json.bytes.count >= Exchange.sliceBytes {
        isAtEnd = false
        break
      }
    }
    if isAtEnd {
      tellSkipped()
      let metrics = cursor.explainMetrics
      if !isBegun || metrics != nil {
        json.beginObject()
        if let metrics { json.explainMetrics(metrics) }
        endElement()
      }
      json.endArray()
    }
    isBegun = true
    out.append(contentsOf: json.take())
    return isAtEnd
  }

  /// Says before the first document how many were passed over.
  private func tellSkipped() {
    guard !isSkipTold else { return }
    isSkipTold = true
    guard cursor.skipped > 0 else { return }
    isBegun = true
    json.beginObject()
    json.key("skippedResults")
    json.number(cursor.skipped)
    endElement()
  }

  private func endElement() {
    json.key("readTime")
    json.timestamp(cursor.readTime)
    json.endObject()
  }
}
