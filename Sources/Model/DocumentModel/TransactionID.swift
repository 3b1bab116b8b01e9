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
