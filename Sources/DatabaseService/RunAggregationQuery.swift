package import DocumentModel
package import DocumentStore
import QueryEngine

/// What a RunAggregationQuery call asks for.
package struct RunAggregationQueryRequest: Sendable {
  /// The query whose results are aggregated.
  package var query: Query
  /// What is computed; 1 to 5.
  package var aggregations: [Aggregation]
  /// The moment to show.
  package var consistency = Consistency.latest
  /// The transaction to open and read in, in place of ``consistency``.
  package var newTransaction: TransactionMode?
  /// What the query is to tell of itself; `nil` for nothing.
  package var explain: ExplainMode?

  /// Asks for numbers as they are now.
  package init(_ query: Query, _ aggregations: [Aggregation]) {
    self.query = query
    self.aggregations = aggregations
  }
}

/// The answer to a RunAggregationQuery call.
package struct AggregationOutcome: Sendable {
  /// The numbers by alias, in the order asked; none where only the plan was asked for.
  package var values: [(alias: String, value: Value)]
  /// The transaction that was opened, where one was asked for.
  package var transaction: TransactionID?
  /// The moment shown.
  package var readTime: Timestamp
  /// What the query tells of itself; `nil` where it was not asked.
  package var explain: ExplainMetrics?
}

extension Service {
  /// Computes numbers over the results of a query.
  ///
  /// Cost: a pass over the query's results.
  /// - Throws: `INVALID_ARGUMENT` for no or too many aggregations, an alias twice, or a query that is not legal.
  package func runAggregationQuery(
    _ request: RunAggregationQueryRequest, in id: DatabaseID
  ) throws -> AggregationOutcome {
    let database = try database(id)
    let aggregations = request.aggregations
    guard (1...Self.aggregationsMax).contains(aggregations.count) else {
      throw Status(
        .invalidArgument,
        "An aggregation query must have 1 to \(Self.aggregationsMax) aggregations, not \(aggregations.count).")
    }
    guard Set(aggregations.map { Array($0.alias.utf8) }).count == aggregations.count else {
      throw Status(.invalidArgument, "The aliases of an aggregation query must differ.")
    }
    let resolved = try ResolvedQuery(request.query, in: id, aggregated: aggregations.compactMap(\.field))
    try checkIndexes(of: resolved, aggregated: aggregations.compactMap(\.field), database)
    let opened = try request.newTransaction.map { try beginTransaction($0, in: id) }
    return try database.read(opened.map(Consistency.transaction) ?? request.consistency) { reader, moment in
      let execution = try AggregationExecution(aggregations, over: resolved, reader.snapshot, at: moment.version)
      var outcome = AggregationOutcome(values: [], transaction: opened, readTime: moment.readTime)
      var explanation = request.explain.map(Explanation.init)
      if explanation?.runs ?? true {
        let values = try explanation?.measure { try execution.run() } ?? execution.run()
        outcome.values = zip(aggregations.map(\.alias), values).map { ($0, $1) }
      }
      let read = max(execution.results.work.entries, execution.results.work.documents)
      outcome.explain = explanation?.metrics(
        of: execution.results, plan: execution.planText, returned: 1,
        readOperations: (read + Self.entriesPerReadOperation - 1) / Self.entriesPerReadOperation)
      return outcome
    }
  }

  /// Index entries that an aggregation reads for one read operation of the service's bill.
  private static let entriesPerReadOperation = 1000

  /// Aggregations of one call.
  private static let aggregationsMax = 5
}
