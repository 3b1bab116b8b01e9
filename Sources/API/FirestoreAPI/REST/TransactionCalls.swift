import DatabaseService
import GatewayCore
import Transport
import WireFormat

// BeginTransaction, Rollback.
extension RESTHandler {
  func beginTransaction(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    let begin = try decode(request, call, BeginTransactionRequest())
    call.send(BeginTransactionResponse(try service.beginTransaction(begin.mode, in: call.database, as: call.caller)))
  }

  func rollback(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    let rollback = try decode(request, call, RollbackRequest())
    try service.rollback(rollback.transaction, in: call.database, as: call.caller)
    call.send(EmptyMessage())
  }
}
