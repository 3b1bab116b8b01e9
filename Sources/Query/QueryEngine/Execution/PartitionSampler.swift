import Basics
package import DocumentModel
import DocumentStore
package import KeyValue

/// Finds names that divide the results of a query in name order into parts of similar size. Works in slices.
///
/// The sampler makes one pass over the results and keeps every n-th name. Whenever it holds too many names, it drops
/// every second one and doubles n. Memory: the names kept, which have a limit in number and in bytes and are counted in
/// the scratch space. The names depend only on the results.
package final class PartitionSampler {
  private let execution: QueryExecution
  private let cutsMax: Int
  private let samplesMax: Int
  private let scratch: Scratch
  private var samples: [DocumentKey] = []
  private var sampleBytes = 0
  /// One name is kept for every `step` results.
  private var step = 1
  private var stepsLeft = 0

  /// Plans a pass that finds at most `cutsMax` names; see ``ResolvedQuery/results(_:at:_:)``.
  /// - Throws: ``StorageError`` if a read fails.
  package init(
    _ query: ResolvedQuery, cutsMax: Int, _ snapshot: any KeyValueSnapshot, at version: Int64,
    _ options: PlanOptions = PlanOptions()
  ) throws {
    execution = try QueryExecution(query, snapshot, at: version, options)
    scratch = Scratch(options.scratch)
    scratch.pause()
    self.cutsMax = cutsMax
    samplesMax = max(Self.samplesMin, Self.samplesPerCut * (cutsMax + 1))
  }

  /// The number of names kept for each cut. With 16, the sizes of the parts differ by a few percent.
  private static let samplesPerCut = 16
  private static let samplesMin = 1024
  /// The largest size of the names kept, in bytes. With longer names, fewer are kept.
  private static let sampleBytesMax = 16 << 20
  /// The memory that a name takes in addition to its bytes.
  private static let nameBytes = 64

  deinit { scratch.end() }

  /// Whether the pass waits for scratch space; see ``QueryResults/wait(_:)``.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { scratch.wait(wake) || execution.wait(wake) }

  /// Does about `units` of work. Returns the names in order after the last slice, otherwise `nil`. Each name starts
  /// a part; the first part starts before all names.
  /// - Throws: ``StorageError`` if a read fails, ``WireError`` if a stored document is malformed, ``ScratchError`` if
  ///   there is no scratch space.
  package func slice(
    _ snapshot: any KeyValueSnapshot, units: Int = QueryExecution.sliceUnits
  ) throws -> [DocumentKey]? {
    try scratch.begin()
    defer { scratch.pause() }
    guard try scratch.cover(sampleBytes) else { return nil }
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
    sampleBytes += key.path.bytes.count + Self.nameBytes
    while samples.count >= samplesMax || (sampleBytes > Self.sampleBytesMax && samples.count > cutsMax) {
      samples = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
      sampleBytes = samples.reduce(0) { $0 + $1.path.bytes.count + Self.nameBytes }
      step *= 2
    }
    stepsLeft = step
  }
}
