package import DocumentModel
package import KeyValue
package import WireFormat

/// Why a commit, or a read in a transaction, did not happen. Nothing of it was written.
///
/// The service maps each case to a wire code and the documented text (firestore-api.md, sections 7.3, 8.3, 13).
package enum CommitError: Error, Equatable, Sendable {
  /// `exists: true` on a missing document.
  case documentMissing(DocumentKey)
  /// `exists: false` on a document that is there.
  case documentExists(DocumentKey)
  /// `exists: true` on a document that an earlier write of the same commit deleted.
  case existsAfterDelete(DocumentKey)
  /// `exists: false` on a document that an earlier write of the same commit wrote.
  case createAfterWrite(DocumentKey)
  /// `update_time` names another version than the stored one (0 where the document is missing).
  case versionMismatch(DocumentKey, stored: Int64, required: Int64)
  /// A precondition names an update time that is later than the document's: nobody can have read it.
  case versionAhead(DocumentKey)
  /// Something the transaction read was changed by another commit, or so long ago was it read that nobody can tell.
  /// Names the changed document, or the collection where no more is known. Safe to retry.
  case aborted(conflicting: ResourcePath?)
  /// The transaction was committed, rolled back or ran out of time.
  case transactionOver(isReadOnly: Bool)
  /// The bytes are no transaction id of this database.
  case transactionUnknown
  /// A commit with writes names a read-only transaction.
  case transactionReadOnly
  /// The moment to read at lies in the future.
  case readTimeInFuture
  /// The moment to read at lies before the database came into being.
  case readTimeBeforeDatabase
  /// The before-images of the moment to read at are gone.
  case readTimeTooOld
  /// A name, field or value of a write is not legal, or the result would be too large.
  case model(ModelError)
  /// Bytes of a write are not what they should be.
  case wire(WireError)
  /// The engine failed.
  case storage(StorageError)
  /// Its judge refuses the commit, with this text.
  case denied(String)
  /// More bytes of commits wait than the server holds.
  case overloaded(waitingBytesMax: Int)
}
