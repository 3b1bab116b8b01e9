package import DocumentModel
package import DocumentStore
import KeyValue
import QueryEngine

/// What a RunQuery call asks for.
package struct RunQueryRequest: Sendable {
  /// The query.
  package var query: Query
  /// The moment to show.
  package var consistency = ConsistencySelector.latest
  /// The transaction to open and read in, in place of ``consistency``.
  package var newTransaction: TransactionMode?
  /// What the query is to tell of itself; `nil` for nothing.
  package var explain: ExplainMode?

  /// Asks for results as they are now.
  package init(_ query: Query) { self.query = query }
}

/// The answer to a RunQuery call, pulled in slices.
///
/// Every slice takes a snapshot of its own, at one version, so that a slow client holds no snapshot.
package final class RunQueryCursor {
  /// The transaction that was opened, where one was asked for.
  package let transaction: TransactionID?
  /// The moment shown.
  package let readTime: Timestamp

  private let database: DocumentDatabase
  private let results: any QueryResults
  /// How the transaction remembers the query; `nil` where it need not be told the results.
  private var noted: TrackedQuery?
  private var explanation: ExplainCollector?
  private var returned = 0
  private let counters: ServiceCounters

  fileprivate init(
    _ counters: ServiceCounters, _ database: DocumentDatabase, _ results: any QueryResults, _ explain: ExplainMode?, transaction: TransactionID?,
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

  /// Documents passed over for the offset so far.
  package var skipped: Int { results.skipped }

  /// Whether there are no more results; at once where only the plan was asked for.
  package var isAtEnd: Bool { results.isAtEnd || explanation?.runs == false }

  /// What the query tells of itself, once it is at its end; `nil` where it was not asked.
  package var explainMetrics: ExplainMetrics? {
    guard isAtEnd else { return nil }
    return explanation?.metrics(
      of: results, plan: results.planText, returned: returned, readOperations: returned + skipped)
  }

  /// Calls `found` per result until it returns `false`, there are no more, or some hundred microseconds were spent on
  /// the search, so that others get their turn.
  ///
  /// What a result borrows is valid during the call.
  /// - Throws: what `found` throws, and ``CommitError/readTimeTooOld`` when the client took so long that the state it
  ///   began to read is gone.
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
  /// Cost here: the plan, and the proof by the rules. Each result of the cursor costs what the plan says.
  /// - Throws: `INVALID_ARGUMENT` with the documented text for a query that is not legal; `PERMISSION_DENIED` where it
  ///   does not follow from the query that rules grant every document it could find.
  package func runQuery(_ request: RunQueryRequest, in id: DatabaseID, as caller: Caller) throws -> RunQueryCursor {
    let access = try access(to: id, as: caller)
    let database = access.database
    let resolved = try ResolvedQuery(request.query, in: id, edition: database.edition)
    return try database.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      try database.read(opened.map(ConsistencySelector.transaction) ?? request.consistency) { reader, moment in
        try access.authorizer?.allowList(request.query, in: database, at: moment, reader.snapshot)
        try checkIndexes(of: resolved, database, &reader)
        let options = PlanOptions(indexes: try database.indexes(&reader))
        let results = try resolved.results(reader.snapshot, at: moment.readTime.microseconds, options)
        let noted = moment.transaction.flatMap { database.transactions.note(resolved, in: $0) }
        counters.add(to: .queries)
        return RunQueryCursor(
          counters, database, results, request.explain, transaction: opened, readTime: moment.readTime, noted: noted)
      }
    }
  }
}
