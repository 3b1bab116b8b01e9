import DocumentModel
import QueryEngine

/// Collects the metrics of a query while it runs.
struct ExplainCollector {
  private let mode: ExplainMode
  private var elapsed = Duration.zero

  init(_ mode: ExplainMode) { self.mode = mode }

  /// Whether the query is executed, not only planned.
  var runs: Bool { mode == .analyze }

  /// Runs a part of the query and adds its time.
  mutating func measure<R>(_ body: () throws -> R) rethrows -> R {
    let clock = ContinuousClock()
    let start = clock.now
    defer { elapsed += clock.now - start }
    return try body()
  }

  /// Returns the metrics of a query that was executed or only planned.
  func metrics(
    of results: any QueryResults, plan: String, returned: Int, readOperations: Int
  ) -> ExplainMetrics {
    var metrics = ExplainMetrics(indexesUsed: results.indexesUsed, plan: plan)
    guard mode == .analyze else { return metrics }
    let (seconds, attoseconds) = elapsed.components
    metrics.execution = ExplainMetrics.Execution(
      results: returned, microseconds: max(1, seconds * 1_000_000 + attoseconds / 1_000_000_000_000),
      readOperations: max(1, readOperations), documentsScanned: results.work.documents,
      indexEntriesScanned: results.work.entries)
    return metrics
  }
}
