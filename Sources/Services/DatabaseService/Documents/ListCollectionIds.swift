package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// A page of the ids of the collections directly below a document or the root, sorted; for administrators.
  ///
  /// - Parameters:
  ///   - pageSize: the most ids to return; 0 or less for the default.
  ///   - pageToken: what an earlier page ended with.
  /// - Throws: `INVALID_ARGUMENT` for a negative size or a token of another listing.
  package func listCollectionIds(
    below parent: ResourcePath, in id: DatabaseID, as caller: Caller, pageSize: Int = 0, pageToken: [UInt8] = [],
    consistency: ConsistencySelector = .latest
  ) throws -> (ids: [String], nextPageToken: [UInt8]) {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    let database = access.database
    guard pageSize >= 0 else { throw Status(.invalidArgument, "Page size must be nonnegative.") }
    let binding = PageToken.Binding("collections", parent.text)
    let after = try pageToken.isEmpty ? nil : PageToken.position(pageToken, binding)
    let limit = pageSize == 0 ? Self.collectionIDsPerPage : min(pageSize, Self.collectionIDsPerPage)
    return try database.read(consistency) { reader, moment in
      var segments = try SubtreeSegments(reader.snapshot, below: parent, after: after, at: moment.version)
      var ids: [String] = []
      var last: [UInt8] = []
      while let segment = try segments.next() {
        if ids.count == limit { return (ids, PageToken.encode(last, binding)) }
        ids.append(String(decoding: segment, as: UTF8.self))
        last = segment
      }
      return (ids, [])
    }
  }

  /// Tools ask for pages of 2^31 - 1; nobody has this many collections side by side on purpose.
  private static let collectionIDsPerPage = 100_000
}
