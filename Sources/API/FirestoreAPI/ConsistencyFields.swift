import DatabaseService
import DocumentModel
import WireFormat

/// The oneof `consistency_selector` of a read: a transaction, a new transaction, or a time. The last one set is
/// used.
struct ConsistencyFields {
  private(set) var consistency = ConsistencySelector.latest
  private(set) var newTransaction: TransactionMode?

  /// Reads in a transaction.
  mutating func set(transaction: [UInt8]) {
    self = ConsistencyFields()
    consistency = .transaction(TransactionID(bytes: transaction))
  }

  /// Reads at a time.
  mutating func set(readTime: Timestamp) {
    self = ConsistencyFields()
    consistency = .readTime(readTime)
  }

  /// Begins a transaction, which is read-only unless the options say otherwise.
  mutating func set(newTransaction options: TransactionOptions) {
    self = ConsistencyFields()
    newTransaction = TransactionMode(options) ?? .readOnly(nil)
  }

  /// Reads a member of a JSON request message.
  ///
  /// - Throws: ``WireError`` if the oneof is already set, or the member does not belong to it.
  mutating func read(_ name: JSONName, _ value: JSONValue, _ decoder: JSONMessageDecoder) throws(WireError) {
    switch name {
    case "transaction", "readTime", "read_time", "newTransaction", "new_transaction": break
    default: throw decoder.unknown(name)
    }
    guard consistency == .latest, newTransaction == nil else {
      throw decoder.alreadySet("consistency_selector", name)
    }
    switch name {
    case "transaction": set(transaction: try decoder.bytes(value, "transaction"))
    case "readTime", "read_time": set(readTime: try decoder.alignedTimestamp(value, "read_time"))
    default:
      decoder.enter("new_transaction")
      set(newTransaction: try decoder.transactionOptions(value))
      decoder.leave()
    }
  }
}

extension TransactionMode {
  /// Creates the mode in transaction options, or `nil` if they contain none. The ID of a retried transaction is not
  /// needed, because the retry inherits no locks.
  init?(_ options: TransactionOptions) {
    switch options.mode {
    case nil: return nil
    case .readOnly(let time)?: self = .readOnly(time)
    case .readWrite(let retried)?: self = .readWrite(retrying: retried.isEmpty ? nil : TransactionID(bytes: retried))
    }
  }
}
