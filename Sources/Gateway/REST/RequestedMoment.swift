import DatabaseService
import DocumentModel
import DocumentStore
import WireFormat

/// The oneof `consistency_selector` of a read: a transaction, a new transaction, or a time.
struct RequestedMoment {
  private(set) var consistency = Consistency.latest
  private(set) var newTransaction: TransactionMode?
  private var isSet = false

  /// Takes a member of a request message.
  /// - Throws: ``WireError`` for a second one, and for a member that is none of the three.
  mutating func read(_ name: JSONName, _ value: JSONValue, _ decoder: JSONMessageDecoder) throws(WireError) {
    switch name {
    case "transaction", "readTime", "read_time", "newTransaction", "new_transaction": break
    default: throw decoder.unknown(name)
    }
    guard !isSet else { throw decoder.alreadySet("consistency_selector", name) }
    isSet = true
    switch name {
    case "transaction": consistency = .transaction(TransactionID(bytes: try decoder.bytes(value, "transaction")))
    case "readTime", "read_time": consistency = .readTime(try decoder.alignedTimestamp(value, "read_time"))
    default:
      decoder.enter("new_transaction")
      newTransaction = TransactionMode(try decoder.transactionOptions(value)) ?? .readOnly(nil)
      decoder.leave()
    }
  }
}
