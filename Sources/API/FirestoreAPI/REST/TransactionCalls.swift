import GatewayCore
import DatabaseService
import DocumentModel
import Transport
import WireFormat

// BeginTransaction, Rollback.
extension RESTHandler {
  func beginTransaction(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    let mode = try decode(request, call) { (decoder, root) throws(WireError) in
      var mode: TransactionMode?
      guard let root else { return mode }
      var members = try decoder.members(of: root, "google.firestore.v1.BeginTransactionRequest")
      while let (name, value) = members.next() {
        switch name {
        case "options":
          decoder.enter("options")
          mode = TransactionMode(try decoder.transactionOptions(value))
          decoder.leave()
        case "database", "requestOptions", "request_options": break
        default: throw decoder.unknown(name)
        }
      }
      return mode
    }
    // BeginTransaction without a mode begins a read-write transaction. `newTransaction` without one is read-only.
    let transaction = try service.beginTransaction(
      mode ?? .readWrite(retrying: nil), in: call.database, as: call.caller)
    call.send { json in
      json.key("transaction")
      json.string(Base64.encode(transaction.bytes))
    }
  }

  func rollback(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    let id = try decode(request, call) { (decoder, root) throws(WireError) in
      var id = TransactionID(bytes: [])
      guard let root else { return id }
      var members = try decoder.members(of: root, "google.firestore.v1.RollbackRequest")
      while let (name, value) = members.next() {
        switch name {
        case "transaction": id = TransactionID(bytes: try decoder.bytes(value, "transaction"))
        case "database", "requestOptions", "request_options": break
        default: throw decoder.unknown(name)
        }
      }
      return id
    }
    try service.rollback(id, in: call.database, as: call.caller)
    call.sendEmpty()
  }
}
