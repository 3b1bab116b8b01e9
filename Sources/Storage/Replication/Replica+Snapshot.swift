import KeyValue
import LogEngine
import Synchronization

/// A replica as the source of a snapshot, and as what a snapshot replaces.
extension Replica {
  /// Whether no store exists and nothing was applied.
  var isNew: Bool { state.withLock { $0.members.isEmpty && $0.applied.sequence == 0 } }

  /// The bytes of the log since the replica was opened.
  var logBytes: Int { state.withLock { $0.logBytes } }

  /// The size of all data files, in bytes. Cost: a few page reads for each store.
  var fileBytes: Int {
    let members = state.withLock { Array($0.members.values) }
    return members.reduce(0) { sum, member in sum + ((try? member.store.fileStatistics().usedBytes) ?? 0) }
  }

  /// The stores, to be copied.
  var sources: [SnapshotWriter.Source] {
    let members = state.withLock { $0.members }
    return members.map { name, member in
      SnapshotWriter.Source(name: name) { [weak self] () throws(StorageError) in
        guard let self else { throw .notOwner(of: name.text, owner: nil) }
        return try member.store.beginCopy(advancing: { self.applied })
      }
    }
  }

  /// Closes all stores, so that their files can be replaced. The replica is empty then; see ``attach(_:)``. With `flushes`,
  /// moves everything to the files first, so that each can be read alone. Nothing is applied meanwhile.
  func detach(flushes: Bool) {
    let (members, applied) = state.withLock { state in
      defer { (state.members, state.applied, state.lastMark) = ([:], LogPosition(), LogPosition()) }
      state.isDetached = true
      return (Array(state.members.values), state.applied)
    }
    for member in members {
      // If a file cannot be written, it stays as after a crash.
      if flushes { try? member.store.close(at: applied) }
      member.store.abandon()
    }
  }
}
