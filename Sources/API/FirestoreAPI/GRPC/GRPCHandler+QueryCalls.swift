import DatabaseService
import DocumentModel
import WireFormat

// BatchGetDocuments, RunQuery, RunAggregationQuery, ExecutePipeline, PartitionQuery.
extension GRPCHandler {
  func batchGetDocuments(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    try decode(message, BatchGetDocumentsRequest(), in: database, call) { [self] in try get($0, in: database, $1) }
  }

  private func get(_ batch: BatchGetDocumentsRequest, in database: DatabaseID, _ call: GRPCCall) throws {
    let authorization = try service.batchGetDocuments(batch, in: database, as: call.caller)
    func send(_ cursor: BatchGetDocumentsCursor) {
      call.send(BatchGetResponseProducer(cursor, mask: batch.mask, in: database), in: database)
    }
    if let cursor = try authorization.slice() { return send(cursor) }
    CooperativeTask.run(
      call.exchange, isOver: { call.hasResponded }, wait: { _ in false }, authorization.slice
    ) { result in
      do { send(try result.get()) } catch { call.fail(error) }
    }
  }

  func runQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    try decode(message, RunQueryRequest(below: parent.path), in: parent.database, call) { [service] run, call in
      let cursor = try service.runQuery(run, in: parent.database, as: call.caller)
      call.send(
        QueryResponseProducer(cursor, mask: run.query.projection, root: parent.database.documentsRootBytes),
        in: parent.database)
    }
  }

  func runAggregationQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    let request = RunAggregationQueryRequest(below: parent.path)
    try decode(message, request, in: parent.database, call) { [service] run, call in
      let cursor = try service.runAggregationQuery(run, in: parent.database, as: call.caller)
      call.send(AggregationResponseProducer(cursor), in: parent.database)
    }
  }

  func executePipeline(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    try decode(message, ExecutePipelineRequest(), in: database, call) { [service] run, call in
      let cursor = try service.executePipeline(run, in: database, as: call.caller)
      call.send(PipelineResponseProducer(cursor), in: database)
    }
  }

  func partitionQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    let partition = try decode(message, PartitionQueryRequest(below: parent.path), in: parent.database, call)
    let cursor = try service.partitionQuery(partition, in: parent.database, as: call.caller)
    // The client's deadline may have passed since the last slice.
    CooperativeTask.run(call.exchange, isOver: { call.hasResponded }, wait: cursor.wait, cursor.slice) { call.send($0) }
  }
}
