package import DocumentModel

/// The request of ListDocuments.
package struct ListDocumentsRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.ListDocumentsRequest"
  /// The root or a document. The listed documents are in collections directly below it.
  package let parent: ResourcePath
  /// The ID of the collection. With `nil`, the documents of all collections below the parent are listed, in name
  /// order.
  package let collectionID: String?
  /// The maximum number of documents in a page; 0 for the default.
  package var pageSize = 0
  /// The token that an earlier page returned; empty for the first page.
  package var pageToken: [UInt8] = []
  /// The order as text; empty for name order.
  package var orderBy = ""
  /// The fields to return, or `nil` for all.
  package var mask: FieldMask?
  /// The state to read.
  package var consistency = ConsistencySelector.latest
  /// Whether to list missing documents that have descendants.
  package var showMissing = false

  /// Requests the first page of a collection in name order.
  package init(_ collection: ResourcePath) {
    parent = collection.parent
    collectionID = collection.id
  }

  /// Requests the first page of all collections directly below a parent.
  package init(allBelow parent: ResourcePath) {
    self.parent = parent
    collectionID = nil
  }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(3, "page_size", .varint) {
      pageSize = Int(try field.int32())
    } else if field.matches(4, "page_token") {
      pageToken = try field.pageToken()
    } else if field.matches(6, "order_by") {
      orderBy = try field.string()
    } else if field.matches(7, "mask") {
      mask = try field.message(DocumentMask())
    } else if field.matches(12, "show_missing", .varint) {
      showMissing = try field.bool()
    } else if try !field.reads(at: &consistency, transaction: 8, readTime: 10) {
      field.ignore("parent")
      field.ignore("collection_id")
    }
  }
}

/// The response of ListDocuments, written while the documents are found.
package struct ListDocumentsResponse {
  private let root: [UInt8]
  private let mask: FieldMask?
  private var isEmpty = true

  /// Begins the response to a request to a database.
  package init(in database: DatabaseID, mask: FieldMask?) {
    root = database.documentsRootBytes
    self.mask = mask
  }

  /// Appends a document, or one that is missing and has only a name.
  ///
  /// - Throws: ``WireError`` if the document is damaged.
  package mutating func append(
    _ key: DocumentKey, _ document: EncodedDocument?, to out: inout some MessageWriter
  ) throws(WireError) {
    if isEmpty { out.beginList(1, "documents") }
    isEmpty = false
    guard let document else {
      return out.message { out in
        out.field(1, "name")
        out.documentName(root, key)
      }
    }
    try out.message(MaskedDocument(document, mask: mask))
  }

  /// Ends the list.
  package func end(nextPageToken: [UInt8], to out: inout some MessageWriter) {
    if !isEmpty { out.endList() }
    out.pageToken(2, "nextPageToken", nextPageToken)
  }
}
