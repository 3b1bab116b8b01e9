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
  private let execution: QueryExecution
  /// How the transaction remembers the query; `nil` where it need not be told the results.
  private var noted: NotedQuery?

  fileprivate init(
    _ snapshot: any KeyValueSnapshot, _ execution: QueryExecution, transaction: TransactionID?, readTime: Timestamp,
    noted: NotedQuery?
  ) {
    self.snapshot = snapshot
    self.execution = execution
    self.transaction = transaction
    self.readTime = readTime
    self.noted = noted
  }

  deinit { snapshot.end() }

  /// Documents passed over for the offset so far.
  package var skipped: Int { execution.skipped }

  /// The next result, or `nil` at the end. Its fields are valid as long as the cursor.
  package func next() throws -> (key: DocumentKey, document: StoredDocument)? {
    guard let result = try execution.next() else { return nil }
    try noted?.returned(result.key, result.document)
    return result
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
    let opened = try request.newTransaction.map { try beginTransaction($0, in: id) }
    let consistency = opened.map(Consistency.transaction) ?? request.consistency
    let moment = try database.read(consistency) { _, moment in moment }
    let snapshot = try database.store.snapshot()
    do {
      // The cursor keeps a snapshot of its own; what was committed since the moment is masked by reading at it.
      var reader = DocumentReader(snapshot)
      let version = moment.readTime.microseconds
      let isUnchanged = try reader.lastVersion() <= version
      let execution = try QueryExecution(resolved, snapshot, at: isUnchanged ? nil : version)
      let noted = moment.transaction.flatMap { database.transactions.note(resolved, in: $0) }
      return RunQueryCursor(
        snapshot, execution, transaction: opened, readTime: moment.readTime, noted: noted)
    } catch {
      snapshot.end()
      throw error
    }
  }
}
