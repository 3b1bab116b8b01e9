package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Returns a page of the IDs of the collections directly below a document or the root, sorted. For administrators.
  ///
  /// - Parameters:
  ///   - pageSize: the maximum number of IDs; 0 for the default.
  ///   - pageToken: the token that an earlier page returned.
  /// - Throws: `INVALID_ARGUMENT` if the size is negative or the token belongs to another listing;
  ///   `PERMISSION_DENIED` if the caller is not an administrator and rules apply.
  package func listCollectionIds(
    below parent: ResourcePath, in id: DatabaseID, as caller: Caller, pageSize: Int = 0, pageToken: [UInt8] = [],
    consistency: ConsistencySelector = .latest
  ) throws -> (ids: [String], nextPageToken: [UInt8]) {
    let access = try access(to: id, as: caller)
    let administrator = try access.administrator()
    guard pageSize >= 0 else { throw Status(.invalidArgument, "Page size must be nonnegative.") }
    let binding = PageToken.Binding("collections", parent.text)
    let after = try pageToken.isEmpty ? nil : PageToken.position(pageToken, binding)
    let limit = pageSize == 0 ? Self.collectionIDsPerPage : min(pageSize, Self.collectionIDsPerPage)
    return try access.read(consistency) { snapshot in
      var segments = try snapshot.segments(below: parent, after: after, as: administrator)
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

  /// Tools request pages of 2^31 - 1 IDs. No real database has this many sibling collections.
  private static let collectionIDsPerPage = 100_000
}
