import Basics
package import DocumentModel
import DocumentStore
package import KeyValue
import QueryEngine

/// The shared state of the operators of a running pipeline: the moment that it shows, the snapshot of the current
/// slice, and its limits.
package final class PipelineRun {
  package let database: DatabaseID
  /// The version of the documents that the pipeline reads.
  let version: Int64
  /// The time of the request, which `current_timestamp` returns.
  let now: Timestamp
  let indexes: IndexCatalog
  let scratch: ScratchSpace
  /// The name of the documents root and `/`, in UTF-8.
  let root: [UInt8]

  /// The snapshot of the current slice.
  private(set) var snapshot: any KeyValueSnapshot
  /// Checks each document before it becomes a row. The number is that of its source in ``PipelinePlan/sources``.
  private(set) var review: Review?
  /// Whether slices may have a ``review``. If not, an operator may count documents without reading them.
  let isReviewed: Bool
  /// Reads snapshots on other threads, which may then help with a large scan; `nil` if they may not.
  var reads: Reads?
  /// The documents that a scan reads before other threads help.
  var documentsBeforeDivision = ScanDivision.documentsMin
  /// The number of the current slice.
  private(set) var slice = 0
  /// The work that the current slice may still do, in the units of queries.
  var unitsLeft = 0
  /// Whether the pipeline waits for scratch space. If so, calls the closure when it can continue.
  var blocked: ((@escaping @Sendable () -> Void) -> Bool)?
  /// The scratch space of the operators that sort.
  private var scratches: [Scratch] = []
  /// The bytes that operators may hold in memory.
  var heldLimit = PipelineLimits.heldBytesMax
  /// The bytes that operators hold in memory.
  private(set) var heldBytes = 0
  /// The bytes taken from the memory of all pipelines.
  private var sharedBytes = 0
  /// The largest number of bytes held so far.
  private(set) var heldBytesMax = 0
  /// The groups that can be dropped. Their operators refer to this run.
  private struct NotedLookup { weak var lookup: SubpipelineLookup? }
  private var lookups: [NotedLookup] = []
  /// The documents and index entries read so far.
  var work = QueryCost()
  private var seed: UInt64

  /// A function that throws if the caller may not see a document. A document that does not exist is `nil`.
  /// Returns whether the slice may continue.
  package typealias Review = (_ source: Int, DocumentKey, StoredDocument?) throws -> Bool

  /// A function that calls `body` with a snapshot on which the version of the pipeline can be read.
  package typealias Reads = @Sendable (_ body: (any KeyValueSnapshot) throws -> Void) throws -> Void

  init(
    in database: DatabaseID, at version: Int64, now: Timestamp, _ snapshot: any KeyValueSnapshot,
    _ indexes: IndexCatalog, _ scratch: ScratchSpace, isReviewed: Bool, seed: UInt64
  ) {
    self.isReviewed = isReviewed
    self.database = database
    self.version = version
    self.now = now
    self.snapshot = snapshot
    self.indexes = indexes
    self.scratch = scratch
    self.seed = seed
    root = database.documentsRootBytes + [UInt8(ascii: "/")]
  }

  deinit { finish() }

  // MARK: Slices

  func begin(_ snapshot: any KeyValueSnapshot, units: Int, _ review: Review?) throws(ScratchError) {
    self.snapshot = snapshot
    self.review = review
    slice += 1
    unitsLeft = units
    blocked = nil
    for scratch in scratches { try scratch.begin() }
  }

  func end() {
    review = nil
    for scratch in scratches { scratch.pause() }
  }

  /// Frees the scratch space and the memory. The pipeline cannot continue.
  func finish() {
    for scratch in scratches { scratch.end() }
    scratches = []
    memory.give(sharedBytes)
    sharedBytes = 0
  }

  /// Returns scratch space for one sort. Give it back with ``free(_:)``.
  func makeScratch() -> Scratch {
    let scratch = Scratch(self.scratch)
    scratches.append(scratch)
    return scratch
  }

  func free(_ scratch: Scratch) {
    scratch.end()
    scratches.removeAll { $0 === scratch }
  }

  /// Returns a number that starts the random numbers of one stage.
  func nextSeed() -> UInt64 {
    seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return seed ^ seed >> 29
  }

  // MARK: Limits

  /// The memory of all pipelines that share the budget.
  private var memory: MemoryShare { scratch.budget.pipelineMemory }
  /// The bytes taken from ``memory`` at once.
  private static let shareBytes = 1 << 20

  /// Counts bytes that an operator keeps. If there is no room, the groups of lookups are dropped first.
  /// - Throws: ``PipelineError`` if the pipeline, or all pipelines together, hold too much. The bytes are not counted.
  func hold(_ bytes: Int) throws(PipelineError) {
    if holdIfPossible(bytes) { return }
    for lookup in lookups { lookup.lookup?.drop(self) }
    if holdIfPossible(bytes) { return }
    guard heldBytes + bytes <= heldLimit else {
      throw PipelineError("The pipeline holds more than \(heldLimit) bytes of data in memory.", .resourceExhausted)
    }
    throw PipelineError("All pipelines together hold too much data in memory; try again later.", .resourceExhausted)
  }

  /// Notes groups that the run may drop if another operator needs their memory.
  func note(_ lookup: SubpipelineLookup) { lookups.append(NotedLookup(lookup: lookup)) }

  func release(_ bytes: Int) { heldBytes -= bytes }

  /// Counts bytes as ``hold(_:)`` does, unless they are too many. Returns whether it counted them.
  func holdIfPossible(_ bytes: Int) -> Bool {
    guard bytes <= 0 || heldBytes + bytes <= heldLimit else { return false }
    while heldBytes + bytes > sharedBytes {
      guard memory.take(Self.shareBytes) else { return false }
      sharedBytes += Self.shareBytes
    }
    heldBytes += bytes
    heldBytesMax = max(heldBytesMax, heldBytes)
    return true
  }

  /// The memory of the groups of one stage, in bytes.
  var groupBytesMax: Int { min(PipelineLimits.groupBytesMax, scratch.budget.limits.queryMemoryBytesMax) }

  /// Whether the client has set a limit of memory, which applies to sorts and groups too: they do not continue in a
  /// temporary file.
  var hasClientLimit: Bool { heldLimit < PipelineLimits.heldBytesMax }

  /// Counts the memory of a row if it is large.
  /// - Throws: ``PipelineError`` if the pipeline, or all pipelines together, hold too much.
  @inline(__always)
  func keep(_ row: PipelineRow) throws(PipelineError) {
    if row.capacity > Self.smallRowBytes || row.held > 0 { try count(row) }
  }

  private func count(_ row: PipelineRow) throws(PipelineError) {
    let change = row.capacity - row.held
    guard change != 0 else { return }
    try hold(change)
    row.held = row.capacity
  }

  /// The memory of a row that is not counted.
  private static let smallRowBytes = 64 << 10
}

/// The values from which other threads make runs of the same pipeline.
struct RunTemplate: Sendable {
  let database: DatabaseID
  let version: Int64
  let now: Timestamp
  let indexes: IndexCatalog
  let scratch: ScratchSpace
  let reads: PipelineRun.Reads

  /// Returns a new run, for the calling thread.
  func run(_ snapshot: any KeyValueSnapshot) -> PipelineRun {
    PipelineRun(
      in: database, at: version, now: now, snapshot, indexes, scratch, isReviewed: false,
      seed: UInt64.random(in: .min ... .max))
  }
}

extension PipelineRun {
  /// The template of this run, or `nil` if other threads may not help: documents are reviewed, or the client limits the
  /// memory.
  var template: RunTemplate? {
    guard let reads, !isReviewed, !hasClientLimit else { return nil }
    return RunTemplate(
      database: database, version: version, now: now, indexes: indexes, scratch: scratch, reads: reads)
  }
}
