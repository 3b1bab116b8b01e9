package import DatabaseService
package import Files
package import RulesEngine

/// Objects in buckets, with security rules: the calls of all APIs for files, one file each.
///
/// 1. A call takes its caller and authorizes it. Only ``CallerFiles`` reaches the store.
/// 2. Reads of metadata are short and run on the caller's thread. Calls that wait for the disk say so: run them on a
///    worker.
/// 3. Calls throw ``FilesError``.
package final class StorageService: Sendable {
  /// The rules of all buckets.
  private let rules: FileRules
  private let files: LazyFileStore
  private let authorizer: StorageAuthorizer
  /// Whether the service key with an ID exists and was not revoked.
  let isCurrentKey: @Sendable (_ id: String) -> Bool

  /// Creates a service.
  ///
  /// - Parameters:
  ///   - documents: evaluates the rules, and commits documents together with an object.
  ///   - project: the project whose documents rules may read, unless the bucket's name contains another project.
  ///   - isCurrentKey: whether the service key with an ID exists and was not revoked. Revoking a key ends the uploads
  ///     that its program began.
  package init(
    store: LazyFileStore, rules: FileRules, documents: FirestoreService, project: String?,
    isCurrentKey: @escaping @Sendable (_ id: String) -> Bool
  ) {
    files = store
    self.isCurrentKey = isCurrentKey
    self.rules = rules
    authorizer = StorageAuthorizer(documents: documents, rules: rules, project: project)
  }

  /// The current time, in microseconds since 1970. Opens the store if this is the first call.
  /// - Throws: the errors of ``LazyFileStore/store()``.
  package func now() throws(FilesError) -> Int64 { try files.store().now }

  /// Rejects callers that are subject to rules if no ruleset is loaded. Every call does so; an API can do it before it
  /// reads the rest of a request.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is one of them.
  package func requireRules(as caller: Caller) throws(FilesError) { _ = try authorizer.access(of: caller, to: "") }

  /// Replaces the rules of all buckets; see ``FileRules/upload(_:)``. On an emulator every caller may do so.
  /// - Throws: ``FilesError/denied(_:)`` if the caller may not administer the server.
  package func setRules(_ ruleset: Ruleset, as caller: Caller) throws(FilesError) {
    do { _ = try authorizer.documents.administrator(caller) } catch { throw .denied(error.message) }
    rules.upload(ruleset)
  }

  /// Counts the files, or returns `nil` if no request has used them yet. Cost: reads all metadata.
  /// - Throws: ``FilesError`` if the store fails.
  package func statistics(as _: Administrator) throws(FilesError) -> FilesStatistics? { try files.opened?.statistics() }

  /// Returns the store as a caller may use it.
  func files(as caller: Caller) throws(FilesError) -> CallerFiles {
    CallerFiles(try files.store(), authorizer, caller)
  }
}
