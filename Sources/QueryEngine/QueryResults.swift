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
  package func results(_ snapshot: any KeyValueSnapshot, at version: Int64?) throws -> any QueryResults {
    guard let search = query.findNearest else { return try QueryExecution(self, snapshot, at: version) }
    return try NearestExecution(self, search, snapshot, at: version)
  }

  /// Starts the query for what is computed over its results: they come in whatever order costs least where nothing
  /// else in the query depends on it, as they are stored, and only those that have all `fields`.
  func results(
    _ snapshot: any KeyValueSnapshot, at version: Int64?, aggregating fields: [FieldPath]
  ) throws -> any QueryResults {
    guard var search = query.findNearest else {
      return try QueryExecution(self, snapshot, at: version, requiring: fields, inOrder: false)
    }
    search.resultField = nil
    return try NearestExecution(self, search, snapshot, at: version, requiring: fields)
  }
}

extension QueryExecution: QueryResults {
  /// The plan in a stable text form, the outermost step first.
  package var planText: String { plan.description }
  /// The indexes that are read.
  package var indexesUsed: [ExplainMetrics.IndexUse] { plan.indexesUsed(reading: required, search: nil) }
}

extension String {
  /// The lines of a plan, each indented by a level, below a step.
  func indented(below step: String) -> String {
    step + split(separator: "\n", omittingEmptySubsequences: false).map { "\n  " + $0 }.joined()
  }
}
