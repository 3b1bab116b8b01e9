/// The ID of a client's transaction: 24 bytes that other databases do not create by accident.
///
/// The layout is: mode (1), the low seven bytes of a counter (7), read version (8), keyed hash (8). The hash
/// distinguishes an ID that is over from one that never existed, also after a restart, without remembering any.
package struct TransactionID: Hashable, Sendable {
  /// The bytes as sent to the client.
  package let bytes: [UInt8]

  /// Wraps bytes from a client. They are checked when the ID is used.
  package init(bytes: [UInt8]) { self.bytes = bytes }
}

/// The state that a read shows (`consistency_selector`).
package enum ConsistencySelector: Hashable, Sendable {
  /// The newest state.
  case latest
  /// The state that a transaction reads.
  case transaction(TransactionID)
  /// The state at a time.
  case readTime(Timestamp)
}

/// The kind of a new transaction (`TransactionOptions`).
package enum TransactionMode: Hashable, Sendable {
  /// Reads and writes, starting from the newest state. `retrying` is the failed transaction that this one repeats.
  case readWrite(retrying: TransactionID?)
  /// Only reads, at a time or at the newest state.
  case readOnly(Timestamp?)
}
