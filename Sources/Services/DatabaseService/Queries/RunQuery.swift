package import DocumentModel
package import DocumentStore
import KeyValue
import QueryEngine
package import WireFormat

/// The response to a RunQuery request, in slices.
///
/// Each slice reads the same version on its own snapshot, so that a slow client does not hold a snapshot.
package final class RunQueryCursor {
  /// The transaction that the request began, if any.
  package let transaction: TransactionID?
  /// The time of the state that was read.
  package let readTime: Timestamp

  private let database: DocumentDatabase
  private let results: any QueryResults
  /// The transaction's record of the query; `nil` if it does not need the results.
  private var noted: TrackedQuery?
  private var explanation: ExplainCollector?
  private var returned = 0
  private let counters: ServiceCounters

  fileprivate init(
    _ counters: ServiceCounters, _ database: DocumentDatabase, _ results: any QueryResults, _ explain: ExplainMode?,
    transaction: TransactionID?,
    readTime: Timestamp, noted: TrackedQuery?
  ) {
    self.counters = counters
    self.database = database
    self.results = results
    explanation = explain.map(ExplainCollector.init)
    self.transaction = transaction
    self.readTime = readTime
    self.noted = noted
  }

  /// The number of documents skipped so far because of the offset.
  package var skipped: Int { results.skipped }

  /// Whether all results have been returned. Always `true` if the query is only planned.
  package var isAtEnd: Bool { results.isAtEnd || explanation?.runs == false }

  /// The metrics of the query, once it is at its end; `nil` if they were not requested.
  package var explainMetrics: ExplainMetrics? {
    guard isAtEnd else { return nil }
    return explanation?.metrics(
      of: results, plan: results.planText, returned: returned, readOperations: returned + skipped)
  }

  /// Calls `found` for each result until it returns `false`, no results are left, or some hundred microseconds have
  /// passed, so that others have their turn.
  ///
  /// Data that a result borrows is valid only during the call.
  /// - Throws: ``CommitError/readTimeTooOld`` if the client took so long that the state can no longer be read,
  ///   ``StorageError`` if a read fails, and any error of `found`.
  package func slice(_ found: (DocumentKey, StoredDocument) throws -> Bool) throws {
    guard !isAtEnd else { return }
    let before = returned
    defer { counters.add(returned - before, to: .documentsRead) }
    try database.read { reader in
      try database.checkReadable(readTime.microseconds, &reader)
      let snapshot = reader.snapshot
      func run() throws {
        try results.slice(snapshot, units: QueryExecution.sliceUnits) { key, document in
          returned += 1
          try noted?.returned(key, document)
          return try found(key, document)
        }
      }
      if explanation == nil { try run() } else { try explanation?.measure(run) }
    }
  }
}

extension FirestoreService {
  /// Runs a query.
  ///
  /// Cost of this call: planning, and the proof by the rules. The cost of each result depends on the plan.
  /// - Throws: `INVALID_ARGUMENT` with the documented text if the query is invalid; `PERMISSION_DENIED` if the rules
  ///   cannot be proved to allow every document that the query could find; ``CommitError`` if the state cannot be
  ///   read.
  package func runQuery(_ request: RunQueryRequest, in id: DatabaseID, as caller: Caller) throws -> RunQueryCursor {
    let access = try access(to: id, as: caller)
    let database = access.database
    let resolved = try ResolvedQuery(request.query, in: id, edition: database.edition)
    return try database.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      try database.read(opened.map(ConsistencySelector.transaction) ?? request.consistency) { reader, readTime in
        try access.authorizer?.requireList(request.query, in: database, at: readTime, reader.snapshot)
        try checkIndexes(of: resolved, database, &reader)
        let options = PlanOptions(indexes: try database.indexes(&reader))
        let results = try resolved.results(reader.snapshot, at: readTime.timestamp.microseconds, options)
        let noted = readTime.transaction.flatMap { database.transactions.note(resolved, in: $0) }
        counters.add(to: .queries)
        return RunQueryCursor(
          counters, database, results, request.explain, transaction: opened, readTime: readTime.timestamp, noted: noted)
      }
    }
  }
}
