package import DocumentModel

/// The request of RunAggregationQuery.
package struct RunAggregationQueryRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.RunAggregationQueryRequest"
  /// The query whose results are aggregated.
  package private(set) var query: Query
  /// The aggregations: 1 to 5.
  package private(set) var aggregations: [Aggregation]
  /// Whether the request has a query.
  private var hasQuery = true
  /// The state to read.
  package var consistency = ConsistencySelector.latest
  /// The transaction to begin and to read in, instead of ``consistency``.
  package var newTransaction: TransactionMode?
  /// The requested metrics of the query; `nil` for none.
  package var explain: ExplainMode?

  /// Requests aggregations of the current state.
  package init(_ query: Query, _ aggregations: [Aggregation]) {
    self.query = query
    self.aggregations = aggregations
  }

  /// Creates a request whose query is decoded later.
  package init(below parent: ResourcePath) {
    self.init(Query(parent: parent, collectionID: nil), [])
    hasQuery = false
  }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "structured_aggregation_query") {
      let (query, aggregations) = try field.message(AggregationQueryMembers(below: self.query.parent))
      hasQuery = query != nil
      if let query { self.query = query }
      self.aggregations = aggregations
    } else if field.matches(8, "explain_options") {
      explain = try field.message(ExplainOptions())
    } else if try !field.reads(
      at: &consistency, in: &newTransaction, transaction: 4, newTransaction: 5, readTime: 6)
    {
      field.ignore("parent")
      field.ignore("request_options")
    }
  }

  /// Returns the request if it has a structured query.
  ///
  /// - Throws: ``WireError/model(_:)``.
  package func decoded() throws(WireError) -> RunAggregationQueryRequest {
    guard hasQuery else { throw .model(.aggregationNotStructured) }
    return self
  }
}

/// The response of RunAggregationQuery.
package struct RunAggregationQueryResponse: EncodableMessage {
  /// The values of the aggregations, by alias; empty if the query was only planned.
  private let values: [(alias: String, value: Value)]
  /// The transaction that the request began.
  private let transaction: TransactionID?
  /// The time of the state that was read, or `nil` if the query was only planned.
  private let readTime: Timestamp?
  private let explainMetrics: ExplainMetrics?

  package init(
    _ values: [(alias: String, value: Value)], transaction: TransactionID?, readTime: Timestamp?,
    explainMetrics: ExplainMetrics?
  ) {
    self.values = values
    self.transaction = transaction
    self.readTime = readTime
    self.explainMetrics = explainMetrics
  }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    if !values.isEmpty {
      try out.message(1, "result") { (out) throws(WireError) in
        out.field(2, "aggregateFields")
        try out.map(values)
      }
    }
    if let transaction { out.bytes(2, "transaction", transaction.bytes) }
    if let explainMetrics { try out.message(10, "explainMetrics", explainMetrics) }
    if let readTime { out.timestamp(3, "readTime", readTime) }
  }
}
