package import DocumentModel
package import DocumentStore
package import KeyValue

/// The results of a query, pulled in slices.
package protocol QueryResults: AnyObject {
  /// Calls `found` per result until it returns `false`, the slice did about `units` of work, or there are no more.
  ///
  /// Each slice may have a snapshot of its own; all show one version. A result's fields are valid during the call, and
  /// its key had better not be kept beyond it: its memory is used again.
  func slice(
    _ snapshot: any KeyValueSnapshot, units: Int, _ found: (DocumentKey, StoredDocument) throws -> Bool) throws
  /// Whether there are no more results.
  var isAtEnd: Bool { get }
  /// Documents that were passed over for the offset so far.
  var skipped: Int { get }
  /// What was read so far.
  var work: QueryCost { get }
  /// The plan in a stable text form, the outermost step first.
  var planText: String { get }
  /// The indexes that are read.
  var indexesUsed: [ExplainMetrics.IndexUse] { get }
}

extension ResolvedQuery {
  /// Plans the query on a snapshot, to show the state at `version`, which must be readable on every snapshot it gets.
  package func results(
    _ snapshot: any KeyValueSnapshot, at version: Int64, _ options: PlanOptions = PlanOptions()
  ) throws -> any QueryResults {
    guard let search = query.findNearest else { return try QueryExecution(self, snapshot, at: version, options) }
    return try NearestExecution(self, search, snapshot, at: version, options)
  }
}

extension QueryExecution: QueryResults {
  /// The text of ``plan``.
  package var planText: String { plan.description }
  /// The indexes that ``plan`` reads.
  package var indexesUsed: [ExplainMetrics.IndexUse] { plan.indexesUsed(reading: options.required, search: nil) }
}

extension String {
  /// The lines of a plan, each indented by a level, below a step.
  func indented(below step: String) -> String {
    step + split(separator: "\n", omittingEmptySubsequences: false).map { "\n  " + $0 }.joined()
  }
}
