package import DocumentModel

/// The request of Commit. (The store has a `CommitRequest` of its own.)
package struct CommitMessage: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.CommitRequest"
  package private(set) var writes: [Write] = []
  /// The transaction to commit, if any.
  package private(set) var transaction: TransactionID?

  /// Commits nothing.
  package init() {}

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "writes") {
      try field.append(to: &writes)
    } else if field.matches(3, "transaction") {
      // An empty bytes field means absent.
      let bytes = try field.bytes()
      if !bytes.isEmpty { transaction = TransactionID(bytes: bytes) }
    } else {
      field.ignore("database")
      field.ignore("request_options")
    }
  }
}

/// The response of Commit.
package struct CommitResponse: EncodableMessage {
  private let results: [WriteResult]
  private let commitTime: Timestamp?

  /// Creates the response to a commit. A commit without writes has no commit time.
  package init(_ results: [WriteResult], commitTime: Timestamp) {
    self.results = results
    self.commitTime = results.isEmpty ? nil : commitTime
  }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    try out.list(1, "writeResults", results) { (result, out) throws(WireError) in try out.message(result) }
    if let commitTime { out.timestamp(2, "commitTime", commitTime) }
  }
}

// google.firestore.v1.WriteResult, which is empty for a delete.
extension WriteResult: EncodableMessage {
  package func append(to out: inout some MessageWriter) throws(WireError) {
    if let updateTime { out.timestamp(1, "updateTime", updateTime) }
    try out.list(2, "transformResults", transformResults) { (value, out) throws(WireError) in try out.value(value) }
  }
}
