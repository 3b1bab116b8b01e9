import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

// Commit, BatchWrite.
extension RESTHandler {
  func commit(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    try service.checkRoom(forCommitOf: request.body.count)
    try decode(request, call, CommitMessage()) { [service] commit in
      try service.commit(
        commit.writes, transaction: commit.transaction, in: call.database, as: call.caller, requestID: call.requestID
      ) { result in
        call.responder.onLoop { call.send(result.map { CommitResponse($0.results, commitTime: $0.version) }) }
      }
    }
  }

  func batchWrite(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    try service.checkRoom(forCommitOf: request.body.count)
    try decode(request, call, BatchWriteRequest()) { [service] batch in
      try service.batchWrite(batch.writes, in: call.database, as: call.caller, requestID: call.requestID) { results in
        call.responder.onLoop { call.send(BatchWriteResponse(results)) }
      }
    }
  }
}
