package import DocumentModel

/// The request of ListCollectionIds.
package struct ListCollectionIdsRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.ListCollectionIdsRequest"
  /// The root or a document.
  package let parent: ResourcePath
  /// The maximum number of IDs in a page; 0 for the default.
  package var pageSize = 0
  /// The token that an earlier page returned; empty for the first page.
  package var pageToken: [UInt8] = []
  /// The state to read. It cannot be that of a transaction.
  package var consistency = ConsistencySelector.latest

  /// Requests the first page of the collections directly below a parent.
  package init(below parent: ResourcePath) { self.parent = parent }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "page_size", .varint) {
      pageSize = Int(try field.int32())
    } else if field.matches(3, "page_token") {
      pageToken = try field.pageToken()
    } else if field.matches(4, "read_time") {
      consistency = .readTime(try field.alignedTimestamp())
    } else {
      field.ignore("parent")
      field.ignore("request_options")
    }
  }
}

/// The response of ListCollectionIds.
package struct ListCollectionIdsResponse: EncodableMessage {
  package let ids: [String]
  /// The token of the next page; empty at the end.
  package let nextPageToken: [UInt8]

  package init(_ ids: [String], nextPageToken: [UInt8]) {
    self.ids = ids
    self.nextPageToken = nextPageToken
  }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    out.list(1, "collectionIds", ids) { id, out in out.string(id) }
    out.pageToken(2, "nextPageToken", nextPageToken)
  }
}
