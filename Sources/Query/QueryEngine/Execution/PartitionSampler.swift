package import DocumentModel
import DocumentStore
package import KeyValue

/// Finds names that cut the results of a query in name order into parts of about one size, in slices.
///
/// One pass over the results: every so-many-th name is kept, and whenever too many are, every second one is let go and
/// the step doubles. Memory is that of the names kept; which ones they are depends on nothing but the results.
package final class PartitionSampler {
  private let execution: QueryExecution
  private let cutsMax: Int
  private let samplesMax: Int
  private var samples: [DocumentKey] = []
  /// A name is kept for every so many results.
  private var step = 1
  private var stepsLeft = 0

  /// Plans a pass that is to find at most `cutsMax` names; see ``ResolvedQuery/results(_:at:_:)``.
  package init(
    _ query: ResolvedQuery, cutsMax: Int, _ snapshot: any KeyValueSnapshot, at version: Int64
  ) throws {
    execution = try QueryExecution(query, snapshot, at: version)
    self.cutsMax = cutsMax
    samplesMax = max(Self.samplesMin, Self.samplesPerCut * (cutsMax + 1))
  }

  /// Kept names for each cut, so that parts differ by few percent.
  private static let samplesPerCut = 16
  private static let samplesMin = 1024

  /// Does about `units` of work. Returns the names in order when that was the last of it: each starts a part, the first
  /// part starts before all of them.
  package func slice(
    _ snapshot: any KeyValueSnapshot, units: Int = QueryExecution.sliceUnits
  ) throws -> [DocumentKey]? {
    try execution.slice(snapshot, units: units) { key, _ in
      if stepsLeft == 0 { keep(key) }
      stepsLeft -= 1
      return true
    }
    guard execution.isAtEnd else { return nil }
    // A cut at the first result would leave an empty part before it.
    let parts = min(cutsMax + 1, samples.count)
    return (1..<max(parts, 1)).map { samples[$0 * samples.count / parts] }
  }

  private func keep(_ key: DocumentKey) {
    samples.append(key)
    if samples.count >= samplesMax {
      samples = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
      step *= 2
    }
    stepsLeft = step
  }
}
