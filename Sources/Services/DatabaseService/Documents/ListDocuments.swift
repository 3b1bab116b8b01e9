package import DocumentModel
import DocumentStore
import KeyEncoding
import KeyValue
import Matching
import QueryEngine
package import WireFormat

extension ListDocumentsRequest {
  /// A query with the same documents.
  fileprivate var query: Query { Query(parent: parent, collectionID: collectionID) }
}

extension FirestoreService {
  /// Lists a page of a collection.
  ///
  /// Cost of this call: that of planning. In name order, a page of a collection is one scan. Otherwise it costs as
  /// much as a query. Only administrators may list missing documents, because rules do not cover those.
  /// - Throws: `INVALID_ARGUMENT` for an invalid size, token or order, and for an order together with `showMissing`;
  ///   without a collection also for `showMissing` and for any order except by name. `PERMISSION_DENIED` if the
  ///   rules deny the query; ``CommitError`` if the state cannot be read.
  package func listDocuments(
    _ request: ListDocumentsRequest, in id: DatabaseID, as caller: Caller
  ) throws -> ListDocumentsCursor {
    let access = try access(to: id, as: caller)
    let database = access.database
    if request.showMissing { try access.requireAdmin() }
    guard request.pageSize >= 0 else { throw Status(.invalidArgument, "Page size must be nonnegative.") }
    let orders = request.orderBy.isEmpty ? [ListDocumentsCursor.byName] : try OrderBy.parse(request.orderBy)
    if request.collectionID == nil {
      guard !request.showMissing else {
        throw Status(.invalidArgument, "collection id must be set when show_missing is true")
      }
      guard orders == [ListDocumentsCursor.byName] else {
        throw Status(.invalidArgument, "kind is required for all orders except __key__ ascending")
      }
    }
    if request.showMissing, !request.orderBy.isEmpty {
      throw Status(.invalidArgument, "cannot specify an order when show_missing is true")
    }
    let binding = PageToken.Binding(
      "documents", request.parent.text, request.collectionID ?? "", request.orderBy,
      request.showMissing ? "missing" : "")
    let after = try request.pageToken.isEmpty ? nil : PageToken.position(request.pageToken, binding)
    return try database.read(request.consistency) { reader, readTime in
      if let authorizer = access.authorizer {
        var query = request.query
        query.limit = request.pageSize == 0 ? nil : request.pageSize
        if !request.orderBy.isEmpty { query.orders = orders }
        try authorizer.requireList(query, in: database, at: readTime, reader.snapshot)
      }
      if !request.orderBy.isEmpty {
        try checkIndexes(
          of: ResolvedQuery(listing: request.query, orders: orders, after: nil, limit: 1, in: id), database, &reader)
      }
      return try ListDocumentsCursor(database, request, orders, after: after, binding, at: readTime, &reader)
    }
  }

  /// Returns the version of the last change of a collection and the incarnation of the database. Together they
  /// identify one state of the collection's documents. The call is not authorized: reveal the result only to callers
  /// that may list the collection.
  /// - Throws: The errors of ``access(to:as:)``; ``StorageError`` if the read fails.
  package func collectionState(
    _ collection: ResourcePath, in id: DatabaseID, as caller: Caller
  ) throws -> (incarnation: UInt64, lastChange: Int64) {
    let database = try access(to: id, as: caller).database
    let incarnation = database.incarnation
    return try database.read { reader in (incarnation, try reader.collection(collection)?.lastChange ?? 0) }
  }
}

/// A page of a ListDocuments response, produced in slices like those of ``RunQueryCursor``.
///
/// A page ends early when it contains ``pageBytesMax`` of stored documents, or when the response is as long. Deeply
/// nested maps take many times their stored bytes in JSON.
package final class ListDocumentsCursor {
  /// The source of the documents.
  private enum Source {
    /// A collection in name order.
    case scan(ResourcePath)
    /// Any other listing.
    case query(ResolvedQuery, any QueryResults)
  }

  static let byName = Order(FieldPath(field: "__name__"))
  /// The maximum number of documents in a page, even if the client requests more.
  private static let pageDocumentsMax = 10_000
  /// The maximum size of the stored documents in a page, in bytes, so that the memory of a response is limited.
  private static let pageBytesMax = 8 << 20

  private let database: DocumentDatabase
  private let request: ListDocumentsRequest
  private let orders: [Order]
  private let after: [UInt8]?
  private let binding: PageToken.Binding
  private let readTime: ReadTime
  private let limit: Int
  private let source: Source
  private var count = 0
  private var bytes = 0
  private var lastKey: DocumentKey?
  /// The position of the last document of the page, once the page is full.
  private var place: [UInt8]?

  fileprivate init(
    _ database: DocumentDatabase, _ request: ListDocumentsRequest, _ orders: [Order], after: [UInt8]?,
    _ binding: PageToken.Binding, at readTime: ReadTime, _ reader: inout SnapshotReader
  ) throws {
    self.database = database
    self.request = request
    self.orders = orders
    self.after = after
    self.binding = binding
    self.readTime = readTime
    limit = min(request.pageSize == 0 ? Limits.pageSizeDefault : request.pageSize, Self.pageDocumentsMax)
    if orders == [Self.byName], let id = request.collectionID {
      source = .scan(request.parent.appending(id))
    } else {
      // One document more than the page holds shows whether there is a next page.
      let query = ResolvedQuery(
        listing: request.query, orders: orders, after: after, limit: limit + 1, in: database.id)
      let options = PlanOptions(indexes: try database.indexes(&reader))
      source = .query(query, try query.results(reader.snapshot, at: readTime.timestamp.microseconds, options))
    }
  }

  /// Calls `found` for each document. After the last slice it returns the token of the next page, or an empty token
  /// at the end. `answerBytes` returns the length of the response so far.
  /// - Throws: ``CommitError/readTimeTooOld`` if the state can no longer be read, ``StorageError`` if a read fails,
  ///   and any error of `found`.
  package func slice(
    responseBytes: () -> Int = { 0 }, _ found: (FoundDocument) throws -> Void
  ) throws -> [UInt8]? {
    try database.read { reader in
      try database.checkReadable(readTime.timestamp.microseconds, &reader)
      switch source {
      case .query(let query, let results):
        try listOrdered(query, results, reader.snapshot, responseBytes, found)
        guard results.isAtEnd || count > limit else { return nil }
        if count <= limit { place = nil }
      case .scan(let collection):
        place = try listByName(collection, &reader, responseBytes, found)
      }
      try note(&reader)
      return place.map { PageToken.encode($0, binding) } ?? []
    }
  }

  /// Records the range of the page in the transaction, if the page is part of one.
  private func note(_ reader: inout SnapshotReader) throws {
    guard let transaction = readTime.transaction else { return }
    let start = after.map { after in
      switch source {
      case .scan(let collection): SortBound.after(collection.appending(after))
      case .query: SortBound(code: after, isBefore: false)
      }
    }
    var range = QueryRange(
      listing: QueryScope(request.query), orders: orders, from: start, includesMissing: request.showMissing,
      in: database.id)
    if place != nil, let lastKey {
      let document = try database.document(lastKey, at: readTime, &reader)
      let fields = EncodedMap(documentFields: document?.fields ?? UnsafeRawBufferPointer(start: nil, count: 0))
      try range.end(after: fields, at: lastKey.path)
    }
    database.transactions.note(range, in: transaction)
  }

  /// Continues the page. ``count`` exceeds ``limit`` if a document follows the page.
  private func listOrdered(
    _ query: ResolvedQuery, _ results: any QueryResults, _ snapshot: any KeyValueSnapshot, _ responseBytes: () -> Int,
    _ found: (FoundDocument) throws -> Void
  ) throws {
    try results.slice(snapshot, units: QueryExecution.sliceUnits) { key, document in
      guard place == nil else {
        count = limit + 1
        return false
      }
      try found(FoundDocument(key: key, stored: document))
      count += 1
      bytes += document.fields.count
      if count == limit || max(bytes, responseBytes()) >= Self.pageBytesMax {
        lastKey = key
        place = try query.place(of: key, EncodedMap(documentFields: document.fields))
      }
      return true
    }
  }

  /// Returns the ID after which the next page starts, or `nil` at the end.
  private func listByName(
    _ collection: ResourcePath, _ reader: inout SnapshotReader, _ responseBytes: () -> Int,
    _ found: (FoundDocument) throws -> Void
  ) throws -> [UInt8]? {
    var scan: DocumentIterator?
    if let row = try reader.collection(collection) {
      scan = try DocumentIterator(
        reader.snapshot, collection: row.number, from: after.map(DocumentIterator.Start.after) ?? .beginning,
        at: readTime.version)
    }
    var parents: SubtreeSegments?
    if request.showMissing {
      parents = try SubtreeSegments(reader.snapshot, below: collection, after: after, at: readTime.version)
    }
    var document = try scan?.next()
    var parent = try parents?.next()
    var last: [UInt8] = []
    while document != nil || parent != nil {
      if count == limit || max(bytes, responseBytes()) >= Self.pageBytesMax { return last }
      var id: [UInt8] = []
      if document != nil { scan?.appendID(to: &id) }
      var isMissing = document == nil
      if let parent, let order = document.map({ _ in ResourceID.compare(parent, id) }) { isMissing = order == .less }
      if isMissing, let parent { id = parent }
      let key = DocumentKey(uncheckedPath: collection.appending(id))
      lastKey = key
      try found(FoundDocument(key: key, stored: isMissing ? nil : document))
      last = id
      count += 1
      if parent == id { parent = try parents?.next() }
      if !isMissing {
        bytes += document?.fields.count ?? 0
        document = try scan?.next()
      }
    }
    return nil
  }
}
