import DatabaseService
import DocumentModel
import Transport
import WireFormat

// GetDocument, CreateDocument, UpdateDocument, DeleteDocument.
extension GRPCHandler {
  func getDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let (id, key) = try ResourceName.document(try Self.text(1, of: message))
    var mask: FieldMask?
    var moment = ConsistencyFields()
    try decode(message, for: id, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .lengthDelimited): mask = try decoder.documentMask(field.bytes)
        case (3, .lengthDelimited): moment.set(transaction: Array(field.bytes))
        case (5, .lengthDelimited): moment.set(readTime: try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        default: break
        }
      }
    }
    let root = id.documentsRootBytes
    try service.getDocument(key, in: id, as: call.caller, consistency: moment.consistency) { document in
      call.send { out in
        try EncodedDocument.with(key, document, root: root) { (encoded) throws(WireError) in
          try DocumentProtobuf.append(encoded, mask: mask, to: &out)
        }
      }
    }
  }

  func createDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    let collection = try Self.collection(try Self.text(2, of: message), below: parent.path)
    var id: String?
    var document = DecodedDocument.empty
    var mask: FieldMask?
    try decode(message, for: parent.database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (3, .lengthDelimited): id = try ProtobufMessageDecoder.string(field)
        case (4, .lengthDelimited): document = try decoder.document(field.bytes)
        case (5, .lengthDelimited): mask = try decoder.documentMask(field.bytes)
        default: break
        }
      }
    }
    guard document.name.isEmpty else { throw Status(.invalidArgument, "document.name must not be set") }
    let bound = call.bound
    try service.createDocument(
      in: collection, id: id, fields: document.fields, database: parent.database, as: call.caller
    ) { [mask] in Self.send($0, mask: mask, in: parent.database, bound) }
  }

  func updateDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let (id, key) = try ResourceName.document(try Self.documentName(of: message))
    var document = DecodedDocument.empty
    var updateMask: FieldMask?
    var mask: FieldMask?
    var precondition = Precondition.none
    try decode(message, for: id, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (1, .lengthDelimited): document = try decoder.document(field.bytes)
        case (2, .lengthDelimited): updateMask = try decoder.writableMask(field.bytes)
        case (3, .lengthDelimited): mask = try decoder.documentMask(field.bytes)
        case (4, .lengthDelimited): precondition = try decoder.precondition(field.bytes)
        default: break
        }
      }
    }
    let bound = call.bound
    try service.updateDocument(
      key, fields: document.fields, mask: updateMask, precondition: precondition, in: id,
      as: call.caller
    ) { [mask] in Self.send($0, mask: mask, in: id, bound) }
  }

  func deleteDocument(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let (id, key) = try ResourceName.document(try Self.text(1, of: message))
    var precondition = Precondition.none
    try decode(message, for: id, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        if field.number == 2, field.wireType == .lengthDelimited {
          precondition = try decoder.precondition(field.bytes)
        }
      }
    }
    let bound = call.bound
    try service.deleteDocument(key, precondition: precondition, in: id, as: call.caller) { result in
      bound.onLoop { call in
        switch result {
        case .success: call.sendEmpty()
        case .failure(let status): call.fail(status)
        }
      }
    }
  }

  /// The name of the document in an UpdateDocumentRequest.
  private static func documentName(
    of message: UnsafeRawBufferPointer
  ) throws(WireError) -> UnsafeRawBufferPointer {
    var name = UnsafeRawBufferPointer(start: nil, count: 0)
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .lengthDelimited { name = try text(1, of: field.bytes) }
    }
    return name
  }

  /// The collection with an ID, below a document or the root.
  static func collection(_ id: UnsafeRawBufferPointer, below parent: ResourcePath) throws -> ResourcePath {
    let text = String(decoding: id, as: UTF8.self)
    guard !id.contains(UInt8(ascii: "/")) else { throw ModelError.slashInCollectionID(text) }
    return try ResourcePath(checking: parent.appending(Array(id)).bytes)
  }

  private static func send(
    _ result: Result<Document, Status>, mask: FieldMask?, in database: DatabaseID, _ call: LoopBound<GRPCCall>
  ) {
    call.onLoop { call in
      call.send { out in
        try EncodedDocument.with(try result.get(), root: database.documentsRootBytes) { (encoded) throws(WireError) in
          try DocumentProtobuf.append(encoded, mask: mask, to: &out)
        }
      }
    }
  }
}
