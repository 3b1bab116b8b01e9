import DatabaseService
import DocumentModel
import Transport

/// A message of a streamed response to RunQuery, RunAggregationQuery or BatchGetDocuments, independent of its
/// encoding.
struct ResponseMessage {
  enum Content {
    /// The message contains only the other fields.
    case nothing
    /// A result of a query.
    case document(DocumentKey, StoredDocument)
    /// A document that was requested by name.
    case found(DocumentKey, StoredDocument)
    /// A requested name without a document.
    case missing(DocumentKey)
    /// The values of aggregations, by alias.
    case aggregates([(alias: String, value: Value)])
  }

  var content = Content.nothing
  /// The transaction that the request began.
  var transaction: TransactionID?
  /// The time of the state that was read.
  var readTime: Timestamp?
  /// The number of documents skipped because of the offset.
  var skippedResults = 0
  /// The metrics of an explained query, in the last message.
  var explainMetrics: ExplainMetrics?
}

/// A producer of the messages of a response, as fast as the client reads them.
protocol ResponseProducer: AnyObject {
  /// Calls `emit` for each message until it returns `false` or no messages are left. Returns whether none are left.
  /// The values that a message borrows are valid only during the call of `emit`.
  func produce(_ emit: (ResponseMessage) throws -> Bool) throws -> Bool
}

/// An encoder of a response's messages in one format.
protocol ResponseEncoder {
  /// The number of encoded bytes that were not taken yet.
  var byteCount: Int { get }
  /// Begins the response.
  mutating func begin()
  /// Encodes a message.
  mutating func append(_ message: ResponseMessage) throws
  /// Writes something without meaning, if the format allows it, so that a disconnected client is noticed during a
  /// long search.
  mutating func idle()
  /// Ends the response.
  mutating func end()
  /// Ends a response that has begun but cannot be completed.
  mutating func fail(_ status: Status)
  /// Appends the encoded bytes to `out` and removes them.
  mutating func take(into out: inout [UInt8])
  /// Adds the trailer fields of a response that has ended or failed.
  func addTrailers(to trailers: inout HeaderWriter)
}

extension ResponseEncoder {
  /// Writes nothing.
  mutating func idle() {}
  /// Adds nothing.
  func addTrailers(to trailers: inout HeaderWriter) {}
}
