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

  /// Asks for numbers as they are now.
  package init(_ query: Query, _ aggregations: [Aggregation]) {
    self.query = query
    self.aggregations = aggregations
  }
}

/// The answer to a RunAggregationQuery call.
package struct AggregationOutcome: Sendable {
  /// The numbers by alias, in the order asked.
  package var values: [(alias: String, value: Value)]
  /// The transaction that was opened, where one was asked for.
  package var transaction: TransactionID?
  /// The moment shown.
  package var readTime: Timestamp
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
    let opened = try request.newTransaction.map { try beginTransaction($0, in: id) }
    return try database.read(opened.map(Consistency.transaction) ?? request.consistency) { reader, moment in
      if let transaction = moment.transaction {
        database.transactions.note(resolved, aggregated: aggregations.compactMap(\.field), in: transaction)
      }
      let values = try AggregationExecution.run(aggregations, over: resolved, reader.snapshot, at: moment.version)
      return AggregationOutcome(
        values: zip(aggregations.map(\.alias), values).map { ($0, $1) }, transaction: opened,
        readTime: moment.readTime)
    }
  }

  /// Aggregations of one call.
  private static let aggregationsMax = 5
}
