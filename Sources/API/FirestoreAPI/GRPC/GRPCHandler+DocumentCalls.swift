import DatabaseService
import DocumentModel
import Transport
import WireFormat

// GetDocument, CreateDocument, UpdateDocument, DeleteDocument.
extension GRPCHandler {
  func getDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let (id, key) = try Self.document(of: message)
    let get = try decode(message, GetDocumentRequest(key), in: id, call)
    let root = id.documentsRootBytes
    try service.getDocument(get.key, in: id, as: call.caller, consistency: get.consistency) { document, _ in
      EncodedDocument.with(key, document, root: root) { call.send(MaskedDocument($0, mask: get.mask)) }
    }
  }

  func createDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    let collection = try Self.collection(try ProtobufMessageDecoder.text(2, of: message), below: parent.path)
    let create = try decode(message, CreateDocumentRequest(in: collection), in: parent.database, call)
    let bound = call.bound
    try service.createDocument(
      in: create.collection, id: create.documentID, fields: create.document.fields, database: parent.database,
      as: call.caller, requestID: call.requestID
    ) { result in bound.onLoop { $0.send(result, mask: create.mask, in: parent.database) } }
  }

  func updateDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let (id, key) = try Self.document(inFieldOf: message)
    let update = try decode(message, UpdateDocumentRequest(key), in: id, call)
    let bound = call.bound
    try service.updateDocument(
      key, fields: update.document.fields, mask: update.updateMask, precondition: update.precondition, in: id,
      as: call.caller, requestID: call.requestID
    ) { result in bound.onLoop { $0.send(result, mask: update.mask, in: id) } }
  }

  func deleteDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let (id, key) = try Self.document(of: message)
    let delete = try decode(message, DeleteDocumentRequest(key), in: id, call)
    let bound = call.bound
    try service.deleteDocument(
      key, precondition: delete.precondition, in: id, as: call.caller, requestID: call.requestID
    ) { result in bound.onLoop { $0.send(result.map { EmptyMessage() }) } }
  }
}
