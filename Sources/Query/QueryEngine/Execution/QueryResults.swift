package import DocumentModel
import DocumentStore
package import KeyValue

/// The results of a query, pulled in slices.
package protocol QueryResults: AnyObject {
  /// Calls `found` for each result until it returns `false`, the slice has done about `units` of work, or no results
  /// are left.
  ///
  /// Each slice may use a different snapshot; all slices show the same version. The fields of a result are valid
  /// only during the call of `found`. Do not keep the key either: its memory is reused.
  /// - Throws: ``StorageError`` if a read fails, ``WireError`` if a stored document is malformed, ``ScratchError`` if
  ///   there is no scratch space for the query, and any error of `found`.
  func slice(
    _ snapshot: any KeyValueSnapshot, units: Int, _ found: (DocumentKey, StoredDocument) throws -> Bool) throws
  /// Whether the query waits for scratch space, so that a slice would do nothing. If so, calls `wake` once, on any
  /// thread, when the next slice can continue, or fails because the query has waited too long.
  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool
  /// Whether all results have been returned.
  var isAtEnd: Bool { get }
  /// The number of results skipped so far because of the offset.
  var skipped: Int { get }
  /// The documents and index entries read so far.
  var work: QueryCost { get }
  /// The plan in a stable text form, the outermost step first.
  var planText: String { get }
  /// The indexes that the plan reads.
  var indexesUsed: [ExplainMetrics.IndexUse] { get }
}

extension ResolvedQuery {
  /// Plans the query on a snapshot, to show the state at `version`. The version must be readable on every snapshot
  /// that the results are given.
  /// - Throws: ``StorageError`` if a read fails.
  package func results(
    _ snapshot: any KeyValueSnapshot, at version: Int64, _ options: PlanOptions = PlanOptions()
  ) throws -> any QueryResults {
    guard let search = query.findNearest else { return try QueryExecution(self, snapshot, at: version, options) }
    return try NearestExecution(self, search, snapshot, at: version, options)
  }
}

extension QueryExecution: QueryResults {
  /// The text form of ``plan``.
  package var planText: String { plan.description }
  /// The indexes that ``plan`` reads.
  package var indexesUsed: [ExplainMetrics.IndexUse] { plan.indexesUsed(reading: options.required, search: nil) }
}

extension String {
  /// Returns `step`, followed by the lines of this plan, each indented by one level.
  func indented(below step: String) -> String {
    step + split(separator: "\n", omittingEmptySubsequences: false).map { "\n  " + $0 }.joined()
  }
}
