import Dispatch
package import KeyValue
import LogEngine
import Synchronization

/// Digests of the replica, to be compared with those of other nodes.
extension ClusterMember {
  /// Computes the digest of the replica when it shows exactly the log up to a sequence, which may be the present one.
  ///
  /// Blocks the calling thread. Commits wait while snapshots are taken, usually less than a millisecond. The snapshot of a
  /// store is kept until it is read, so meanwhile its data file reuses none of the pages that change. One call at a time.
  /// - Parameters:
  ///   - milliseconds: the longest wait for the position.
  ///   - progress: is called from time to time, with the bytes that were read. If it returns `false`, the call ends.
  /// - Throws: ``StorageError`` if the replica cannot be read.
  package func digest(
    at sequence: UInt64, milliseconds: Int, progress: (_ bytes: Int) -> Bool
  ) throws(StorageError) -> DigestOutcome {
    let stop = LogStop(at: sequence)
    install(stop)
    let deadline = DispatchTime.now() + .milliseconds(milliseconds)
    var isWanted = true
    repeat {
      // Without commits, nobody else arrives.
      applying.async { [self] in arriveIfIdle(at: stop) }
      isWanted = progress(0)
    } while isWanted && !stop.waitForArrival(until: min(deadline, .now() + Self.lookInterval))
      && DispatchTime.now() < deadline
    var snapshots: Result<ReplicaSnapshots?, StorageError> = .success(nil)
    let reached = stop.run { if isWanted { snapshots = takeSnapshots(at: sequence) } }
    // Commits pass without a look at it from here on.
    end(stop)
    guard isWanted else { return .cancelled }
    if let reached {
      if case .success(let taken?) = snapshots { taken.end() }
      return reached == 0 ? .notReached(replica.applied.sequence) : .passed(reached)
    }
    guard let taken = try snapshots.get() else { return .passed(replica.applied.sequence) }
    return try taken.digest(progress: progress).map { .digest($0) } ?? .cancelled
  }

  /// The time between two looks whether the replica is at the position.
  private static let lookInterval = DispatchTimeInterval.milliseconds(50)

  /// Takes snapshots, or returns `nil` if they may show something else than the log up to a sequence: an epoch that ends can
  /// bring entries of another owner while a writer of this node halts.
  private func takeSnapshots(at sequence: UInt64) -> Result<ReplicaSnapshots?, StorageError> {
    guard isStill else { return .success(nil) }
    let taken: ReplicaSnapshots
    do throws(StorageError) { taken = try ReplicaSnapshots(of: replica) } catch { return .failure(error) }
    guard isStill, taken.position.sequence == sequence, replica.applied.sequence == sequence else {
      taken.end()
      return .success(nil)
    }
    return .success(taken)
  }

  /// Whether no entry is being applied, and none that this node appended waits for its store.
  private var isStill: Bool {
    !isApplying.load(ordering: .sequentiallyConsistent) && unpublished.load(ordering: .sequentiallyConsistent) == 0
      && replica.isWhole
  }

  /// Arrives at the position of the replica, unless a writer is appending: it arrives itself. Runs on `applying`, which halts.
  private func arriveIfIdle(at stop: LogStop) {
    turn.withLockIfAvailable { _ in
      guard isStill else { return }
      let reached = replica.applied.sequence
      if reached >= stop.sequence { stop.arrive(at: reached) }
    }
  }

  private func install(_ stop: LogStop) {
    logStop.withLock { $0 = stop }
    stopSequence.store(stop.sequence, ordering: .sequentiallyConsistent)
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
