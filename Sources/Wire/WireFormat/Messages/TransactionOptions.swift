package import DocumentModel

/// The members of a `google.firestore.v1.TransactionOptions`.
///
/// The mode is `nil` if the message has none. That means read-write in BeginTransaction and read-only in
/// `new_transaction` (firestore-api.md, section 15).
package struct TransactionOptions: DecodableMessage {
  package static let typeName: StaticString = "google.firestore.v1.TransactionOptions"
  private var mode: TransactionMode?

  /// Creates options without a mode.
  package init() {}

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "read_only") {
      try field.claim("mode", isSet: mode != nil)
      mode = .readOnly(try field.message(ReadOnly()).readTime)
    } else if field.matches(3, "read_write") {
      try field.claim("mode", isSet: mode != nil)
      let retried = try field.message(ReadWrite()).retryTransaction
      mode = .readWrite(retrying: retried.isEmpty ? nil : TransactionID(bytes: retried))
    }
  }

  package func decoded() throws(WireError) -> TransactionMode? { mode }

  private struct ReadOnly: DecodableMessage {
    static let typeName: StaticString = "google.firestore.v1.TransactionOptions.ReadOnly"
    private(set) var readTime: Timestamp?

    mutating func decode(_ field: inout some MessageField) throws(WireError) {
      if field.matches(2, "read_time") { readTime = try field.alignedTimestamp() }
    }
  }

  private struct ReadWrite: DecodableMessage {
    static let typeName: StaticString = "google.firestore.v1.TransactionOptions.ReadWrite"
    private static let concurrencyModes: [StaticString] = ["CONCURRENCY_MODE_UNSPECIFIED", "OPTIMISTIC", "PESSIMISTIC"]
    /// The transaction that this one repeats. A failed attempt holds no locks, so there is nothing to inherit.
    private(set) var retryTransaction: [UInt8] = []

    mutating func decode(_ field: inout some MessageField) throws(WireError) {
      if field.matches(1, "retry_transaction") {
        retryTransaction = try field.bytes()
      } else if field.matches(2, "concurrency_mode", .varint) {
        // All transactions are optimistic, so the mode is validated and ignored.
        _ = try field.enumeration(
          "type.googleapis.com/google.firestore.v1.TransactionOptions.ConcurrencyMode", Self.concurrencyModes)
      }
    }
  }
}

/// The members of a `google.firestore.v1.ExplainOptions`.
struct ExplainOptions: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.ExplainOptions"
  private var mode = ExplainMode.plan

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "analyze", .varint) { mode = try field.bool() ? .analyze : .plan }
  }

  func decoded() throws(WireError) -> ExplainMode { mode }
}
