package import DocumentModel

/// One message of a Listen stream, independent of the protocol (`ListenResponse`; listen-and-webchannel.md, section
/// 1.2).
package enum WatchEvent {
  /// A target is followed from now on (ADD).
  case add(Int32)
  /// A target has ended (REMOVE): because the client removed it (`nil`), or because of an error.
  case remove(Int32, cause: (any Error)?)
  /// The client must discard the documents of a target (RESET).
  case reset(Int32)
  /// The client has all documents of a target (CURRENT).
  case current(Int32, token: [UInt8], readTime: Timestamp)
  /// All events sent so far on the stream are consistent: a snapshot (NO_CHANGE without targets).
  case noChange(token: [UInt8], readTime: Timestamp)
  /// The change of a document in a target. A ``DocumentState/stored(_:)`` document is valid only during the call that
  /// receives the event.
  case document(DocumentKey, DocumentChange<DocumentState>, target: Int32, readTime: Timestamp)
}

/// An error in a request of a listener. The payload is the text that the client receives.
package enum WatchError: Error, Equatable {
  /// The request is not valid.
  case invalidArgument(String)
  /// The request exceeds a limit.
  case resourceExhausted(String)
  /// The client has seen a version that this node does not have. Another node may have it.
  case behind(String)
}
