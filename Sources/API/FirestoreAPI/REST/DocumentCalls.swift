import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

// GetDocument, CreateDocument, UpdateDocument, DeleteDocument. Their fields are in the URL, except the document.
extension RESTHandler {
  func getDocument(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly("mask.fieldPaths", "transaction", "readTime")
    var get = GetDocumentRequest(try call.target.documentKey())
    get.mask = try call.parameters.mask("mask.fieldPaths")
    get.consistency = try call.parameters.consistency()
    let known = request.header("if-none-match")
    let root = call.target.root
    try service.getDocument(get.key, in: call.database, as: call.caller, consistency: get.consistency) {
      document, incarnation in
      let tag = ETag.make(incarnation: incarnation, version: document.updateVersion)
      if let known, ETag.matches(known, tag) { return call.responder.sendNotModified(etag: tag) }
      try EncodedDocument.with(get.key, document, root: root) { encoded in
        try call.send(MaskedDocument(encoded, mask: get.mask), etag: tag)
      }
    }
  }

  func createDocument(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    guard call.target.segmentCount > 0 else { return call.responder.sendText(404, "Not Found\n") }
    try call.parameters.allowOnly("documentId", "mask.fieldPaths")
    let mask = try call.parameters.mask("mask.fieldPaths")
    var create = CreateDocumentRequest(in: try call.target.collection())
    create.documentID = call.parameters.value("documentId")
    create.document = try decodeDocument(request, call)
    create = try create.decoded()
    try service.createDocument(
      in: create.collection, id: create.documentID, fields: create.document.fields, database: call.database,
      as: call.caller, requestID: call.requestID
    ) { result in call.responder.onLoop { call.send(result, mask: mask) } }
  }

  func updateDocument(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly(
      "updateMask.fieldPaths", "mask.fieldPaths", "currentDocument.exists", "currentDocument.updateTime")
    let key = try call.target.documentKey()
    let mask = try call.parameters.mask("mask.fieldPaths")
    let updateMask = try call.parameters.mask("updateMask.fieldPaths")
    let precondition = try call.parameters.precondition()
    try service.updateDocument(
      key, fields: try decodeDocument(request, call).fields, mask: updateMask, precondition: precondition,
      in: call.database, as: call.caller, requestID: call.requestID
    ) { result in call.responder.onLoop { call.send(result, mask: mask) } }
  }

  func deleteDocument(_ call: RESTRequest) throws {
    try call.parameters.allowOnly("currentDocument.exists", "currentDocument.updateTime")
    var delete = DeleteDocumentRequest(try call.target.documentKey())
    delete.precondition = try call.parameters.precondition()
    try service.deleteDocument(
      delete.key, precondition: delete.precondition, in: call.database, as: call.caller, requestID: call.requestID
    ) { result in call.responder.onLoop { call.send(result.map { EmptyMessage() }) } }
  }

  /// Decodes a body that is a document. An empty body is an empty document.
  private func decodeDocument(_ request: borrowing HTTPRequest, _ call: RESTRequest) throws -> DecodedDocument {
    try decode(request, call) { (decoder, root) throws(WireError) in try root.map(decoder.document) ?? .empty }
  }
}
