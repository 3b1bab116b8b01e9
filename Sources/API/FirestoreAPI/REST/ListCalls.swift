import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

// ListDocuments, ListCollectionIds.
extension RESTHandler {
  func listDocuments(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly(
      "pageSize", "pageToken", "orderBy", "mask.fieldPaths", "transaction", "readTime", "showMissing")
    let parameters = call.parameters
    let collection = try call.target.collection()
    var list = ListDocumentsRequest(collection)
    list.pageSize = try parameters.int32("pageSize") ?? 0
    list.pageToken = try parameters.pageToken("pageToken")
    list.orderBy = parameters.value("orderBy") ?? ""
    list.showMissing = try parameters.boolean("showMissing") ?? false
    list.consistency = try parameters.consistency()
    list.mask = try parameters.mask("mask.fieldPaths")
    let cursor = try service.listDocuments(list, in: call.database, as: call.caller)
    // No ETag for lists with missing documents, which depend on other collections, or for reads of the past, which
    // never change.
    var tag: String?
    if !list.showMissing, list.consistency == .latest {
      tag = ETag.make(incarnation: cursor.state.incarnation, version: cursor.state.lastChange)
    }
    if let tag, let header = request.header("if-none-match"), ETag.matches(header, tag) {
      return call.responder.sendNotModified(etag: tag)
    }
    var json = JSONWriter(call.style)
    json.beginObject()
    let task = DocumentListTask(cursor, mask: list.mask, in: call.database, to: json)
    CooperativeTask.runWhole(call.responder.exchange, wait: cursor.wait, task.slice) { [tag] result in
      do {
        var json = try result.get()
        json.endObject()
        call.responder.sendJSON(json.finish(), etag: tag)
      } catch { call.fail(error) }
    }
  }

  func listCollectionIds(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let list = try decode(request, call, ListCollectionIdsRequest(below: try call.target.parent()))
    call.send(try service.listCollectionIds(list, in: call.database, as: call.caller))
  }
}
