package import DocumentModel
package import DocumentStore
package import Watch

/// One message of a Listen stream, in no dialect yet (`ListenResponse`; listen-and-webchannel.md, section 1.2).
package enum ListenEvent {
  /// A target is followed from now on (ADD).
  case targetAdded(Int32)
  /// A target has ended (REMOVE): because the client asked (`nil`), or because of an error.
  case targetRemoved(Int32, cause: Status?)
  /// The client is to forget a target's documents (RESET).
  case targetReset(Int32)
  /// A target is complete (CURRENT).
  case targetCurrent(Int32, token: [UInt8], readTime: Timestamp)
  /// Everything sent so far on the stream is consistent (NO_CHANGE without targets).
  case snapshot(token: [UInt8], readTime: Timestamp)
  /// A document of a target's first state, borrowed for the call that it is given to.
  case found(DocumentKey, StoredDocument, targets: [Int32])
  /// The new state of a document, which targets it belongs to, and which it left.
  case changed(WatchedDocument, targets: [Int32], removedTargets: [Int32])
  /// A document is gone.
  case deleted(DocumentKey, readTime: Timestamp, removedTargets: [Int32])
  /// A document left targets; what became of it is not told.
  case removed(DocumentKey, readTime: Timestamp, removedTargets: [Int32])
}
