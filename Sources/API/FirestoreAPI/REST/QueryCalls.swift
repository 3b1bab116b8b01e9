import GatewayCore
import DatabaseService
import DocumentModel
import Transport
import WireFormat

// RunQuery, RunAggregationQuery.
extension RESTHandler {
  func runQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let parent = try call.target.parent()
    let run = try decode(request, call) { (decoder, root) throws(WireError) -> RunQueryRequest? in
      guard let root else { return nil }
      return try Self.runQueryRequest(root, below: parent, decoder)
    }
    guard let run else { throw Status(.invalidArgument, "only structured queries are supported") }
    let producer = QueryResponseProducer(try service.runQuery(run, in: call.database, as: call.caller))
    try call.send(producer, mask: run.query.projection)
  }

  func runAggregationQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let parent = try call.target.parent()
    let run = try decode(request, call) { (decoder, root) throws(WireError) -> RunAggregationQueryRequest? in
      guard let root else { return nil }
      return try Self.runAggregationQueryRequest(root, below: parent, decoder)
    }
    guard let run else { throw Status(.invalidArgument, "only structured aggregation queries are supported") }
    let producer = AggregationResponseProducer(try service.runAggregationQuery(run, in: call.database, as: call.caller))
    try call.send(producer, mask: nil)
  }

  private static func runAggregationQueryRequest(
    _ root: JSONValue, below parent: ResourcePath, _ decoder: JSONMessageDecoder
  ) throws(WireError) -> RunAggregationQueryRequest? {
    var run: RunAggregationQueryRequest?
    var explain: ExplainMode?
    var moment = ConsistencyFields()
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
    var moment = ConsistencyFields()
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
