package import DocumentModel

/// The request of Rollback.
package struct RollbackRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.RollbackRequest"
  package private(set) var transaction = TransactionID(bytes: [])

  /// Names no transaction.
  package init() {}

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "transaction") {
      transaction = TransactionID(bytes: try field.bytes())
    } else {
      field.ignore("database")
      field.ignore("request_options")
    }
  }
}

/// A response without fields: of Rollback and DeleteDocument (`google.protobuf.Empty`).
package struct EmptyMessage: EncodableMessage {
  /// Creates the message.
  package init() {}

  package func append(to out: inout some MessageWriter) throws(WireError) {}
}
