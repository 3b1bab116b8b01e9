package import DocumentModel
package import DocumentStore
import KeyValue
import QueryEngine

/// What a RunAggregationQuery call asks for.
package struct RunAggregationQueryRequest: Sendable {
  /// The query whose results are aggregated.
  package var query: Query
  /// What is computed; 1 to 5.
  package var aggregations: [Aggregation]
  /// The moment to show.
  package var consistency = ConsistencySelector.latest
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

/// A RunAggregationQuery call under way, computed in slices as ``RunQueryCursor`` is.
package final class RunAggregationQueryCursor {
  private let database: DocumentDatabase
  private let aliases: [String]
  private let execution: AggregationExecution
  private var explanation: ExplainCollector?
  private var outcome: AggregationOutcome

  fileprivate init(
    _ database: DocumentDatabase, _ aliases: [String], _ execution: AggregationExecution, _ explain: ExplainMode?,
    _ outcome: AggregationOutcome
  ) {
    self.database = database
    self.aliases = aliases
    self.execution = execution
    explanation = explain.map(ExplainCollector.init)
    self.outcome = outcome
  }

  /// Works for some hundred microseconds; returns the answer when that was all of it.
  /// - Throws: ``CommitError/readTimeTooOld`` when the state it began to read is gone.
  package func slice() throws -> AggregationOutcome? {
    if explanation?.runs ?? true {
      let values = try database.read { reader in
        try database.checkReadable(outcome.readTime.microseconds, &reader)
        let snapshot = reader.snapshot
        func run() throws -> [Value]? { try execution.slice(snapshot, units: QueryExecution.sliceUnits) }
        return try explanation == nil ? run() : explanation?.measure(run) ?? nil
      }
      guard let values else { return nil }
      outcome.values = zip(aliases, values).map { ($0, $1) }
    }
    let read = max(execution.results.work.entries, execution.results.work.documents)
    outcome.explain = explanation?.metrics(
      of: execution.results, plan: execution.planText, returned: 1,
      readOperations: (read + Self.entriesPerReadOperation - 1) / Self.entriesPerReadOperation)
    return outcome
  }

  /// Index entries that an aggregation reads for one read operation of the service's bill.
  private static let entriesPerReadOperation = 1000
}

extension FirestoreService {
  /// Computes numbers over the results of a query.
  ///
  /// Cost here: the plan. The slices together cost a pass over the query's results.
  /// - Throws: `INVALID_ARGUMENT` for no or too many aggregations, an alias twice, or a query that is not legal;
  ///   `PERMISSION_DENIED` as for a query.
  package func runAggregationQuery(
    _ request: RunAggregationQueryRequest, in id: DatabaseID, as caller: Caller
  ) throws -> RunAggregationQueryCursor {
    let access = try access(to: id, as: caller)
    let database = access.database
    let aggregations = request.aggregations
    guard !aggregations.isEmpty else { throw Status(.invalidArgument, "Aggregations can not be empty.") }
    guard aggregations.count <= Self.aggregationsMax else {
      throw Status(
        .invalidArgument,
        "An aggregation query must have 1 to \(Self.aggregationsMax) aggregations, not \(aggregations.count).")
    }
    var aliases: Set<[UInt8]> = []
    for aggregation in aggregations where !aliases.insert(Array(aggregation.alias.utf8)).inserted {
      throw Status(.invalidArgument, "Aggregation aliases contain duplicate alias: \(aggregation.alias).")
    }
    let fields = aggregations.compactMap(\.field)
    let resolved = try ResolvedQuery(request.query, in: id, edition: database.edition, aggregated: fields)
    return try database.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      try database.read(opened.map(ConsistencySelector.transaction) ?? request.consistency) { reader, moment in
        try access.authorizer?.allowList(request.query, in: database, at: moment, reader.snapshot)
        try checkIndexes(of: resolved, aggregated: fields, database, &reader)
        if let transaction = moment.transaction {
          database.transactions.note(resolved, aggregated: fields, in: transaction)
        }
        let execution = try AggregationExecution(
          aggregations, over: resolved, reader.snapshot, at: moment.readTime.microseconds,
          PlanOptions(indexes: try database.indexes(&reader)))
        counters.add(to: .aggregations)
        return RunAggregationQueryCursor(
          database, aggregations.map(\.alias), execution, request.explain,
          AggregationOutcome(values: [], transaction: opened, readTime: moment.readTime))
      }
    }
  }

  /// Aggregations of one call.
  private static let aggregationsMax = 5
}
