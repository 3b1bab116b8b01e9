import DatabaseService
import DocumentModel
import DocumentStore
import Transport

/// One message of a streamed answer, in no dialect yet: RunQuery, RunAggregationQuery and BatchGetDocuments make them.
struct ResponseMessage {
  enum Content {
    /// Only what stands beside it.
    case nothing
    /// A result of a query.
    case document(DocumentKey, StoredDocument)
    /// A document that was asked for by name.
    case found(DocumentKey, StoredDocument)
    /// A name that was asked for and that no document has.
    case missing(DocumentKey)
    /// Numbers over results, by alias.
    case aggregates([(alias: String, value: Value)])
  }

  var content = Content.nothing
  /// The transaction that was opened.
  var transaction: TransactionID?
  /// The moment shown.
  var readTime: Timestamp?
  /// Documents passed over for the offset.
  var skippedResults = 0
  /// What the query tells of itself: in the last message.
  var explainMetrics: ExplainMetrics?
}

/// Makes the messages of an answer, as fast as the client takes them.
protocol ResponseProducer: AnyObject {
  /// Calls `emit` for each message until it returns `false` or there are no more; returns whether there are no more.
  /// What a message borrows is valid during the call of `emit`.
  func produce(_ emit: (ResponseMessage) throws -> Bool) throws -> Bool
}

/// Writes the messages of an answer in one dialect.
protocol ResponseEncoder {
  /// Bytes written since they were last taken.
  var byteCount: Int { get }
  /// Starts the answer.
  mutating func begin()
  /// Writes a message.
  mutating func append(_ message: ResponseMessage) throws
  /// Writes something without a meaning, where the dialect has such a thing, so that a client that is gone is noticed
  /// while nothing is found.
  mutating func idle()
  /// Ends the answer.
  mutating func end()
  /// Ends an answer that was begun and cannot be completed.
  mutating func fail(_ status: Status)
  /// Moves what was written behind `out`.
  mutating func take(into out: inout [UInt8])
  /// Adds the fields that stand behind an answer that ended, or failed.
  func addTrailers(to trailers: inout HeaderWriter)
}

extension ResponseEncoder {
  /// Writes nothing.
  mutating func idle() {}
  /// Adds nothing.
  func addTrailers(to trailers: inout HeaderWriter) {}
}
