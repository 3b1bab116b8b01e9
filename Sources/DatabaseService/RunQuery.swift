package import DocumentModel
package import DocumentStore
import KeyValueStore
import QueryEngine

/// What a RunQuery call asks for.
package struct RunQueryRequest: Sendable {
  /// The query.
  package var query: Query
  /// The moment to show.
  package var consistency = Consistency.latest
  /// The transaction to open and read in, in place of ``consistency``.
  package var newTransaction: TransactionMode?
  /// What the query is to tell of itself; `nil` for nothing.
  package var explain: ExplainMode?

  /// Asks for results as they are now.
  package init(_ query: Query) { self.query = query }
}

/// The answer to a RunQuery call, pulled result by result from one snapshot.
package final class RunQueryCursor {
  /// The transaction that was opened, where one was asked for.
  package let transaction: TransactionID?
  /// The moment shown.
  package let readTime: Timestamp

  private let snapshot: any KeyValueSnapshot
  private let results: any QueryResults
  private let note: (DocumentKey, StoredDocument) throws -> Void
  private var explanation: Explanation?
  private var returned = 0
  private var isAtEnd = false

  fileprivate init(
    _ snapshot: any KeyValueSnapshot, _ results: any QueryResults, _ explain: ExplainMode?,
    transaction: TransactionID?, readTime: Timestamp, note: @escaping (DocumentKey, StoredDocument) throws -> Void
  ) {
    self.snapshot = snapshot
    self.results = results
    explanation = explain.map(Explanation.init)
    self.transaction = transaction
    self.readTime = readTime
    self.note = note
  }

  deinit { snapshot.end() }

  /// Documents passed over for the offset so far.
  package var skipped: Int { results.skipped }

  /// What the query tells of itself, once ``next()`` came to the end; `nil` where it was not asked.
  package var explainMetrics: ExplainMetrics? {
    guard isAtEnd else { return nil }
    return explanation?.metrics(
      of: results, plan: results.planText, returned: returned, readOperations: returned + skipped)
  }

  /// The next result, or `nil` at the end; at once where only the plan was asked for.
  ///
  /// Its fields are valid until the next one is asked for, as long as the cursor.
  package func next() throws -> (key: DocumentKey, document: StoredDocument)? {
    guard !isAtEnd, let result = try pull() else {
      isAtEnd = true
      return nil
    }
    returned += 1
    try note(result.key, result.document)
    return result
  }

  private func pull() throws -> (key: DocumentKey, document: StoredDocument)? {
    guard let explanation else { return try results.next() }
    guard explanation.runs else { return nil }
    return try self.explanation?.measure { try results.next() } ?? nil
  }
}

extension Service {
  /// Runs a query.
  ///
  /// Cost here: the plan. Each result of the cursor costs what the plan says.
  /// - Throws: `INVALID_ARGUMENT` with the documented text for a query that is not legal.
  package func runQuery(_ request: RunQueryRequest, in id: DatabaseID) throws -> RunQueryCursor {
    let database = try database(id)
    let resolved = try ResolvedQuery(request.query, in: id)
    try checkIndexes(of: resolved, database)
    let opened = try request.newTransaction.map { try beginTransaction($0, in: id) }
    let consistency = opened.map(Consistency.transaction) ?? request.consistency
    let moment = try database.read(consistency) { _, moment in moment }
    let snapshot = try database.store.snapshot()
    do {
      // The cursor keeps a snapshot of its own; what was committed since the moment is masked by reading at it.
      var reader = DocumentReader(snapshot)
      let version = moment.readTime.microseconds
      let isUnchanged = try reader.lastVersion() <= version
      let results = try resolved.results(snapshot, at: isUnchanged ? nil : version)
      let transactions = database.transactions
      return RunQueryCursor(
        snapshot, results, request.explain, transaction: opened, readTime: moment.readTime
      ) { key, document in
        guard let transaction = moment.transaction else { return }
        try transactions.noteReads([(key, document.updateVersion)], in: transaction)
        try transactions.noteListing(of: key.collection, in: transaction)
      }
    } catch {
      snapshot.end()
      throw error
    }
  }
}
