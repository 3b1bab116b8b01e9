import DatabaseService
import GatewayCore
import Transport
import WireFormat

// BatchGetDocuments.
extension RESTHandler {
  func batchGetDocuments(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    try decode(request, call, BatchGetDocumentsRequest(), isStreaming: true) { [self] in try get($0, call) }
  }

  private func get(_ batch: BatchGetDocumentsRequest, _ call: RESTRequest) throws {
    let authorization = try service.batchGetDocuments(batch, in: call.database, as: call.caller)
    func send(_ cursor: BatchGetDocumentsCursor) {
      call.send(BatchGetResponseProducer(cursor, mask: batch.mask, in: call.database))
    }
    if let cursor = try authorization.slice() { return send(cursor) }
    CooperativeTask.run(call.responder.exchange, wait: { _ in false }, authorization.slice) { result in
      do { send(try result.get()) } catch { call.fail(error, inArray: true) }
    }
  }
}
