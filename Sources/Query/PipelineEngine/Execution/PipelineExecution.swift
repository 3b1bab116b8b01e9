package import Basics
package import DocumentModel
package import DocumentStore
package import KeyValue
import QueryEngine
package import WireFormat

/// A pipeline that runs in slices, each on its own snapshot, and shows the same version throughout.
///
/// Between slices it holds no snapshot, only rows that were read ahead or collected. The work of a slice is limited
/// even if it finds no results, so a long pipeline does not block others.
package final class PipelineExecution {
  private let plan: PipelinePlan
  private let run: PipelineRun
  private let root: RowOperator
  /// The number of results so far.
  package private(set) var returned = 0
  /// Whether all results have been returned.
  package private(set) var isAtEnd = false
  private var elapsed = Duration.zero
  private let clock: () -> ContinuousClock.Instant

  /// The work of a slice that does not keep others waiting, in the units of queries.
  package static let sliceUnits = 8192

  /// Builds the operators of a pipeline that shows the state at `version`. The version must be readable on every
  /// snapshot that a slice uses. `now` is the result of `current_timestamp`. `isReviewed` is whether slices may have a
  /// `review`. With `reads`, other threads may help with a scan that is not reviewed, after
  /// `documentsBeforeDivision` documents. `clock` measures the time of
  /// slices.
  /// - Throws: ``PipelineError`` if the plan cannot be built, ``StorageError`` if a read fails.
  package init(
    _ plan: PipelinePlan, in database: DatabaseID, _ snapshot: any KeyValueSnapshot, at version: Int64,
    now: Timestamp, _ indexes: IndexCatalog, _ scratch: ScratchSpace, isReviewed: Bool,
    reads: PipelineRun.Reads? = nil, documentsBeforeDivision: Int? = nil,
    clock: @escaping () -> ContinuousClock.Instant = { ContinuousClock.now }
  ) throws {
    self.plan = plan
    self.clock = clock
    run = PipelineRun(
      in: database, at: version, now: now, snapshot, indexes, scratch, isReviewed: isReviewed,
      seed: UInt64.random(in: .min ... .max))
    run.reads = reads
    if let documentsBeforeDivision { run.documentsBeforeDivision = documentsBeforeDivision }
    run.heldLimit = min(plan.options.heldBytesMax ?? .max, PipelineLimits.heldBytesMax)
    var builder = OperatorBuilder(run)
    root = try builder.build(plan.body, isOutermost: true)
    if plan.options.explain != nil { try root.prepare(run) }
  }

  deinit { run.finish() }

  /// Whether the pipeline waits for scratch space. If so, calls `wake` once, on any thread, when the next slice can
  /// continue, or fails because the pipeline has waited too long.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { run.blocked?(wake) ?? false }

  /// Calls `found` for each result until it returns `false`, the slice has done about `units` of work, or no results
  /// are left. The bytes of a result are valid only during the call.
  ///
  /// `review` is called for each document before it becomes a row. It returns whether the slice may continue.
  /// - Throws: ``PipelineError`` if an expression fails on a row or a limit is exceeded, ``StorageError`` if a read
  ///   fails, ``ScratchError`` if there is no scratch space, and any error of `review` and `found`.
  package func slice(
    _ snapshot: any KeyValueSnapshot, units: Int = sliceUnits, review: PipelineRun.Review? = nil,
    _ found: (PipelineResult) throws -> Bool
  ) throws {
    guard !isAtEnd else { return }
    let start = clock()
    defer { elapsed += clock() - start }
    guard elapsed < .seconds(PipelineLimits.runSecondsMax) else {
      throw PipelineError(
        "The pipeline ran for more than \(PipelineLimits.runSecondsMax) seconds.", .deadlineExceeded)
    }
    try run.begin(snapshot, units: units, review)
    defer { if isAtEnd { run.finish() } else { run.end() } }
    repeat {
      switch try root.step(run) {
      case .paused: return
      case .end: return isAtEnd = true
      case .found:
        returned += 1
        run.unitsLeft -= 2 + root.row.fields.count >> 8
        guard try found(root.row.result) else { return }
      }
    } while run.unitsLeft > 0
  }

  /// The number of documents that the sources have read so far, also those that a stage dropped or combined.
  package var documentsRead: Int { run.work.documents }

  /// Counts memory that the caller keeps until the pipeline ends.
  /// - Throws: ``PipelineError`` if the pipeline, or all pipelines together, hold too much.
  package func hold(_ bytes: Int) throws(PipelineError) { try run.hold(bytes) }

  // MARK: Explanations

  /// The explanation of the pipeline, planned or executed.
  package var explanation: PipelineExplanation {
    PipelineExplanation(
      root: PipelineExplanation.Node(root), results: returned, heldBytesMax: run.heldBytesMax, work: run.work,
      elapsed: elapsed, isExecuted: plan.options.explain == .analyze)
  }
}

extension PipelineRow {
  fileprivate var result: PipelineResult {
    PipelineResult(
      name: hasName ? name.bytes : nil, fields: map, createTime: createTime, updateTime: updateTime,
      readVersion: readVersion)
  }
}
