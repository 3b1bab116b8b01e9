import Basics
package import DocumentModel
import DocumentStore
import KeyValue
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
  /// The documents and index entries read so far.
  var work = QueryCost()
  private var seed: UInt64

  /// A function that throws if the caller may not see a document. A document that does not exist is `nil`.
  /// Returns whether the slice may continue.
  package typealias Review = (_ source: Int, DocumentKey, StoredDocument?) throws -> Bool

  init(
    in database: DatabaseID, at version: Int64, now: Timestamp, _ snapshot: any KeyValueSnapshot,
    _ indexes: IndexCatalog, _ scratch: ScratchSpace, seed: UInt64
  ) {
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
    Self.memory.give(sharedBytes)
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

  /// The memory of all pipelines of the process.
  private static let memory = MemoryShare(bytesMax: PipelineLimits.processBytesMax)
  /// The bytes taken from ``memory`` at once.
  private static let shareBytes = 1 << 20

  /// Counts bytes that an operator keeps.
  /// - Throws: ``PipelineError`` if the pipeline, or all pipelines together, hold too much.
  func hold(_ bytes: Int) throws(PipelineError) {
    heldBytes += bytes
    heldBytesMax = max(heldBytesMax, heldBytes)
    while heldBytes > sharedBytes {
      guard Self.memory.take(Self.shareBytes) else {
        throw PipelineError("All pipelines together hold too much data in memory; try again later.", .resourceExhausted)
      }
      sharedBytes += Self.shareBytes
    }
    guard heldBytes <= heldLimit else {
      throw PipelineError("The pipeline holds more than \(heldLimit) bytes of data in memory.", .resourceExhausted)
    }
  }

  func release(_ bytes: Int) { heldBytes -= bytes }

  /// Counts the memory of a row if it is large.
  /// - Throws: ``PipelineError`` if the pipeline, or all pipelines together, hold too much.
  @inline(__always)
  func keep(_ row: PipelineRow) throws(PipelineError) {
    if row.capacity > Self.smallRowBytes || row.held > 0 { try count(row) }
  }

  private func count(_ row: PipelineRow) throws(PipelineError) {
    let change = row.capacity - row.held
    guard change != 0 else { return }
    row.held = row.capacity
    try hold(change)
  }

  /// The memory of a row that is not counted.
  private static let smallRowBytes = 64 << 10
}
