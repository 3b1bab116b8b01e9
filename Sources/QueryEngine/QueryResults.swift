package import DocumentModel
package import DocumentStore
package import KeyValueStore

/// The results of a query, pulled one by one from a snapshot.
package protocol QueryResults: AnyObject {
  /// The next result, or `nil` at the end. Its fields are valid until the next one is asked for.
  func next() throws -> (key: DocumentKey, document: StoredDocument)?
  /// Documents that were passed over for the offset so far.
  var skipped: Int { get }
  /// What was read so far.
  var work: QueryWork { get }
  /// The plan in a stable text form, the outermost step first.
  var planText: String { get }
  /// The indexes that are read.
  var indexesUsed: [ExplainMetrics.IndexUse] { get }
}

extension ResolvedQuery {
  /// Starts the query on a snapshot; `version` is `nil` to read what the snapshot shows.
  ///
  /// Documents that lack one of the `required` fields are no results, as if the order named them. With `inOrder` false
  /// the results come in whatever order costs least, where nothing else in the query depends on it.
  package func results(
    _ snapshot: any KeyValueSnapshot, at version: Int64?, requiring required: [FieldPath] = [], inOrder: Bool = true
  ) throws -> any QueryResults {
    guard let search = query.findNearest else {
      return try QueryExecution(self, snapshot, at: version, requiring: required, inOrder: inOrder)
    }
    return try NearestExecution(self, search, snapshot, at: version, requiring: required)
  }
}

extension QueryExecution: QueryResults {
  package var planText: String { plan.description }
  package var indexesUsed: [ExplainMetrics.IndexUse] { plan.indexesUsed(reading: required, search: nil) }
}

extension String {
  /// The lines of a plan, each indented by a level, below a step.
  func indented(below step: String) -> String {
    step + split(separator: "\n", omittingEmptySubsequences: false).map { "\n  " + $0 }.joined()
  }
}
