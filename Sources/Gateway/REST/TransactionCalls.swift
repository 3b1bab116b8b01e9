import DatabaseService
import DocumentModel
import DocumentStore
import Transport
import WireFormat

// BeginTransaction, Rollback.
extension RESTDialect {
  func beginTransaction(_ call: RESTCall, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.reply.sendText(404, "Not Found\n") }
    let mode = try decode(request) { (decoder, root) throws(WireError) in
      var mode: TransactionMode?
      guard let root else { return mode }
      var members = try decoder.members(of: root, "google.firestore.v1.BeginTransactionRequest")
      while let (name, value) = members.next() {
        switch name {
        case "options":
          decoder.enter("options")
          mode = try decoder.transactionMode(value)
          decoder.leave()
        case "database", "requestOptions", "request_options": break
        default: throw decoder.unknown(name)
        }
      }
      return mode
    }
    // BeginTransaction without a mode may write; `newTransaction` without one may not.
    let transaction = try service.beginTransaction(mode ?? .readWrite(retrying: nil), in: call.database)
    call.send { json in
      json.key("transaction")
      json.string(Base64.encode(transaction.bytes))
    }
  }

  func rollback(_ call: RESTCall, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.reply.sendText(404, "Not Found\n") }
    let id = try decode(request) { (decoder, root) throws(WireError) in
      var id = TransactionID(bytes: [])
      guard let root else { return id }
      var members = try decoder.members(of: root, "google.firestore.v1.RollbackRequest")
      while let (name, value) = members.next() {
        switch name {
        case "transaction": id = TransactionID(bytes: try decoder.bytes(value, "transaction"))
        case "database", "requestOptions", "request_options": break
        default: throw decoder.unknown(name)
        }
      }
      return id
    }
    try service.rollback(id, in: call.database)
    call.sendEmpty()
  }
}

extension JSONMessageDecoder {
  /// A TransactionOptions message; `nil` where it names no mode.
  func transactionMode(_ value: JSONValue) throws(WireError) -> TransactionMode? {
    var mode: TransactionMode?
    var members = try members(of: value, "google.firestore.v1.TransactionOptions")
    while let (name, value) = members.next() {
      guard mode == nil else { throw alreadySet("mode", name) }
      switch name {
      case "readOnly", "read_only":
        enter("read_only")
        mode = .readOnly(try readTime(value))
        leave()
      case "readWrite", "read_write":
        enter("read_write")
        mode = try readWrite(value)
        leave()
      default: throw unknown(name)
      }
    }
    return mode
  }

  private func readTime(_ value: JSONValue) throws(WireError) -> Timestamp? {
    var time: Timestamp?
    var members = try members(of: value, "google.firestore.v1.TransactionOptions.ReadOnly")
    while let (name, value) = members.next() {
      switch name {
      case "readTime", "read_time": time = try alignedTimestamp(value, "read_time")
      default: throw unknown(name)
      }
    }
    return time
  }

  /// Every transaction is optimistic, and a retry has no locks to inherit: both options are read and let be.
  private func readWrite(_ value: JSONValue) throws(WireError) -> TransactionMode {
    var retried: TransactionID?
    var members = try members(of: value, "google.firestore.v1.TransactionOptions.ReadWrite")
    while let (name, value) = members.next() {
      switch name {
      case "retryTransaction", "retry_transaction":
        let bytes = try bytes(value, "retry_transaction")
        if !bytes.isEmpty { retried = TransactionID(bytes: bytes) }
      case "concurrencyMode", "concurrency_mode":
        _ = try enumeration(
          value, "concurrency_mode", "google.firestore.v1.TransactionOptions.ConcurrencyMode",
          "CONCURRENCY_MODE_UNSPECIFIED", "OPTIMISTIC", "PESSIMISTIC")
      default: throw unknown(name)
      }
    }
    return .readWrite(retrying: retried)
  }
}
