import GatewayCore
import DatabaseService
import DocumentModel
import Transport
import WireFormat

// Commit, BatchWrite.
extension RESTHandler {
  func commit(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    let decoded = try decodeWrites(request, call, "google.firestore.v1.CommitRequest", takesTransaction: true)
    try service.commit(decoded.writes, transaction: decoded.transaction, in: call.database, as: call.caller) { result in
      call.responder.onLoop {
        switch result {
        case .failure(let status): call.responder.sendError(status)
        case .success(let outcome):
          // A commit without writes has no commit time.
          guard !decoded.writes.isEmpty else { return call.sendEmpty() }
          call.send { json in
            json.key("writeResults")
            json.beginArray()
            for result in outcome.results { try DocumentJSON.append(result, to: &json) }
            json.endArray()
            json.key("commitTime")
            json.timestamp(outcome.version)
          }
        }
      }
    }
  }

  func batchWrite(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    let decoded = try decodeWrites(request, call, "google.firestore.v1.BatchWriteRequest", takesTransaction: false)
    try service.batchWrite(decoded.writes, in: call.database, as: call.caller) { results in
      call.responder.onLoop {
        call.send { json in
          guard !results.isEmpty else { return }
          json.key("writeResults")
          json.beginArray()
          for result in results {
            switch result {
            case .success(let written): try DocumentJSON.append(written, to: &json)
            case .failure: try DocumentJSON.append(WriteResult(updateTime: nil), to: &json)
            }
          }
          json.endArray()
          json.key("status")
          json.beginArray()
          for result in results {
            json.beginObject()
            if case .failure(let status) = result {
              json.key("code")
              json.number(status.code.rawValue)
              json.key("message")
              json.string(status.message)
            }
            json.endObject()
          }
          json.endArray()
        }
      }
    }
  }

  private func decodeWrites(
    _ request: borrowing HTTPRequest, _ call: RESTRequest, _ type: StaticString, takesTransaction: Bool
  ) throws -> (writes: [Write], transaction: TransactionID?) {
    var writes: [Write] = []
    var transaction: TransactionID?
    try decode(request, call) { (decoder, root) throws(WireError) in
      guard let root else { return }
      var members = try decoder.members(of: root, type)
      while let (name, value) = members.next() {
        switch name {
        case "writes":
          decoder.enter("writes")
          for addressed in try decoder.writes(value) {
            try Self.check(addressed.database, is: call.database)
            writes.append(addressed.write)
          }
          decoder.leave()
        case "transaction" where takesTransaction:
          let bytes = try decoder.bytes(value, "transaction")
          // An empty bytes field means absent.
          if !bytes.isEmpty { transaction = TransactionID(bytes: bytes) }
        case "database", "requestOptions", "request_options": break
        case "labels" where !takesTransaction: break
        default: throw decoder.unknown(name)
        }
      }
    }
    return (writes, transaction)
  }
}
