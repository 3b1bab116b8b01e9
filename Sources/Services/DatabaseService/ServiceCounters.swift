import Glibc
import Synchronization

/// What a service did since the start. Any thread may count: each has, most of the time, a line of memory to itself, so
/// that counting costs some nanoseconds and no waiting.
package final class ServiceCounters: Sendable {
  /// What is counted.
  package enum Counter: Int, CaseIterable, Sendable {
    case queries, aggregations, documentsRead, rulesAllowed, rulesDenied, listenerResets, transactions
  }

  private static let shards = 16
  /// Two cache lines, which processors fetch together.
  private static let shardStride = 16
  private let counts = InlineArray<256, Atomic<Int>> { _ in Atomic(0) }

  /// Starts at 0.
  init() {}

  /// Adds to a counter.
  func add(_ count: Int = 1, to counter: Counter) {
    // Thread descriptors lie pages apart.
    let spread = (UInt64(UInt(pthread_self())) >> 12) &* 0x9E37_79B9_7F4A_7C15
    let shard = Int(truncatingIfNeeded: spread >> 60)
    counts[shard * Self.shardStride + counter.rawValue].wrappingAdd(count, ordering: .relaxed)
  }

  /// How much was counted.
  package subscript(counter: Counter) -> Int {
    (0..<Self.shards).reduce(0) { $0 &+ counts[$1 * Self.shardStride + counter.rawValue].load(ordering: .relaxed) }
  }
}
