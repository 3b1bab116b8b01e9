import Glibc

/// The sizes of a ``LoggedStore``.
package struct LoggedStoreSettings: Sendable {
  /// The size of a memtable at which it is flushed, in bytes, if the budget does not flush it earlier.
  package var memtableBytesMax = MemtableBudget.filledBytesMax
  /// The memory of the memtables, which stores share.
  package var budget = MemtableBudget.shared
  /// The number of removed ranges of a memtable at which it is flushed. Each read of a key searches them.
  package var removedRangesMax = 256
  /// The most entries of a range that a transaction removes one by one. A longer range is recorded as a range.
  package var singleRemovalsMax = 64
  /// The most operations of a flush in one transaction of the data file, which holds each page that they change in
  /// memory: about 4 MiB. LMDB keeps the memory of the largest transaction. Smaller transactions also let the log sync
  /// between them.
  package var flushOperationsMax = 1024
  /// The same while no writer needs the room, for less memory and shorter work between two turns of other threads. Each
  /// transaction writes some pages again that another one wrote: about 500 bytes per create more than with 1,024
  /// operations.
  package var quietFlushOperationsMax = 256
  /// The longest time that a writer waits before it begins, while the other memtable is being flushed and the active one
  /// fills too fast, in microseconds. It is the sum of the pauses as they were asked for.
  package var pauseMicrosecondsMax = 100_000
  /// The time without a commit after which the memtables are flushed, in seconds.
  package var idleSeconds = 5.0
  /// The most memory that the batch of a transaction leaves for the next one, in bytes.
  package var batchBytesKept = 4 << 20
  /// Whether the writer flushes a full table itself instead of the store's queue, and no idle one. For tests that simulate crashes.
  package var flushesInline = false
  /// Waits for a number of microseconds.
  package var pause: @Sendable (Int) -> Void = { usleep(UInt32(clamping: $0)) }
  package var log = FileLog.Sizes()

  package init() {}
}
