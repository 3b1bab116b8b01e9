/// The kind of explanation that a client requests for a query (`ExplainOptions`).
package enum ExplainMode: Hashable, Sendable {
  /// The plan instead of results.
  case plan
  /// The results, the plan, and the cost of running it.
  case analyze
}

/// The explanation of a query (`ExplainMetrics`).
package struct ExplainMetrics: Hashable, Sendable {
  /// An index that the plan reads (an item of `PlanSummary.indexes_used`).
  package struct IndexUse: Hashable, Sendable {
    /// `Collection` or `Collection group`.
    package var scope: String
    /// The fields with their directions, such as `(a ASC, __name__ ASC)`.
    package var properties: String

    package init(scope: String, properties: String) {
      self.scope = scope
      self.properties = properties
    }
  }

  /// The cost of running a query (`ExecutionStats`).
  package struct Execution: Hashable, Sendable {
    /// The number of documents returned, or 1 for an aggregation.
    package var results: Int
    /// The time from the plan to the last result, in microseconds; at least 1.
    package var microseconds: Int64
    /// The reads that the hosted service would bill: documents returned or skipped by an offset; at least 1.
    package var readOperations: Int
    /// The number of documents read from the store.
    package var documentsScanned: Int
    /// The number of index entries read.
    package var indexEntriesScanned: Int

    package init(
      results: Int, microseconds: Int64, readOperations: Int, documentsScanned: Int, indexEntriesScanned: Int
    ) {
      self.results = results
      self.microseconds = microseconds
      self.readOperations = readOperations
      self.documentsScanned = documentsScanned
      self.indexEntriesScanned = indexEntriesScanned
    }
  }

  /// The indexes that the plan reads; never empty.
  package var indexesUsed: [IndexUse]
  /// The plan as text, one step per line. The outermost step is first, and each inner step is indented.
  package var plan: String
  /// The cost of running the plan, or `nil` if the query was only planned.
  package var execution: Execution?

  package init(indexesUsed: [IndexUse], plan: String, execution: Execution? = nil) {
    self.indexesUsed = indexesUsed
    self.plan = plan
    self.execution = execution
  }
}
