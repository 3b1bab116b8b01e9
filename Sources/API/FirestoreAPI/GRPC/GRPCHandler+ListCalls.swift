import DatabaseService
import DocumentModel
import WireFormat

// ListDocuments, ListCollectionIds.
extension GRPCHandler {
  func listDocuments(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    let collection = try ProtobufMessageDecoder.text(2, of: message)
    var list =
      collection.isEmpty
      ? ListDocumentsRequest(allBelow: parent.path)
      : ListDocumentsRequest(try Self.collection(collection, below: parent.path))
    list = try decode(message, list, in: parent.database, call)
    let cursor = try service.listDocuments(list, in: parent.database, as: call.caller)
    let task = DocumentListTask(cursor, mask: list.mask, in: parent.database, to: ProtobufMessageWriter())
    // The client's deadline may have passed since the last slice.
    CooperativeTask.runWhole(call.exchange, isOver: { call.hasResponded }, wait: cursor.wait, task.slice) { result in
      call.send { $0.append(contentsOf: try result.get().bytes) }
    }
  }

  func listCollectionIds(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    let list = try decode(message, ListCollectionIdsRequest(below: parent.path), in: parent.database, call)
    call.send(try service.listCollectionIds(list, in: parent.database, as: call.caller))
  }
}
