package import DocumentModel
import DocumentStore
package import WireFormat

extension FirestoreService {
  /// Returns a page of the IDs of the collections directly below a document or the root, sorted. For administrators.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the size is negative or the token belongs to another listing;
  ///   `PERMISSION_DENIED` if the caller is not an administrator and rules apply.
  package func listCollectionIds(
    _ request: ListCollectionIdsRequest, in id: DatabaseID, as caller: Caller
  ) throws -> ListCollectionIdsResponse {
    let access = try access(to: id, as: caller, creates: false)
    let administrator = try access.administrator()
    guard request.pageSize >= 0 else { throw Status(.invalidArgument, "Page size must be nonnegative.") }
    let binding = PageToken.Binding("collections", request.parent.text)
    let after = try request.pageToken.isEmpty ? nil : PageToken.position(request.pageToken, binding)
    let limit = request.pageSize == 0 ? Self.collectionIDsPerPage : min(request.pageSize, Self.collectionIDsPerPage)
    return try access.read(request.consistency) { snapshot in
      var segments = try snapshot.segments(below: request.parent, after: after, as: administrator)
      var ids: [String] = []
      var last: [UInt8] = []
      while let segment = try segments.next() {
        if ids.count == limit {
          return ListCollectionIdsResponse(ids, nextPageToken: PageToken.encode(last, binding))
        }
        ids.append(String(decoding: segment, as: UTF8.self))
        last = segment
      }
      return ListCollectionIdsResponse(ids, nextPageToken: [])
    }
  }

  /// Tools request pages of 2^31 - 1 IDs. No real database has this many sibling collections.
  private static let collectionIDsPerPage = 100_000
}
