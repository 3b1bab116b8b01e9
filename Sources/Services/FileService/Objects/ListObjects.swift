package import DatabaseService
package import Files

extension StorageService {
  /// Returns a page of a bucket's objects. Rules authorize the list of the prefix without its last slash. Run it on a
  /// worker: it may read many names.
  /// - Throws: ``FilesError/denied(_:)`` if the rules deny it; the errors of ``FileStore/list(_:)``.
  package func listObjects(_ listing: ObjectListing, as caller: Caller) throws(FilesError) -> ObjectPage {
    try files(as: caller).list(listing)
  }
}
