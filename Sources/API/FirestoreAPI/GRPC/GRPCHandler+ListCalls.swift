import DatabaseService
import DocumentModel
import WireFormat

// ListDocuments, ListCollectionIds.
extension GRPCHandler {
  func listDocuments(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    let collection = try Self.text(2, of: message)
    var list =
      collection.isEmpty
      ? ListDocumentsRequest(allBelow: parent.path)
      : ListDocumentsRequest(try Self.collection(collection, below: parent.path))
    var mask: FieldMask?
    var moment = ConsistencyFields()
    try decode(message, for: parent.database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (3, .varint): list.pageSize = Int(field.int32)
        case (4, .lengthDelimited): list.pageToken = try Self.pageToken(field)
        case (6, .lengthDelimited): list.orderBy = try ProtobufMessageDecoder.string(field)
        case (7, .lengthDelimited): mask = try decoder.documentMask(field.bytes)
        case (8, .lengthDelimited): moment.set(transaction: Array(field.bytes))
        case (10, .lengthDelimited): moment.set(readTime: try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        case (12, .varint): list.showMissing = field.bool
        default: break
        }
      }
    }
    list.consistency = moment.consistency
    let root = parent.database.documentsRootBytes
    let cursor = try service.listDocuments(list, in: parent.database, as: call.caller)
    var documents: [UInt8] = []
    CooperativeTask.run(call.exchange) {
      // The client's deadline may have passed since the last slice.
      guard !call.hasResponded else { return true }
      do {
        let nextPageToken = try cursor.slice(responseBytes: { documents.count }) { found in
          let start = ProtobufWriter.beginMessage(1, to: &documents)
          if let stored = found.stored {
            try EncodedDocument.with(found.key, stored, root: root) { (encoded) throws(WireError) in
              try DocumentProtobuf.append(encoded, mask: mask, to: &documents)
            }
          } else {
            // A missing document has only a name.
            ProtobufWriter.bytes(1, root + [UInt8(ascii: "/")] + found.key.path.bytes, to: &documents)
          }
          ProtobufWriter.endMessage(start, in: &documents)
        }
        guard let nextPageToken else { return false }
        call.send { out in
          out.append(contentsOf: documents)
          if !nextPageToken.isEmpty { ProtobufWriter.string(2, Base64.encode(nextPageToken), to: &out) }
        }
      } catch { call.fail(error) }
      return true
    }
  }

  func listCollectionIds(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    var pageSize = 0
    var pageToken: [UInt8] = []
    var moment = ConsistencyFields()
    try decode(message, for: parent.database, call) { _ in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .varint): pageSize = Int(field.int32)
        case (3, .lengthDelimited): pageToken = try Self.pageToken(field)
        case (4, .lengthDelimited): moment.set(readTime: try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        default: break
        }
      }
    }
    let page = try service.listCollectionIds(
      below: parent.path, in: parent.database, as: call.caller, pageSize: pageSize, pageToken: pageToken,
      consistency: moment.consistency)
    call.send { out in
      for id in page.ids { ProtobufWriter.string(1, id, to: &out) }
      if !page.nextPageToken.isEmpty { ProtobufWriter.string(2, Base64.encode(page.nextPageToken), to: &out) }
    }
  }
}
