import DocumentModel
import QueryEngine

/// Watches a query run, for what it then tells of itself.
struct ExplainCollector {
  private let mode: ExplainMode
  private var elapsed = Duration.zero

  init(_ mode: ExplainMode) { self.mode = mode }

  /// Whether results are to be computed.
  var runs: Bool { mode == .analyze }

  /// Runs a piece of the query and counts its time.
  mutating func measure<R>(_ body: () throws -> R) rethrows -> R {
    let clock = ContinuousClock()
    let start = clock.now
    defer { elapsed += clock.now - start }
    return try body()
  }

  /// What the query tells after it ran, or was planned only.
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
