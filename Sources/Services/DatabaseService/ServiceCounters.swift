import Glibc
import Synchronization

/// Counters of a service since its start. Any thread may count. Most of the time each thread has a cache line of its
/// own, so counting takes some nanoseconds without waiting.
package final class ServiceCounters: Sendable {
  /// The counted events.
  package enum Counter: Int, CaseIterable, Sendable {
    case queries, aggregations, documentsRead, rulesAllowed, rulesDenied, listenerResets, transactions
  }

  private static let shards = 16
  /// The number of counters in two cache lines, which processors fetch together.
  private static let shardStride = 16
  private let counts = InlineArray<256, Atomic<Int>> { _ in Atomic(0) }

  init() {}

  /// Adds to a counter.
  func add(_ count: Int = 1, to counter: Counter) {
    // The descriptors of different threads are on different pages.
    let spread = (UInt64(UInt(pthread_self())) >> 12) &* 0x9E37_79B9_7F4A_7C15
    let shard = Int(truncatingIfNeeded: spread >> 60)
    counts[shard * Self.shardStride + counter.rawValue].wrappingAdd(count, ordering: .relaxed)
  }

  /// The value of a counter. Cost: one read for each of the 16 shards.
  package subscript(counter: Counter) -> Int {
    (0..<Self.shards).reduce(0) { $0 &+ counts[$1 * Self.shardStride + counter.rawValue].load(ordering: .relaxed) }
  }
}
