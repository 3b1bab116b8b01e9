package import DocumentModel
import DocumentStore
import QueryEngine
package import WireFormat

/// The response to a RunAggregationQuery request.
package struct AggregationOutcome: Sendable {
  /// The values by alias, in the order of the request; empty if the query was only planned.
  package var values: [(alias: String, value: Value)]
  /// The transaction that the request began, if any.
  package var transaction: TransactionID?
  /// The time of the state that was read.
  package var readTime: Timestamp
  /// The metrics of the query, if requested.
  package var explain: ExplainMetrics?
}

/// A running RunAggregationQuery, executed in slices like ``RunQueryCursor``.
package final class RunAggregationQueryCursor {
  private let access: DatabaseAccess
  private var response: Continuation
  private let aliases: [String]
  private let execution: AggregationExecution
  /// The pass that precedes the aggregation if the results must be reviewed.
  private let reviewed: (any QueryResults)?
  private var explanation: ExplainCollector?
  private var outcome: AggregationOutcome

  fileprivate init(
    _ access: DatabaseAccess, _ aliases: [String], _ execution: AggregationExecution, _ explain: ExplainMode?,
    _ outcome: AggregationOutcome, _ response: Continuation, reviewed: (any QueryResults)?
  ) {
    self.access = access
    self.response = response
    self.reviewed = reviewed
    self.aliases = aliases
    self.execution = execution
    explanation = explain.map(ExplainCollector.init)
    self.outcome = outcome
  }

  /// Whether the query waits for scratch space, so that a slice would do nothing. If so, calls `wake` once, on any
  /// thread, when the next slice can continue, or fails because the query has waited too long.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { execution.wait(wake) }

  /// Works for some hundred microseconds. Returns the response after the last slice, otherwise `nil`.
  /// - Throws: ``CommitError/readTimeTooOld`` if the state can no longer be read, ``StorageError`` if a read fails,
  ///   ``ScratchError`` if there is no scratch space.
  package func slice() throws -> AggregationOutcome? {
    if explanation?.runs ?? true {
      let values = try access.read(again: &response) { snapshot -> [Value]? in
        if let reviewed, !reviewed.isAtEnd {
          try snapshot.slice(reviewed) { _, _ in true }
          return nil
        }
        guard explanation != nil else { return try snapshot.slice(execution) }
        return try explanation?.measure { try snapshot.slice(execution) } ?? nil
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

  /// In production, an aggregation that reads this many index entries is billed one read operation.
  private static let entriesPerReadOperation = 1000
}

extension FirestoreService {
  /// Computes aggregations over the results of a query.
  ///
  /// Cost of this call: that of planning. The slices together cost a pass over the query's results.
  /// - Throws: `INVALID_ARGUMENT` if there are no or too many aggregations, an alias occurs twice, or the query is
  ///   invalid; `PERMISSION_DENIED` if the rules deny the query; ``CommitError`` if the state cannot be read.
  package func runAggregationQuery(
    _ request: RunAggregationQueryRequest, in id: DatabaseID, as caller: Caller
  ) throws -> RunAggregationQueryCursor {
    let access = try access(to: id, as: caller, creates: request.newTransaction != nil)
    try access.requireReads(counting: 1)
    try access.requireExplainable(request.explain)
    let aggregations = request.aggregations
    guard !aggregations.isEmpty else { throw Status(.invalidArgument, "Aggregations can not be empty.") }
    guard aggregations.count <= Self.aggregationsMax else {
      throw Status(
        .invalidArgument,
        "The maximum number of aggregations allowed in an aggregation query is \(Self.aggregationsMax). "
          + "Received: \(aggregations.count)")
    }
    var aliases: Set<[UInt8]> = []
    for aggregation in aggregations where !aliases.insert(Array(aggregation.alias.utf8)).inserted {
      throw Status(.invalidArgument, "Aggregation aliases contain duplicate alias: \(aggregation.alias).")
    }
    let fields = aggregations.compactMap(\.field)
    let resolved = try ResolvedQuery(request.query, in: id, edition: access.edition, aggregated: fields)
    return try access.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      try access.read(opened.map(ConsistencySelector.transaction) ?? request.consistency) { snapshot in
        let grant = try access.grantQuery(resolved, &snapshot)
        let indexes = try access.indexes(&snapshot)
        try checkIndexes(of: resolved, aggregated: fields, access.edition, indexes)
        if let transaction = grant.readTime.transaction {
          access.transactions.note(resolved, aggregated: fields, in: transaction)
        }
        let execution = try snapshot.aggregation(aggregations, over: grant, in: access.edition, indexes)
        counters.add(to: .aggregations)
        return RunAggregationQueryCursor(
          access, aggregations.map(\.alias), execution, request.explain,
          AggregationOutcome(values: [], transaction: opened, readTime: grant.readTime.timestamp),
          grant.response, reviewed: try snapshot.reviewed(grant, indexes))
      }
    }
  }

  /// The maximum number of aggregations in one request.
  private static let aggregationsMax = 5
}
