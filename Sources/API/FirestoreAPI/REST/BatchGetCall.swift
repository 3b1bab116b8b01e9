import GatewayCore
import DatabaseService
import DocumentModel
import Transport
import WireFormat

// BatchGetDocuments.
extension RESTHandler {
  func batchGetDocuments(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.responder.sendText(404, "Not Found\n") }
    var batch = BatchGetDocumentsRequest([])
    var mask: FieldMask?
    var moment = ConsistencyFields()
    try decode(request, call) { (decoder, root) throws(WireError) in
      guard let root else { return }
      var members = try decoder.members(of: root, "google.firestore.v1.BatchGetDocumentsRequest")
      while let (name, value) = members.next() {
        switch name {
        case "documents":
          decoder.enter("documents")
          batch.keys = try Self.keys(value, in: call.database, decoder)
          decoder.leave()
        case "mask":
          decoder.enter("mask")
          mask = try decoder.documentMask(value)
          decoder.leave()
        case "database", "requestOptions", "request_options": break
        default: try moment.read(name, value, decoder)
        }
      }
    }
    batch.consistency = moment.consistency
    batch.newTransaction = moment.newTransaction
    let cursor = try service.batchGetDocuments(batch, in: call.database, as: call.caller)
    try call.send(BatchGetResponseProducer(cursor), mask: mask)
  }

  private static func keys(
    _ value: JSONValue, in database: DatabaseID, _ decoder: JSONMessageDecoder
  ) throws(WireError) -> [DocumentKey] {
    var keys: [DocumentKey] = []
    var names = try decoder.elements(of: value)
    while let name = names.next() {
      decoder.element(keys.count)
      let (named, key) = try decoder.documentName(try decoder.string(name, ""))
      try check(named, is: database)
      keys.append(key)
    }
    return keys
  }
}
