package import DocumentModel
import DocumentStore
import QueryEngine
package import WireFormat

/// A running PartitionQuery, executed in slices like ``RunQueryCursor``.
package final class PartitionQueryCursor {
  private let access: DatabaseAccess
  private let sampler: PartitionSampler
  /// The pass that precedes the sampling if the results must be reviewed.
  private let reviewed: (any QueryResults)?
  private var response: Continuation
  private let first: Int
  private let pageSize: Int
  private let binding: PageToken.Binding

  fileprivate init(
    _ access: DatabaseAccess, _ sampler: PartitionSampler, _ response: Continuation, reviewed: (any QueryResults)?,
    first: Int, pageSize: Int, _ binding: PageToken.Binding
  ) {
    self.access = access
    self.sampler = sampler
    self.reviewed = reviewed
    self.response = response
    self.first = first
    self.pageSize = pageSize
    self.binding = binding
  }

  /// Whether the query waits for scratch space, so that a slice would do nothing. If so, calls `wake` once, on any
  /// thread, when the next slice can continue, or fails because the query has waited too long.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { sampler.wait(wake) }

  /// Works for some hundred microseconds. Returns the response after the last slice, otherwise `nil`.
  /// - Throws: ``CommitError/readTimeTooOld`` if the state can no longer be read, ``StorageError`` if a read fails,
  ///   ``ScratchError`` if there is no scratch space.
  package func slice() throws -> PartitionQueryResponse? {
    let cuts = try access.read(again: &response) { snapshot -> [DocumentKey]? in
      guard let reviewed, !reviewed.isAtEnd else { return try snapshot.slice(sampler) }
      try snapshot.slice(reviewed) { _, _ in true }
      return nil
    }
    guard let cuts else { return nil }
    let page = cuts.dropFirst(first).prefix(pageSize)
    let next = PartitionPlace(first: first + page.count, version: response.readTime.timestamp.microseconds)
    return PartitionQueryResponse(
      Array(page), in: access.id,
      nextPageToken: next.first < cuts.count ? PageToken.encode(next.bytes, binding) : [])
  }
}

extension FirestoreService {
  /// Finds names that divide the results of a query into parts of similar size, for clients that read them in
  /// parallel.
  ///
  /// All pages of one request show the same state, as long as the history reaches back to it. Cost of this call:
  /// that of planning. The slices of each page together cost a pass over the query's results.
  /// - Throws: `INVALID_ARGUMENT` if the query is not just a collection group in name order, or if the count, size
  ///   or token is invalid; `PERMISSION_DENIED` if the rules deny the query, whose names the cuts reveal.
  package func partitionQuery(
    _ request: PartitionQueryRequest, in id: DatabaseID, as caller: Caller
  ) throws -> PartitionQueryCursor {
    let access = try access(to: id, as: caller, creates: false)
    let group = try Self.group(request)
    let query = try ResolvedQuery(request.query, in: id, edition: access.edition)
    let cutsMax = Int(min(request.partitionCount, Self.partitionsMax))
    let binding = PageToken.Binding("partitions", group, "\(cutsMax)")
    var first = 0
    var consistency = request.consistency
    if !request.pageToken.isEmpty {
      let place = try PartitionPlace(PageToken.position(request.pageToken, binding))
      first = place.first
      consistency = .readTime(Timestamp(uncheckedMicroseconds: place.version))
    }
    return try access.read(consistency) { snapshot in
      let grant = try access.grantQuery(query, &snapshot)
      return PartitionQueryCursor(
        access, try snapshot.sampler(cutsMax: cutsMax, grant), grant.response,
        reviewed: try snapshot.reviewed(grant, access.indexes(&snapshot)), first: first,
        pageSize: request.pageSize == 0 ? cutsMax : request.pageSize, binding)
    }
  }

  /// The maximum number of cuts in one request. Each requires memory for several sampled names.
  private static let partitionsMax: Int64 = 10_000

  /// Returns the ID of the collections.
  /// - Throws: `INVALID_ARGUMENT` if the request cannot be executed.
  private static func group(_ request: PartitionQueryRequest) throws -> String {
    guard request.partitionCount > 0 else {
      throw Status(.invalidArgument, "partition_count must be positive.")
    }
    guard request.pageSize >= 0 else { throw Status(.invalidArgument, "Page size must be nonnegative.") }
    let query = request.query
    guard query.parent.isRoot else {
      throw Status(.invalidArgument, "The parent of a partition query must be the root of the documents.")
    }
    let orders = query.orders
    let isByName = orders.isEmpty || orders == [Order(FieldPath(field: "__name__"))]
    guard let group = query.collectionID, query.includesDescendants, isByName, query.filter == nil,
      query.limit == nil, query.offset == 0, query.start == nil, query.end == nil, query.findNearest == nil
    else {
      throw Status(
        .invalidArgument,
        "A partition query must have one collection with all descendants, ordered by __name__ ascending; "
          + "no filters, other orders, limit, offset, cursors or vector search.")
    }
    return group
  }
}

/// The start of a page: the number of cuts before it, and the version.
private struct PartitionPlace {
  var first: Int
  var version: Int64

  init(first: Int, version: Int64) {
    self.first = first
    self.version = version
  }

  init(_ bytes: [UInt8]) throws {
    guard bytes.count == 16 else { throw ModelError.invalidPageToken }
    let numbers = bytes.withUnsafeBytes { bytes in
      (
        Int64(littleEndian: bytes.loadUnaligned(as: Int64.self)),
        Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
      )
    }
    guard numbers.0 >= 0, numbers.1 >= 0 else { throw ModelError.invalidPageToken }
    (first, version) = (Int(clamping: numbers.0), numbers.1)
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for number in [Int64(first), version] {
      withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }
}
