package import DocumentModel
import DocumentStore
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
  /// The kind of explanation that the client requested, or `nil` for none.
  package let explain: ExplainMode?

  private let access: DatabaseAccess
  private var response: Continuation
  private let results: any QueryResults
  /// The transaction's record of the query; `nil` if it does not need the results.
  private var noted: TrackedQuery?
  private var explanation: ExplainCollector?
  private var returned = 0
  private let counters: ServiceCounters

  fileprivate init(
    _ counters: ServiceCounters, _ access: DatabaseAccess, _ results: any QueryResults, _ explain: ExplainMode?,
    transaction: TransactionID?, _ response: Continuation, noted: TrackedQuery?
  ) {
    self.counters = counters
    self.access = access
    self.response = response
    self.results = results
    self.explain = explain
    explanation = explain.map(ExplainCollector.init)
    self.transaction = transaction
    readTime = response.readTime.timestamp
    self.noted = noted
  }

  /// The number of documents skipped so far because of the offset.
  package var skipped: Int { results.skipped }

  /// Whether all results have been returned. Always `true` if the query is only planned.
  package var isAtEnd: Bool { results.isAtEnd || explanation?.runs == false }

  /// Whether the query waits for scratch space, so that a slice would do nothing. If so, calls `wake` once, on any
  /// thread, when the next slice can continue, or fails because the query has waited too long.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { results.wait(wake) }

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
  ///   `PERMISSION_DENIED` if the newest state no longer allows the response, ``StorageError`` if a read fails,
  ///   ``ScratchError`` if there is no scratch space, and any error of `found`.
  package func slice(_ found: (DocumentKey, StoredDocument) throws -> Bool) throws {
    guard !isAtEnd else { return }
    let before = returned
    defer { access.countReads(returned - before, in: counters) }
    try access.read(again: &response) { snapshot in
      func show(_ key: DocumentKey, _ document: StoredDocument) throws -> Bool {
        returned += 1
        try noted?.returned(key, document)
        return try found(key, document)
      }
      if explanation == nil {
        try snapshot.slice(results, show)
      } else {
        try explanation?.measure { try snapshot.slice(results, show) }
      }
    }
  }
}

/// A checked query that is run again and again, so that its requests share what only depends on the query.
package final class PreparedQuery: Sendable {
  /// The request.
  package let request: RunQueryRequest
  /// The database of the query.
  package let database: DatabaseID
  fileprivate let resolved: ResolvedQuery
  fileprivate let edition: Edition

  /// Checks the query of a request to a database of an edition.
  /// - Throws: ``QueryEngine/QueryError`` if the query is invalid.
  package init(_ request: RunQueryRequest, in database: DatabaseID, _ edition: Edition) throws {
    self.request = request
    self.database = database
    self.edition = edition
    resolved = try ResolvedQuery(request.query, in: database, edition: edition, keepsPlan: true)
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
    try runQuery(request, in: id, as: caller) { edition in
      try ResolvedQuery(request.query, in: id, edition: edition)
    }
  }

  /// Runs a query that was prepared.
  ///
  /// Cost of this call: the proof by the rules, and planning unless the plan of an earlier run is still valid.
  /// - Throws: the errors of ``runQuery(_:in:as:)``.
  package func runQuery(_ query: PreparedQuery, as caller: Caller) throws -> RunQueryCursor {
    try runQuery(query.request, in: query.database, as: caller) { edition in
      if edition == query.edition { return query.resolved }
      return try ResolvedQuery(query.request.query, in: query.database, edition: edition)
    }
  }

  private func runQuery(
    _ request: RunQueryRequest, in id: DatabaseID, as caller: Caller, _ resolve: (Edition) throws -> ResolvedQuery
  ) throws -> RunQueryCursor {
    let access = try access(to: id, as: caller, creates: request.newTransaction != nil)
    try access.requireReads()
    try access.requireExplainable(request.explain)
    let resolved = try resolve(access.edition)
    return try access.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      try access.read(opened.map(ConsistencySelector.transaction) ?? request.consistency) { snapshot in
        let grant = try access.grantQuery(resolved, &snapshot)
        let indexes = try access.indexes(&snapshot)
        try checkIndexes(of: resolved, access.edition, indexes)
        let results = try snapshot.results(grant, indexes)
        let noted = grant.readTime.transaction.flatMap { access.transactions.note(resolved, in: $0) }
        counters.add(to: .queries)
        return RunQueryCursor(
          counters, access, results, request.explain, transaction: opened, grant.response, noted: noted)
      }
    }
  }
}
