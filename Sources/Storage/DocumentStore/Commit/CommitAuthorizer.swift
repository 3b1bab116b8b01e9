package import DocumentModel
package import KeyValue

/// Decides whether a commit is allowed. The caller sets it as ``CommitRequest/authorizer``.
package protocol CommitAuthorizer: Sendable {
  /// The approximate memory it holds while the commit waits, in bytes.
  var bytes: Int { get }

  /// Authorizes a commit, given all documents that it names.
  ///
  /// Called on the caller's thread with a snapshot. If a document that the decision depends on changes before the
  /// commit is written, it is called again on the writer's thread with the open write transaction. Returns the
  /// version of each other document that it read, 0 for a missing document.
  ///
  /// If `isOnLoop` is `true`, the caller's thread must not be held for long. An authorizer that would need more than a
  /// few milliseconds throws ``CommitError/tooLongForLoop``, and is called again on another thread.
  /// - Throws: ``CommitError/denied(_:)`` if the commit is not allowed.
  func authorize(
    _ documents: [ProposedDocument], requestTime: Timestamp, isInTransaction: Bool, isOnLoop: Bool,
    _ snapshot: any KeyValueSnapshot
  ) throws(CommitError) -> [(key: DocumentKey, version: Int64)]
}

/// One document of a commit, before and after it.
package struct ProposedDocument: Sendable {
  package var key: DocumentKey
  /// The fields before the commit, or `nil` if the document does not exist.
  package var before: EncodedFields?
  /// The fields after all writes, with masks and transforms applied, or `nil` if the document does not exist then.
  package var after: EncodedFields?
  /// The commit's writes to the document, in order. Never empty.
  package var writes: [Write]
}
