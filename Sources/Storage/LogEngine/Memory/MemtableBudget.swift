import Synchronization

/// The memory of all memtables of a process, which the stores of its databases share.
///
/// Each writer reports the size of its tables after each commit. If the tables that writers fill are together too large,
/// the largest of them is flushed, also if its own writer is idle. Cost of a report: a lock and a look at each store that
/// has commits in memory.
package final class MemtableBudget: Sendable {
  /// The most bytes of the memtables of all databases, those that are being flushed included. At this size, writers wait
  /// for a flush. One transaction may exceed it.
  package static let tablesBytesMax = 48 << 20
  /// The size of the memtables that writers fill at which the largest one is flushed, in bytes, of all databases together.
  package static let filledBytesMax = 24 << 20

  /// The budget of this process.
  package static let shared = MemtableBudget(tablesBytesMax: tablesBytesMax, filledBytesMax: filledBytesMax)

  let tablesBytesMax: Int
  let filledBytesMax: Int
  private let state = Mutex(State())

  private struct State {
    var shares: [ObjectIdentifier: Share] = [:]
    var filledBytes = 0
    var flushingBytes = 0

    /// Adds to the sizes of a store. A store without tables is forgotten.
    mutating func change(_ share: Share, of store: ObjectIdentifier, filled: Int, flushing: Int) {
      var share = share
      share.filledBytes += filled
      share.flushingBytes += flushing
      filledBytes += filled
      flushingBytes += flushing
      shares[store] = share.filledBytes + share.flushingBytes == 0 ? nil : share
    }
  }

  private struct Share {
    var filledBytes = 0
    var flushingBytes = 0
    /// Begins a flush on another thread. Called with the lock held.
    let wake: @Sendable () -> Void
  }

  /// Creates a budget for some stores; see ``tablesBytesMax`` and ``filledBytesMax``.
  package init(tablesBytesMax: Int, filledBytesMax: Int) {
    self.tablesBytesMax = tablesBytesMax
    self.filledBytesMax = filledBytesMax
  }

  /// The bytes that tables may still take. Negative if transactions exceeded the budget.
  package var freeBytes: Int { tablesBytesMax - state.withLock { $0.filledBytes + $0.flushingBytes } }

  /// Whether writers wait.
  var isFull: Bool { freeBytes <= 0 }

  /// Sets the size of the table that a store fills. If the filled tables of all stores are too large, wakes the store
  /// that has the largest, or returns `true` if the caller does.
  func setFilled(_ store: ObjectIdentifier, bytes: Int, wake: () -> @Sendable () -> Void) -> Bool {
    state.withLock { state in
      let share = state.shares[store] ?? Share(wake: wake())
      state.change(share, of: store, filled: bytes - share.filledBytes, flushing: 0)
      guard state.filledBytes > filledBytesMax else { return false }
      // A store that flushes already frees memory soon.
      var largest: (store: ObjectIdentifier, share: Share)?
      for (store, share) in state.shares
      where share.flushingBytes == 0 && share.filledBytes > largest?.share.filledBytes ?? 0 {
        largest = (store, share)
      }
      guard let largest, largest.store != store else { return largest != nil }
      largest.share.wake()
      return false
    }
  }

  /// Notes that a store flushes the table that it has filled.
  func beginFlush(_ store: ObjectIdentifier) {
    state.withLock { state in
      guard let share = state.shares[store] else { return }
      state.change(share, of: store, filled: -share.filledBytes, flushing: share.filledBytes)
    }
  }

  /// Notes that a store has freed the table that it flushed.
  func endFlush(_ store: ObjectIdentifier) {
    state.withLock { state in
      guard let share = state.shares[store] else { return }
      state.change(share, of: store, filled: 0, flushing: -share.flushingBytes)
    }
  }

  /// Forgets a store. After this returns, it is not woken any more.
  func remove(_ store: ObjectIdentifier) {
    state.withLock { state in
      guard let share = state.shares[store] else { return }
      state.change(share, of: store, filled: -share.filledBytes, flushing: -share.flushingBytes)
    }
  }
}
