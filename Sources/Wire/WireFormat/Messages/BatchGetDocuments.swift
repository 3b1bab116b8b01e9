package import DocumentModel

/// The request of BatchGetDocuments.
package struct BatchGetDocumentsRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.BatchGetDocumentsRequest"
  /// The documents to read, in name order and without duplicates.
  package private(set) var keys: [DocumentKey]
  /// The fields to return, or `nil` for all.
  package var mask: FieldMask?
  /// The state to read.
  package var consistency = ConsistencySelector.latest
  /// The transaction to begin and to read in, instead of ``consistency``.
  package var newTransaction: TransactionMode?

  /// Requests the current state of documents.
  package init(_ keys: [DocumentKey] = []) {
    self.keys = keys
    sortKeys()
  }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "documents") {
      try field.append(to: &keys)
    } else if field.matches(3, "mask") {
      mask = try field.message(DocumentMask())
    } else if try !field.reads(
      at: &consistency, in: &newTransaction, transaction: 4, newTransaction: 5, readTime: 7)
    {
      field.ignore("database")
      field.ignore("request_options")
    }
  }

  package func decoded() throws(WireError) -> BatchGetDocumentsRequest {
    var request = self
    request.sortKeys()
    return request
  }

  private mutating func sortKeys() {
    keys.sort()
    var last: DocumentKey?
    keys.removeAll { key in
      defer { last = key }
      return key == last
    }
  }
}

/// A message of the response of BatchGetDocuments.
package struct BatchGetDocumentsResponse: EncodableMessage {
  /// One requested document.
  package enum Result {
    case found(MaskedDocument)
    /// A document that does not exist, with the name of the documents root.
    case missing(root: [UInt8], DocumentKey)
  }

  private let result: Result?
  /// The transaction that the request began.
  private let transaction: TransactionID?
  /// The time of the state that was read.
  private let readTime: Timestamp?

  package init(_ result: Result? = nil, transaction: TransactionID? = nil, readTime: Timestamp? = nil) {
    self.result = result
    self.transaction = transaction
    self.readTime = readTime
  }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    switch result {
    case nil: break
    case .found(let document): try out.message(1, "found", document)
    case .missing(let root, let key):
      out.field(2, "missing")
      out.documentName(root, key)
    }
    if let transaction { out.bytes(3, "transaction", transaction.bytes) }
    if let readTime { out.timestamp(4, "readTime", readTime) }
  }
}
