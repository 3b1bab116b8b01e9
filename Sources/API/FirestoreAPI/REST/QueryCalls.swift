import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

// RunQuery, RunAggregationQuery, PartitionQuery.
extension RESTHandler {
  func runQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let run = try decode(request, call, RunQueryRequest(below: try call.target.parent()))
    let cursor = try service.runQuery(run, in: call.database, as: call.caller)
    call.send(QueryResponseProducer(cursor, mask: run.query.projection, in: call.database))
  }

  func runAggregationQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let run = try decode(request, call, RunAggregationQueryRequest(below: try call.target.parent()))
    call.send(
      AggregationResponseProducer(try service.runAggregationQuery(run, in: call.database, as: call.caller)))
  }

  func partitionQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let partition = try decode(request, call, PartitionQueryRequest(below: try call.target.parent()))
    let cursor = try service.partitionQuery(partition, in: call.database, as: call.caller)
    CooperativeTask.run(call.responder.exchange, wait: cursor.wait, cursor.slice) { call.send($0) }
  }
}
