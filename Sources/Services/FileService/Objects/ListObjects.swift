package import DatabaseService
package import Files

/// The names on a page of a listing, sorted by their bytes.
package struct ObjectNamesPage: Sendable {
  package let names: [ObjectName]
  /// The common parts of names up to the delimiter.
  package let prefixes: [String]
  /// The token of the next page, or `nil` on the last page.
  package let nextPageToken: String?

  init(_ page: ObjectPage) {
    names = page.objects.map(\.name)
    prefixes = page.prefixes
    nextPageToken = page.nextPageToken
  }
}

extension StorageService {
  /// Returns the names on a page of a bucket's objects. Rules authorize the list of the prefix without its last slash.
  /// Run it on a worker: it may read many names.
  /// - Throws: ``FilesError/denied(_:)`` if the rules deny it; the errors of ``FileStore/list(_:)``.
  package func listNames(_ listing: ObjectListing, as caller: Caller) throws(FilesError) -> ObjectNamesPage {
    try files(as: caller).listNames(listing)
  }

  /// Returns a page of a bucket's objects, with their metadata. Run it on a worker: it may read many names.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator; the errors of ``FileStore/list(_:)``.
  package func listObjects(_ listing: ObjectListing, as caller: Caller) throws(FilesError) -> ObjectPage {
    try files(as: caller).administrator().list(listing)
  }
}
