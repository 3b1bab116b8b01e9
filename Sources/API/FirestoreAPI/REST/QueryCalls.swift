import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

// RunQuery, RunAggregationQuery, ExecutePipeline, PartitionQuery.
extension RESTHandler {
  func runQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let parent = try call.target.parent()
    if let query = preparedQuery(request, call, below: parent) {
      let cursor = try service.runQuery(query, as: call.caller)
      return call.send(QueryResponseProducer(cursor, mask: query.request.query.projection, root: call.target.root))
    }
    try decode(request, call, RunQueryRequest(below: parent), isStreaming: true) { [service] run in
      let cursor = try service.runQuery(run, in: call.database, as: call.caller)
      call.send(QueryResponseProducer(cursor, mask: run.query.projection, root: call.target.root))
    }
  }

  func runAggregationQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let message = RunAggregationQueryRequest(below: try call.target.parent())
    try decode(request, call, message, isStreaming: true) { [service] run in
      call.send(
        AggregationResponseProducer(try service.runAggregationQuery(run, in: call.database, as: call.caller)))
    }
  }

  func executePipeline(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard try call.target.parent().isRoot else {
      throw Status(.invalidArgument, "A pipeline runs on a database, not on a document.")
    }
    try decode(request, call, ExecutePipelineRequest(), isStreaming: true) { [service] run in
      let cursor = try service.executePipeline(run, in: call.database, as: call.caller)
      call.send(PipelineResponseProducer(cursor))
    }
  }

  func partitionQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let partition = try decode(request, call, PartitionQueryRequest(below: try call.target.parent()))
    let cursor = try service.partitionQuery(partition, in: call.database, as: call.caller)
    CooperativeTask.run(call.responder.exchange, wait: cursor.wait, cursor.slice) { call.send($0) }
  }
}
