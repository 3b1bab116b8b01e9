package import Basics
package import DocumentModel
package import KeyValue
package import WireFormat

/// The reason why a commit, or a read in a transaction, failed. Nothing of the commit was written, except with
/// ``StorageError/outcomeUnknown(path:detail:)``: then it may be found later.
///
/// The service maps each case to a wire code and the documented text (firestore-api.md, sections 7.3, 8.3, 13).
package enum CommitError: Error, Equatable, Sendable {
  /// `exists: true` on a missing document.
  case documentMissing(DocumentKey)
  /// `exists: false` on a document that exists.
  case documentExists(DocumentKey)
  /// `exists: true` on a document that an earlier write of the same commit deleted.
  case existsAfterDelete(DocumentKey)
  /// `exists: false` on a document that an earlier write of the same commit wrote.
  case createAfterWrite(DocumentKey)
  /// `update_time` differs from the version of the stored document, which is 0 if the document does not exist.
  case versionMismatch(DocumentKey, stored: Int64, required: Int64)
  /// `update_time` is later than the document's own, so no client can have read it.
  case updateTimeInFuture(DocumentKey)
  /// Another commit changed something that the transaction read, or the read is so old that the log no longer
  /// reaches it. Names the changed document, or the collection if no more is known. Safe to retry.
  case aborted(conflicting: ResourcePath?)
  /// The transaction was committed, rolled back, or expired.
  case transactionOver(isReadOnly: Bool)
  /// The bytes are not a transaction ID of this database.
  case transactionUnknown
  /// A commit with writes names a read-only transaction.
  case transactionReadOnly
  /// The read time is in the future.
  case readTimeInFuture
  /// The read time is before the creation of the database.
  case readTimeBeforeDatabase
  /// The before-images for the read time have been removed.
  case readTimeTooOld
  /// A name, field or value of a write is invalid, or the resulting document is too large.
  case model(ModelError)
  /// The bytes of a write are malformed.
  case wire(WireError)
  /// The storage engine failed.
  case storage(StorageError)
  /// The authorizer denied the commit, with this text.
  case denied(String)
  /// The authorizer needs more time than the caller's thread has. The database plans the commit on another thread; no
  /// caller gets this error.
  case tooLongForLoop
  /// The documents would exceed the quota of the project.
  case overQuota(QuotaError)
  /// A commit with other writes has the ID of the request.
  case idReused
  /// The queue of waiting commits is full.
  case overloaded(waitingBytesMax: Int)
}
