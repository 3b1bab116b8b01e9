package import LogEngine
package import SharedLog
import Synchronization

/// The newest entries of the log at the node that owns the project, for the streams to the other nodes.
///
/// An entry is *readable* when the reads of this node show it. Only readable entries are sent, in order: otherwise another
/// node could show a commit before the owner does. The newest ``bytesMax`` of entries are kept.
package final class EntryFeed: Sendable {
  /// The entries after a sequence.
  package enum Reading: Sendable, Equatable {
    case entries([SharedEntry])
    /// The feed does not go back so far. The reader finds the entries in the log.
    case behind
    /// This node does not own the project in the reader's epoch any more.
    case over
  }

  private struct State {
    /// The epoch, or `nil` while this node is not the owner.
    var epoch: UInt64?
    var entries: NewestEntries?
    /// The sequence up to which all entries are readable.
    var readable: UInt64 = 0
    /// Readable sequences after the first one that is not.
    var early: Set<UInt64> = []
    /// The version of the configuration that is in force in this epoch, or `nil` before there is one.
    var configuration: Int64?
    /// Whether other nodes may not read documents themselves.
    var isOwnerOnly = false
    var observers: [Int: @Sendable () -> Void] = [:]
    var lastObserver = 0

    var head: UInt64 { entries?.last.position.sequence ?? 0 }
  }

  private let state = Mutex(State())
  private let bytesMax: Int

  /// Creates an empty feed that keeps about `bytesMax` bytes, and at least the newest entry.
  package init(bytesMax: Int = 16 << 20) { self.bytesMax = bytesMax }

  /// Begins the epoch of a takeover of this node. All entries up to it are readable.
  func begin(with takeover: SharedEntry) {
    let sequence = takeover.position.sequence
    wake { state in
      state = State(
        epoch: takeover.position.epoch, entries: NewestEntries(from: takeover, bytesMax: bytesMax),
        readable: sequence, observers: state.observers, lastObserver: state.lastObserver)
    }
  }

  /// Ends the epoch: every reading is over.
  func end() {
    guard state.withLock({ $0.epoch != nil }) else { return }
    wake { $0.epoch = nil }
  }

  /// Adds an entry that the log has durably and that is not readable yet.
  func append(_ entry: SharedEntry) {
    state.withLock { state in
      guard state.epoch == entry.position.epoch, entry.position.sequence == state.head + 1 else { return }
      state.entries?.append(entry, dropping: state.readable)
    }
  }

  /// Notes that an entry is readable. Entries become readable in any order.
  func noteReadable(_ sequence: UInt64) {
    wake { state in
      guard state.epoch != nil, sequence > state.readable else { return }
      state.early.insert(sequence)
      while state.early.remove(state.readable + 1) != nil { state.readable += 1 }
    }
  }

  /// Notes that a configuration is in force at this node, the owner, which judges by no earlier one any more. With `nil`, no
  /// question is answered until the next call.
  package func setConfiguration(_ version: Int64?) { wake { $0.configuration = version } }

  /// Sets whether only this node, the owner in an epoch, may read documents. Of no effect in another epoch.
  package func setOwnerOnly(_ isOwnerOnly: Bool, in epoch: UInt64) {
    wake { state in
      if state.epoch == epoch { state.isOwnerOnly = isOwnerOnly }
    }
  }

  /// The version that the owner names in place of a configuration while other nodes may not read documents themselves.
  package static let ownerOnly = Int64.max

  private func wake(_ change: (inout State) -> Void) {
    let observers = state.withLock { state in
      change(&state)
      return Array(state.observers.values)
    }
    for observer in observers { observer() }
  }

  // MARK: Reading

  /// The sequence of the newest entry. It may not be readable yet.
  package var head: UInt64 { state.withLock { $0.head } }

  /// The position of the newest entry. It may not be readable yet.
  package var headPosition: LogPosition {
    state.withLock { state in state.entries?.last.position ?? LogPosition() }
  }

  /// The sequence up to which the reads of this node show all entries.
  var readable: UInt64 { state.withLock { $0.readable } }

  /// Whether the reads of this node show the newest entry, or the epoch is over.
  func isReadable(in epoch: UInt64) -> Bool { state.withLock { $0.readable == $0.head || $0.epoch != epoch } }

  /// The epoch in which this node owns the project, or `nil`.
  package var epoch: UInt64? { state.withLock { $0.epoch } }

  /// The version of the configuration that is in force at the owner, or `nil` if it serves nothing yet.
  package var configuration: Int64? { state.withLock { $0.configuration } }

  /// The same, or ``ownerOnly`` if other nodes may not read documents themselves.
  package var announced: Int64? {
    state.withLock { state in state.configuration.map { state.isOwnerOnly ? Self.ownerOnly : $0 } }
  }

  /// Returns readable entries after a sequence, at most about `bytesMax` bytes, but at least one if there is one.
  package func entries(after sequence: UInt64, in epoch: UInt64, bytesMax: Int) -> Reading {
    state.withLock { state in
      guard state.epoch == epoch else { return .over }
      guard let entries = state.entries, sequence >= entries.first - 1, sequence <= state.head else { return .behind }
      var found: [SharedEntry] = []
      var bytes = 0
      var next = sequence + 1
      while next <= state.readable, bytes < bytesMax {
        let entry = entries[next]
        found.append(entry)
        bytes += entry.body.count
        next += 1
      }
      return .entries(found)
    }
  }

  /// Calls `notify` after each change, on any thread, until ``end(_:)``. It must return quickly.
  package func observe(_ notify: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.lastObserver += 1
      state.observers[state.lastObserver] = notify
      return state.lastObserver
    }
  }

  /// Ends an observation.
  package func end(_ observer: Int) { state.withLock { $0.observers[observer] = nil } }
}
