import Dispatch
import Glibc
package import KeyValue
import LogEngine
import Synchronization

/// Digests of the replica, to be compared with those of other nodes.
extension ClusterMember {
  /// Computes the digest of the replica when it shows exactly the log up to a sequence, which may be the present one.
  ///
  /// Blocks the calling thread. Commits wait while snapshots are taken, usually less than a millisecond. The snapshots are
  /// kept until everything is read, so meanwhile the data files reuse none of the pages that change. One call at a time:
  /// another one ends the first as not reached.
  /// - Parameters:
  ///   - milliseconds: the longest wait for the position.
  ///   - progress: is called after each 64 KiB or so, with the bytes that were read. If it returns `false`, the call ends.
  /// - Throws: ``StorageError`` if the replica cannot be read.
  package func digest(
    at sequence: UInt64, milliseconds: Int, progress: (_ bytes: Int) -> Bool
  ) throws(StorageError) -> DigestOutcome {
    var snapshots: Result<ReplicaSnapshots, StorageError>?
    func takeSnapshots() {
      do throws(StorageError) { snapshots = .success(try ReplicaSnapshots(of: replica)) } catch {
        snapshots = .failure(error)
      }
    }
    func endSnapshots() { if case .success(let taken)? = snapshots { taken.end() } }

    let deadline = DispatchTime.now() + .milliseconds(milliseconds)
    switch begin(at: sequence, until: deadline, takeSnapshots) {
    case .here: break
    case .later(let reached): return .passed(reached)
    case .busy: return .notReached(replica.applied.sequence)
    case .before(let stop):
      let passed = stop.run(until: deadline, takeSnapshots)
      end(stop)
      if let passed {
        endSnapshots()
        return passed == 0 ? .notReached(replica.applied.sequence) : .passed(passed)
      }
    }
    defer { endSnapshots() }
    guard let taken = try snapshots?.get() else { return .notReached(replica.applied.sequence) }
    return try taken.digest(progress: progress).map { .digest($0) } ?? .cancelled
  }

  /// The place of the replica before a wait.
  private enum Start {
    /// It is at the position, and `body` was called.
    case here
    case later(UInt64)
    /// It is before the position, at which it will halt.
    case before(LogStop)
    /// A commit took too long.
    case busy
  }

  /// Looks at the place of the replica while nothing is applied, and no writer appends. A writer that waits for PostgreSQL must
  /// not delay the queue that applies, so this tries again until it has finished.
  private func begin(at sequence: UInt64, until deadline: DispatchTime, _ body: () -> Void) -> Start {
    while true {
      let start = applying.sync {
        turn.withLockIfAvailable { _ -> Start? in
          guard isAllReadable, replica.isWhole else { return nil }
          let reached = replica.applied.sequence
          if reached > sequence { return .later(reached) }
          if reached == sequence {
            body()
            return .here
          }
          return .before(install(LogStop(at: sequence)))
        } ?? nil
      }
      if let start { return start }
      guard DispatchTime.now() < deadline else { return .busy }
      usleep(200)
    }
  }

  /// Whether the reads of this node show everything that it appended.
  private var isAllReadable: Bool { feed.epoch.map { feed.isReadable(in: $0) } ?? true }

  private func install(_ stop: LogStop) -> LogStop {
    logStop.withLock { $0 = stop }
    stopSequence.store(stop.sequence, ordering: .sequentiallyConsistent)
    return stop
  }

  private func end(_ ended: LogStop) {
    logStop.withLock { stop in
      guard stop === ended else { return }
      stop = nil
      stopSequence.store(.max, ordering: .sequentiallyConsistent)
    }
  }

  /// Halts if the replica is to halt at a sequence that it shows now. Cost: one load.
  func haltIfDue(at sequence: UInt64) {
    guard sequence >= stopSequence.load(ordering: .sequentiallyConsistent) else { return }
    logStop.withLock { $0 }?.arrive(at: sequence)
  }
}
