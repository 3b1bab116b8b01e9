package import DocumentModel
package import Watch

/// One message of a Listen stream, independent of the protocol (`ListenResponse`; listen-and-webchannel.md, section
/// 1.2).
package enum ListenEvent {
  /// A target is followed from now on (ADD).
  case targetAdded(Int32)
  /// A target has ended (REMOVE): because the client removed it (`nil`), or because of an error.
  case targetRemoved(Int32, cause: Status?)
  /// The client must discard the documents of a target (RESET).
  case targetReset(Int32)
  /// The client has all documents of a target (CURRENT).
  case targetCurrent(Int32, token: [UInt8], readTime: Timestamp)
  /// All events sent so far on the stream are consistent (NO_CHANGE without targets).
  case snapshot(token: [UInt8], readTime: Timestamp)
  /// A document in the initial state of a target. Borrowed: valid only during the call that receives it.
  case found(DocumentKey, StoredDocument, targets: [Int32])
  /// The new state of a document, the targets that it matches, and the targets that it no longer matches.
  case changed(WatchedDocument, targets: [Int32], removedTargets: [Int32])
  /// A document does not exist.
  case deleted(DocumentKey, readTime: Timestamp, removedTargets: [Int32])
  /// A document no longer belongs to targets. Its new state is not sent.
  case removed(DocumentKey, readTime: Timestamp, removedTargets: [Int32])
}
