package import DocumentModel
package import KeyValue

/// Decides whether a commit may happen: whoever asks for one puts it into ``CommitRequest/judge``.
package protocol CommitAuthorizer: Sendable {
  /// About how much memory it holds while the commit waits, in bytes.
  var bytes: Int { get }

  /// Judges a commit by all the documents it names.
  ///
  /// Called on the caller's thread with a snapshot, and once more on the writer's thread, with the write transaction of
  /// the moment, where one of the documents changed that the first judgement rests on. Returns the version of each
  /// other document that was looked at; 0 where it was missing.
  /// - Throws: ``CommitError/denied(_:)`` where the commit may not happen.
  func authorize(
    _ documents: [ProposedDocument], requestTime: Timestamp, isInTransaction: Bool, _ snapshot: any KeyValueSnapshot
  ) throws(CommitError) -> [(key: DocumentKey, version: Int64)]
}

/// One document of a commit, as the commit finds it and as it would leave it.
package struct ProposedDocument: Sendable {
  /// Where it is.
  package var key: DocumentKey
  /// Its fields before the commit; `nil` where it is missing.
  package var before: EncodedFields?
  /// Its fields after all writes, with masks and transforms applied; `nil` where there is no document then.
  package var after: EncodedFields?
  /// The commit's writes to it, in order; never empty.
  package var writes: [Write]
}
