package import DocumentModel

/// The request of BatchWrite.
package struct BatchWriteRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.BatchWriteRequest"
  package private(set) var writes: [Write] = []

  /// Writes nothing.
  package init() {}

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "writes") {
      try field.append(to: &writes)
    } else {
      field.ignore("database")
      field.ignore("labels")
      field.ignore("request_options")
    }
  }
}

/// The response of BatchWrite.
package struct BatchWriteResponse: EncodableMessage {
  /// A `google.rpc.Status`. Success has no code.
  package typealias WriteStatus = (code: Int, message: String)?

  private let outcomes: [(result: WriteResult, status: WriteStatus)]

  /// Creates the response with the outcomes of the writes, in order.
  package init(_ outcomes: [(result: WriteResult, status: WriteStatus)]) { self.outcomes = outcomes }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    try out.list(1, "writeResults", outcomes) { (outcome, out) throws(WireError) in try out.message(outcome.result) }
    out.list(2, "status", outcomes) { outcome, out in
      out.message { out in
        guard let status = outcome.status else { return }
        out.field(1, "code")
        out.number(status.code)
        out.field(2, "message")
        out.string(status.message)
      }
    }
  }
}
