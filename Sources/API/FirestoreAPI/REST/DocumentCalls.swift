import GatewayCore
import DatabaseService
import DocumentModel
import DocumentStore
import Transport
import WireFormat

// GetDocument, CreateDocument, UpdateDocument, DeleteDocument.
extension RESTHandler {
  func getDocument(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly("mask.fieldPaths", "transaction", "readTime")
    let key = try call.target.documentKey()
    let mask = try call.parameters.mask("mask.fieldPaths")
    let consistency = try call.parameters.consistency()
    let known = request.header("if-none-match")
    let access = try service.access(to: call.database, as: call.caller)
    let incarnation = access.database.incarnation
    var tag = ""
    let body = try service.getDocument(key, in: access, consistency: consistency) { document -> [UInt8]? in
      tag = ETag.make(incarnation: incarnation, version: document.updateVersion)
      if let known, ETag.matches(known, tag) { return nil }
      var json = JSONWriter(call.style)
      // Usually enough for the head and a few short fields with indentation.
      json.bytes.reserveCapacity(512 + 3 * document.fields.count)
      try json.append(key, document, root: call.database.documentsRootBytes, mask: mask)
      return json.finish()
    }
    if let body {
      call.responder.sendJSON(body, etag: tag)
    } else {
      call.responder.sendNotModified(etag: tag)
    }
  }

  func createDocument(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    guard call.target.segmentCount > 0 else { return call.responder.sendText(404, "Not Found\n") }
    try call.parameters.allowOnly("documentId", "mask.fieldPaths")
    let mask = try call.parameters.mask("mask.fieldPaths")
    let collection = try call.target.collection()
    let document = try decode(request, call) { (decoder, root) throws(WireError) -> DecodedDocument? in
      guard let root else { return nil }
      return try decoder.document(root)
    }
    guard document?.name.isEmpty ?? true else { throw Status(.invalidArgument, "document.name must not be set") }
    try service.createDocument(
      in: collection, id: call.parameters.value("documentId"), fields: document?.fields ?? .none,
      database: call.database, as: call.caller
    ) { self.send($0, mask: mask, call) }
  }

  func updateDocument(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly(
      "updateMask.fieldPaths", "mask.fieldPaths", "currentDocument.exists", "currentDocument.updateTime")
    let key = try call.target.documentKey()
    let mask = try call.parameters.mask("mask.fieldPaths")
    let updateMask = try call.parameters.mask("updateMask.fieldPaths")
    let precondition = try call.parameters.precondition()
    let document = try decode(request, call) { (decoder, root) throws(WireError) -> DecodedDocument? in
      guard let root else { return nil }
      return try decoder.document(root)
    }
    try service.updateDocument(
      key, fields: document?.fields ?? .none, mask: updateMask, precondition: precondition, in: call.database,
      as: call.caller
    ) { self.send($0, mask: mask, call) }
  }

  func deleteDocument(_ call: RESTRequest) throws {
    try call.parameters.allowOnly("currentDocument.exists", "currentDocument.updateTime")
    try service.deleteDocument(
      try call.target.documentKey(), precondition: try call.parameters.precondition(), in: call.database,
      as: call.caller
    ) { result in
      call.responder.onLoop {
        switch result {
        case .success: call.sendEmpty()
        case .failure(let status): call.responder.sendError(status)
        }
      }
    }
  }

  private func send(_ result: Result<Document, Status>, mask: FieldMask?, _ call: RESTRequest) {
    call.responder.onLoop {
      do {
        let document = try result.get()
        var json = JSONWriter(call.style)
        try json.append(document, in: call.database, mask: mask)
        call.responder.sendJSON(json.finish())
      } catch {
        call.responder.sendError(Status(error, database: call.database))
      }
    }
  }
}
