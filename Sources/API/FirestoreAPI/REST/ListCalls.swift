import GatewayCore
import DatabaseService
import DocumentModel
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
    let mask = try parameters.mask("mask.fieldPaths")
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
    var isEmpty = true
    let root = call.database.documentsRootBytes
    json.beginObject()
    CooperativeTask.run(call.responder.exchange) {
      do {
        let nextPageToken = try cursor.slice(responseBytes: { json.bytes.count }) { found in
          if isEmpty {
            json.key("documents")
            json.beginArray()
            isEmpty = false
          }
          if let stored = found.stored {
            try json.append(found.key, stored, root: root, mask: mask)
          } else {
            json.beginObject()
            json.key("name")
            json.name(found.key, in: call.database)
            json.endObject()
          }
        }
        guard let nextPageToken else { return false }
        if !isEmpty { json.endArray() }
        json.pageToken(nextPageToken)
        json.endObject()
        var body = json.take()
        body.append(UInt8(ascii: "\n"))
        call.responder.sendJSON(body, etag: tag)
      } catch {
        call.responder.sendError(Status(error, database: call.database))
      }
      return true
    }
  }

  func listCollectionIds(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let parent = try call.target.parent()
    var pageSize = 0
    var pageToken: [UInt8] = []
    var consistency = ConsistencySelector.latest
    try decode(request, call) { (decoder, root) throws(WireError) in
      guard let root else { return }
      var members = try decoder.members(of: root, "google.firestore.v1.ListCollectionIdsRequest")
      while let (name, value) = members.next() {
        switch name {
        case "pageSize", "page_size": pageSize = Int(try decoder.int32(value, "page_size"))
        case "pageToken", "page_token":
          pageToken = try decoder.pageToken(value)
        case "readTime", "read_time": consistency = .readTime(try decoder.alignedTimestamp(value, "read_time"))
        case "parent", "requestOptions", "request_options": break
        default: throw decoder.unknown(name)
        }
      }
    }
    let page = try service.listCollectionIds(
      below: parent, in: call.database, as: call.caller, pageSize: pageSize, pageToken: pageToken,
      consistency: consistency)
    call.send { json in
      if !page.ids.isEmpty {
        json.key("collectionIds")
        json.beginArray()
        for id in page.ids { json.string(id) }
        json.endArray()
      }
      json.pageToken(page.nextPageToken)
    }
  }
}

extension JSONWriter {
  /// Appends the member `nextPageToken` unless the token is empty.
  mutating func pageToken(_ token: [UInt8]) {
    guard !token.isEmpty else { return }
    key("nextPageToken")
    string(Base64.encode(token))
  }
}

extension JSONMessageDecoder {
  /// Decodes a `page_token` field.
  func pageToken(_ value: JSONValue) throws(WireError) -> [UInt8] {
    guard let bytes = Base64.decode(String(decoding: try string(value, "page_token"), as: UTF8.self)) else {
      throw .model(.invalidPageToken)
    }
    return bytes
  }
}
