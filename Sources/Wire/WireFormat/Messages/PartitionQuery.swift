package import DocumentModel

/// The request of PartitionQuery.
package struct PartitionQueryRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.PartitionQueryRequest"
  /// The query whose results are divided: a collection group in name order.
  package var query: Query
  /// Whether the request has a query.
  private var hasQuery = true
  /// The maximum number of cuts; must be positive.
  package var partitionCount: Int64 = 0
  /// The maximum number of cuts in one response; 0 for the default.
  package var pageSize = 0
  /// The token that an earlier page returned; empty for the first page.
  package var pageToken: [UInt8] = []
  /// The state to read. It cannot be that of a transaction.
  package var consistency = ConsistencySelector.latest

  /// Requests the cuts of a query's results.
  package init(_ query: Query) { self.query = query }

  /// Creates a request whose query is decoded later.
  package init(below parent: ResourcePath) {
    query = Query(parent: parent, collectionID: nil)
    hasQuery = false
  }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "structured_query") {
      query = try field.message(QueryMembers(below: query.parent))
      hasQuery = true
    } else if field.matches(3, "partition_count", .varint) {
      partitionCount = try field.int64()
    } else if field.matches(4, "page_token") {
      pageToken = try field.pageToken()
    } else if field.matches(5, "page_size", .varint) {
      pageSize = Int(try field.int32())
    } else if field.matches(6, "read_time") {
      consistency = .readTime(try field.alignedTimestamp())
    } else {
      field.ignore("parent")
      field.ignore("request_options")
    }
  }

  /// Returns the request if it has a structured query.
  ///
  /// - Throws: ``WireError/model(_:)``.
  package func decoded() throws(WireError) -> PartitionQueryRequest {
    guard hasQuery else { throw .model(.queryNotStructured) }
    return self
  }
}

/// The response of PartitionQuery.
package struct PartitionQueryResponse: EncodableMessage, Sendable {
  private let database: DatabaseID
  /// The documents at which partitions start, in name order. As cursors they are references with `before` set. The
  /// first partition precedes the first of them.
  package let partitions: [DocumentKey]
  /// The token of the next page; empty at the end.
  package let nextPageToken: [UInt8]

  package init(_ partitions: [DocumentKey], in database: DatabaseID, nextPageToken: [UInt8]) {
    self.partitions = partitions
    self.database = database
    self.nextPageToken = nextPageToken
  }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    try out.list(1, "partitions", partitions) { (key, out) throws(WireError) in
      try out.message { (out) throws(WireError) in
        out.beginList(1, "values")
        try out.value(.reference(ResourceName(database: database, path: key.path).text))
        out.endList()
        out.field(2, "before")
        out.bool(true)
      }
    }
    out.pageToken(2, "nextPageToken", nextPageToken)
  }
}
