package import DocumentModel

/// The request of RunQuery.
package struct RunQueryRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.RunQueryRequest"
  package private(set) var query: Query
  /// Whether the request has a query.
  private var hasQuery = true
  /// The state to read.
  package var consistency = ConsistencySelector.latest
  /// The transaction to begin and to read in, instead of ``consistency``.
  package var newTransaction: TransactionMode?
  /// The requested metrics of the query; `nil` for none.
  package var explain: ExplainMode?

  /// Requests results of the current state.
  package init(_ query: Query) { self.query = query }

  /// Creates a request whose query is decoded later.
  package init(below parent: ResourcePath) {
    query = Query(parent: parent, collectionID: nil)
    hasQuery = false
  }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "structured_query") {
      query = try field.message(QueryMembers(below: query.parent))
      hasQuery = true
    } else if field.matches(10, "explain_options") {
      explain = try field.message(ExplainOptions())
    } else if try !field.reads(
      at: &consistency, in: &newTransaction, transaction: 5, newTransaction: 6, readTime: 7)
    {
      field.ignore("parent")
      field.ignore("request_options")
    }
  }

  /// Returns the request if it has a structured query.
  ///
  /// - Throws: ``WireError/model(_:)``.
  package func decoded() throws(WireError) -> RunQueryRequest {
    guard hasQuery else { throw .model(.queryNotStructured) }
    return self
  }
}

/// A message of the response of RunQuery.
package struct RunQueryResponse: EncodableMessage {
  private let document: MaskedDocument?
  /// The time of the state that was read.
  private let readTime: Timestamp?
  /// The members that few messages have. A long response has a message for each document, so they are apart.
  private let rare: Rare?

  private final class Rare {
    /// The transaction that the request began.
    let transaction: TransactionID?
    /// The number of documents skipped because of the offset.
    let skippedResults: Int
    /// The metrics of an explained query, in the last message.
    let explainMetrics: ExplainMetrics?

    init(_ transaction: TransactionID?, _ skippedResults: Int, _ explainMetrics: ExplainMetrics?) {
      self.transaction = transaction
      self.skippedResults = skippedResults
      self.explainMetrics = explainMetrics
    }
  }

  /// Creates a message with any of its parts.
  package init(
    _ document: MaskedDocument? = nil, transaction: TransactionID? = nil, readTime: Timestamp? = nil,
    skippedResults: Int = 0, explainMetrics: ExplainMetrics? = nil
  ) {
    self.document = document
    self.readTime = readTime
    let isUsual = transaction == nil && skippedResults == 0 && explainMetrics == nil
    rare = isUsual ? nil : Rare(transaction, skippedResults, explainMetrics)
  }

  /// Creates the usual message: a result, and the time of the state that was read.
  package init(_ document: MaskedDocument, at readTime: Timestamp) {
    self.document = document
    self.readTime = readTime
    rare = nil
  }

  package func append(to out: inout JSONWriter) throws(WireError) {
    guard let document, let readTime, rare == nil else { return try appendMembers(to: &out) }
    try out.reserving { (json) throws(WireError) in
      json.key("document")
      json.beginObject()
      try DocumentJSON.appendMembers(of: document.document, mask: document.mask, to: &json)
      json.endObject()
      json.key("readTime")
      json.timestamp(readTime)
    }
  }

  package func append(to out: inout ProtobufMessageWriter) throws(WireError) { try appendMembers(to: &out) }

  private func appendMembers(to out: inout some MessageWriter) throws(WireError) {
    if let document { try out.message(1, "document", document) }
    if let transaction = rare?.transaction { out.bytes(2, "transaction", transaction.bytes) }
    if let skipped = rare?.skippedResults, skipped > 0 {
      out.field(4, "skippedResults")
      out.number(skipped)
    }
    if let explainMetrics = rare?.explainMetrics { try out.message(11, "explainMetrics", explainMetrics) }
    if let readTime { out.timestamp(3, "readTime", readTime) }
  }
}

// google.firestore.v1.ExplainMetrics
extension ExplainMetrics: EncodableMessage {
  package func append(to out: inout some MessageWriter) throws(WireError) {
    out.message(1, "planSummary") { out in
      out.list(1, "indexesUsed", indexStructs) { members, out in out.structure(members) }
    }
    guard let execution else { return }
    out.message(2, "executionStats") { out in
      out.int64(1, "resultsReturned", Int64(execution.results))
      out.field(3, "executionDuration")
      out.duration(microseconds: execution.microseconds)
      out.int64(4, "readOperations", Int64(execution.readOperations))
      out.field(5, "debugStats")
      out.structure(execution.debugStruct)
    }
  }
}
