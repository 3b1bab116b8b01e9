package import DocumentModel

/// The options of a transaction (`google.firestore.v1.TransactionOptions`).
package struct TransactionOptions: Equatable, Sendable {
  /// The kind of transaction.
  package enum Mode: Equatable, Sendable {
    /// Only reads, at `readTime` or, if that is `nil`, at the latest version.
    case readOnly(readTime: Timestamp?)
    /// Reads and writes. `retryTransaction` is the ID of the failed attempt that this transaction retries, or
    /// empty.
    case readWrite(retryTransaction: [UInt8])
  }

  /// The mode, or `nil` if the message has none. That means read-write in BeginTransaction and read-only in
  /// `new_transaction` (firestore-api.md, section 15).
  package var mode: Mode?

  package init(mode: Mode?) {
    self.mode = mode
  }
}

extension JSONMessageDecoder {
  /// Decodes a `google.firestore.v1.TransactionOptions`.
  /// - Throws: ``WireError`` if the message is malformed.
  package func transactionOptions(_ value: JSONValue) throws(WireError) -> TransactionOptions {
    var options = TransactionOptions(mode: nil)
    var members = try members(of: value, "google.firestore.v1.TransactionOptions")
    while let (name, content) = members.next() {
      switch name {
      case "readOnly", "read_only", "readWrite", "read_write":
        if options.mode != nil { throw alreadySet("mode", name) }
      default: throw unknown(name)
      }
      switch name {
      case "readOnly", "read_only": options.mode = try readOnly(content)
      default: options.mode = try readWrite(content)
      }
    }
    return options
  }

  private func readOnly(_ value: JSONValue) throws(WireError) -> TransactionOptions.Mode {
    path.enter("read_only")
    var readTime: Timestamp?
    var members = try members(of: value, "google.firestore.v1.TransactionOptions.ReadOnly")
    while let (name, content) = members.next() {
      switch name {
      case "readTime", "read_time": readTime = try alignedTimestamp(content, "read_time")
      default: throw unknown(name)
      }
    }
    path.leave()
    return .readOnly(readTime: readTime)
  }

  private func readWrite(_ value: JSONValue) throws(WireError) -> TransactionOptions.Mode {
    path.enter("read_write")
    var retry: [UInt8] = []
    var members = try members(of: value, "google.firestore.v1.TransactionOptions.ReadWrite")
    while let (name, content) = members.next() {
      switch name {
      case "retryTransaction", "retry_transaction": retry = try bytes(content, "retry_transaction")
      case "concurrencyMode", "concurrency_mode":
        // All transactions are optimistic, so the mode is validated and ignored.
        _ = try enumeration(
          content, "concurrency_mode", "type.googleapis.com/google.firestore.v1.TransactionOptions.ConcurrencyMode",
          "CONCURRENCY_MODE_UNSPECIFIED", "OPTIMISTIC", "PESSIMISTIC")
      default: throw unknown(name)
      }
    }
    path.leave()
    return .readWrite(retryTransaction: retry)
  }
}
