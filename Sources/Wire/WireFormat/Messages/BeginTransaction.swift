package import DocumentModel

/// The request of BeginTransaction.
package struct BeginTransactionRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.BeginTransactionRequest"
  /// The kind of transaction. Without options it is read-write; with `new_transaction` of a read it is read-only.
  package private(set) var mode = TransactionMode.readWrite(retrying: nil)

  /// Begins a read-write transaction.
  package init() {}

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "options") {
      mode = try field.message(TransactionOptions()) ?? .readWrite(retrying: nil)
    } else {
      field.ignore("database")
      field.ignore("request_options")
    }
  }
}

/// The response of BeginTransaction.
package struct BeginTransactionResponse: EncodableMessage {
  private let transaction: TransactionID

  package init(_ transaction: TransactionID) { self.transaction = transaction }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    out.bytes(1, "transaction", transaction.bytes)
  }
}
