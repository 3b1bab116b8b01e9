package import DocumentModel
package import DocumentStore

/// One message of the ordered feed of a whole database.
package enum ChangesEvent {
  /// What a commit did to one document, borrowed for the call that it is given to: the state before it and after it,
  /// `nil` where the document was missing.
  case change(DocumentKey, version: Timestamp, before: StoredDocument?, after: StoredDocument?)
  /// All changes of a commit have been told; `token` is where to go on behind it.
  case commit(token: [UInt8], version: Timestamp)
  /// There is nothing newer: told when that is so for the first time, and every half a minute without a commit.
  case caughtUp(token: [UInt8], version: Timestamp)
}

/// Every commit of a database, in order, once (administrators only): the base of replicas and search indexers.
///
/// Belongs to the loop's thread of its client. Commits are read from the change log as the client takes them, so a slow
/// client costs nothing but its place.
package final class ChangesStream {
  /// Follows a database from behind the commit that `token` names, or with `nil` from now on. `wake` is called, on any
  /// thread, once there is something to pull after ``ListenStream/Progress/waiting``.
  /// - Throws: as ``Service/access(to:as:)``, `PERMISSION_DENIED` for who is no administrator, and where the token is of
  ///   another database, or before-images of commits behind it are gone, `OUT_OF_RANGE`: start afresh then.
  package init(
    _ service: Service, in id: DatabaseID, as caller: Caller, since token: [UInt8]?,
    wake: @escaping @Sendable () -> Void
  ) throws {
    throw Status(.unimplemented, "This version of hearth does not serve the feed of a whole database yet.")
  }

  /// Calls `emit` for each event until it returns `false`. What an event borrows is valid during the call.
  /// - Throws: what `emit` throws, and `OUT_OF_RANGE` where the client was so slow that before-images are gone.
  package func pull(_ emit: (ChangesEvent) throws -> Bool) throws -> ListenStream.Progress { .waiting }

  /// Ends the stream; nothing is told any more, and `wake` is let go.
  package func end() {}
}
