package import DocumentModel
import DocumentStore
import KeyEncoding
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
    let access = try access(to: id, as: caller, creates: false)
    // Rules do not cover missing documents.
    let administrator = request.showMissing ? try access.administrator() : nil
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
    var query = request.query
    query.limit = request.pageSize == 0 ? nil : request.pageSize
    if !request.orderBy.isEmpty { query.orders = orders }
    let incarnation = access.incarnation
    return try access.read(request.consistency) { snapshot in
      let grant = try access.grantListing(query, &snapshot)
      if !request.orderBy.isEmpty {
        try checkIndexes(
          of: ResolvedQuery(listing: request.query, orders: orders, after: nil, limit: 1, in: id), access.edition,
          access.indexes(&snapshot))
      }
      let state = (incarnation, try snapshot.lastChange(grant))
      let source: ListDocumentsCursor.Source
      let limit = ListDocumentsCursor.limit(request)
      if orders == [ListDocumentsCursor.byName], let id = request.collectionID {
        source = .scan(request.parent.appending(id), administrator)
      } else {
        // One document more than the page holds shows whether there is a next page.
        let (listed, results) = try snapshot.results(
          grant, orders: orders, after: after, limit: limit + 1, access.indexes(&snapshot))
        source = .query(listed, results)
      }
      return ListDocumentsCursor(
        access, grant, request, orders, after: after, binding, source, limit: limit, state: state)
    }
  }
}

/// A page of a ListDocuments response, produced in slices like those of ``RunQueryCursor``.
///
/// A page ends early when it contains ``pageBytesMax`` of stored documents, or when the response is as long. Deeply
/// nested maps take many times their stored bytes in JSON.
package final class ListDocumentsCursor {
  /// The source of the documents.
  fileprivate enum Source {
    /// A collection in name order, with missing documents for administrators who request them.
    case scan(ResourcePath, DatabaseAdministrator?)
    /// Any other listing.
    case query(ResolvedQuery, any QueryResults)
  }

  fileprivate static let byName = Order(FieldPath(field: "__name__"))
  /// The maximum number of documents in a page, even if the client requests more.
  private static let pageDocumentsMax = 10_000
  /// The maximum size of the stored documents in a page, in bytes, so that the memory of a response is limited.
  private static let pageBytesMax = 8 << 20
  /// The size of the stored documents in a slice of a page in name order, in bytes.
  private static let sliceBytes = 256 << 10

  /// The incarnation of the database and the version of the last change of the collection; 0 without a collection.
  /// Together they identify one state of the collection's documents.
  package let state: (incarnation: UInt64, lastChange: Int64)

  private let access: DatabaseAccess
  private let grant: ListingGrant
  private var response: Continuation
  private let request: ListDocumentsRequest
  private let orders: [Order]
  private let after: [UInt8]?
  private let binding: PageToken.Binding
  private let limit: Int
  private let source: Source
  private var count = 0
  private var bytes = 0
  /// The last document of the page, once the page is full, with its fields if a transaction needs them.
  private var last: (key: DocumentKey, fields: [UInt8])?
  /// The position of the last document of the page, once the page is full.
  private var place: [UInt8]?
  /// The ID of the last document of the slices so far, in name order.
  private var listed: [UInt8]?

  fileprivate init(
    _ access: DatabaseAccess, _ grant: consuming ListingGrant, _ request: ListDocumentsRequest, _ orders: [Order],
    after: [UInt8]?, _ binding: PageToken.Binding, _ source: Source, limit: Int,
    state: (incarnation: UInt64, lastChange: Int64)
  ) {
    self.access = access
    response = grant.response
    self.grant = grant
    self.request = request
    self.orders = orders
    self.after = after
    self.binding = binding
    self.source = source
    self.limit = limit
    self.state = state
  }

  /// The maximum number of documents in a page of a request.
  fileprivate static func limit(_ request: ListDocumentsRequest) -> Int {
    min(request.pageSize == 0 ? Limits.pageSizeDefault : request.pageSize, pageDocumentsMax)
  }

  /// Whether the query waits for scratch space, so that a slice would do nothing. If so, calls `wake` once, on any
  /// thread, when the next slice can continue, or fails because the query has waited too long.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool {
    if case .query(_, let results) = source { results.wait(wake) } else { false }
  }

  /// Calls `found` for each document. After the last slice it returns the token of the next page, or an empty token
  /// at the end. `responseBytes` returns the length of the response so far.
  /// - Throws: ``CommitError/readTimeTooOld`` if the state can no longer be read, `PERMISSION_DENIED` if the newest state
  ///   no longer allows the response, ``StorageError`` if a read fails, ``ScratchError`` if there is no scratch space,
  ///   and any error of `found`.
  package func slice(
    responseBytes: () -> Int = { 0 }, _ found: (FoundDocument) throws -> Void
  ) throws -> [UInt8]? {
    try access.read(again: &response) { snapshot in
      switch source {
      case .query(let query, let results):
        try listOrdered(query, results, snapshot, responseBytes, found)
        guard results.isAtEnd || count > limit else { return nil }
        if count <= limit { place = nil }
      case .scan(let collection, let administrator):
        guard try listByName(collection, administrator, &snapshot, responseBytes, found) else { return nil }
      }
      try note()
      return place.map { PageToken.encode($0, binding) } ?? []
    }
  }

  /// Records the range of the page in the transaction, if the page is part of one.
  private func note() throws {
    guard let transaction = grant.readTime.transaction else { return }
    let start = after.map { after in
      switch source {
      case .scan(let collection, _): SortBound.after(collection.appending(after))
      case .query: SortBound(code: after, isBefore: false)
      }
    }
    var range = QueryRange(
      listing: QueryScope(request.query), orders: orders, from: start, includesMissing: request.showMissing,
      in: access.id)
    if place != nil, let last {
      try last.fields.withUnsafeBytes { try range.end(after: EncodedMap(documentFields: $0), at: last.key.path) }
    }
    access.transactions.note(range, in: transaction)
  }

  /// Continues the page. ``count`` exceeds ``limit`` if a document follows the page.
  private func listOrdered(
    _ query: ResolvedQuery, _ results: any QueryResults, _ snapshot: borrowing GuardedSnapshot,
    _ responseBytes: () -> Int, _ found: (FoundDocument) throws -> Void
  ) throws {
    try snapshot.slice(results) { key, document in
      guard place == nil else {
        count = limit + 1
        return false
      }
      try found(FoundDocument(key: key, stored: document))
      count += 1
      bytes += document.fields.count
      if count == limit || max(bytes, responseBytes()) >= Self.pageBytesMax {
        last = (key, grant.readTime.transaction == nil ? [] : Array(document.fields))
        place = try query.place(of: key, EncodedMap(documentFields: document.fields))
      }
      return true
    }
  }

  /// Continues the page, and sets ``place`` to the ID after which the next page starts. Returns `false` if the page is
  /// not complete.
  private func listByName(
    _ collection: ResourcePath, _ administrator: DatabaseAdministrator?, _ snapshot: inout GuardedSnapshot,
    _ responseBytes: () -> Int, _ found: (FoundDocument) throws -> Void
  ) throws -> Bool {
    let after = listed ?? after
    let sliceEnd = bytes + Self.sliceBytes
    var scan = try snapshot.scan(grant, after: after)
    var parents: SubtreeSegments?
    if let administrator { parents = try snapshot.segments(below: collection, after: after, as: administrator) }
    var document = try scan?.next()
    var parent = try parents?.next()
    while document != nil || parent != nil {
      if count == limit || max(bytes, responseBytes()) >= Self.pageBytesMax {
        place = listed ?? []
        return true
      }
      if bytes >= sliceEnd || snapshot.isReviewSpent { return false }
      var id: [UInt8] = []
      if document != nil { scan?.appendID(to: &id) }
      var isMissing = document == nil
      if let parent, let order = document.map({ _ in ResourceID.compare(parent, id) }) { isMissing = order == .less }
      if isMissing, let parent { id = parent }
      let key = DocumentKey(uncheckedPath: collection.appending(id))
      if !isMissing, let document { try snapshot.check(key, document) }
      // In name order, the position depends on no field.
      last = (key, [])
      try found(FoundDocument(key: key, stored: isMissing ? nil : document))
      listed = id
      count += 1
      if parent == id { parent = try parents?.next() }
      if !isMissing {
        bytes += document?.fields.count ?? 0
        document = try scan?.next()
      }
    }
    return true
  }
}
