/// What a query is to tell of itself (`ExplainOptions`).
package enum ExplainMode: Hashable, Sendable {
  /// Its plan, in place of results.
  case plan
  /// Its results, the plan, and what running it cost.
  case analyze
}

/// What a query tells of itself (`ExplainMetrics`).
package struct ExplainMetrics: Hashable, Sendable {
  /// An index that the plan reads (an item of `PlanSummary.indexes_used`).
  package struct IndexUse: Hashable, Sendable {
    /// `Collection` or `Collection group`.
    package var scope: String
    /// Its fields with their directions, such as `(a ASC, __name__ ASC)`.
    package var properties: String

    /// Names an index.
    package init(scope: String, properties: String) {
      self.scope = scope
      self.properties = properties
    }
  }

  /// What running a query cost (`ExecutionStats`).
  package struct Execution: Hashable, Sendable {
    /// Documents returned; 1 for an aggregation.
    package var results: Int
    /// Time from the plan to the last result, in microseconds, at least 1.
    package var microseconds: Int64
    /// What the service would bill as reads: documents returned or passed over for an offset, at least 1.
    package var readOperations: Int
    /// Documents read from the store.
    package var documentsScanned: Int
    /// Index entries read.
    package var indexEntriesScanned: Int

    /// Joins the numbers.
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

  /// The indexes that are read; never empty.
  package var indexesUsed: [IndexUse]
  /// The plan as text for people: a step a line, the outermost first, each inner one indented.
  package var plan: String
  /// What running it cost; `nil` where it was only planned.
  package var execution: Execution?

  /// Joins the parts.
  package init(indexesUsed: [IndexUse], plan: String, execution: Execution? = nil) {
    self.indexesUsed = indexesUsed
    self.plan = plan
    self.execution = execution
  }
}
