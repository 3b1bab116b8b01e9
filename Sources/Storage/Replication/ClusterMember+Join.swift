import Dispatch
import Glibc
package import LogEngine
package import SharedLog
import Synchronization

/// The loading of a replica from a snapshot.
package enum JoinEvent: Equatable, Sendable {
  /// It begins. The reason is `nil` if the node has no data files yet.
  case began(ReplicaError?)
  /// So many bytes of a snapshot are loaded. It comes a few times in a second at most.
  case loading(bytes: Int64, of: Int64)
  /// It failed, and is tried again.
  case failed(String)
  /// The replica continues at a position. Former data files with another history are in this folder of the data directory.
  case ended(LogPosition, aside: String?)
}

/// Joining: a node without data files, and one that the log does not continue any more, load the newest snapshot.
extension ClusterMember {
  /// The parts that a member needs to load its replica anew.
  package struct Joining: Sendable {
    package let tables: any SnapshotTables
    package let folder: ReplicaFolder

    package init(tables: any SnapshotTables, folder: ReplicaFolder) {
      self.tables = tables
      self.folder = folder
    }
  }

  /// Loads a snapshot before anything else if the replica is new. Without a snapshot, it continues with the first entry of the
  /// log.
  func joinIfNew() {
    guard joining != nil, replica.isNew else { return }
    state.withLock { beginJoin(after: nil, &$0) }
  }

  /// Begins to load the replica anew after an error. Returns `false` if that is no remedy, or this node cannot.
  func rejoin(after error: ReplicaError, _ state: inout State) -> Bool {
    guard joining != nil, error.isMendedByLoading else { return false }
    // Entries that wait to be applied are not, because the failure is final.
    state.failure = error
    beginJoin(after: error, &state)
    return true
  }

  private func beginJoin(after error: ReplicaError?, _ state: inout State) {
    guard !state.isJoining else { return }
    state.isJoining = true
    endEpoch(&state)
    state.node.pause()
    post(.join(.began(error)))
    applying.async { self.join(after: error) }
  }

  /// Loads the replica. On `applying`, so nothing is applied meanwhile.
  private func join(after error: ReplicaError?) {
    guard let joining else { return }
    let aside = ReplicaFolder.aside(after: error)
    noted.store(0, ordering: .sequentiallyConsistent)
    positions.withLock { $0.removeAll() }
    replica.detach(flushes: aside != nil)
    var lastFailure: String?
    // Before the replica is replaced, because a node that starts again notices nothing then.
    var unreported = error == .diverged ? newLoss() : nil
    while !isHalted.load(ordering: .sequentiallyConsistent) {
      do throws(JoinFailure) {
        if let loss = unreported { try report(loss, joining.tables) }
        unreported = nil
        try load(joining, after: error, aside)
        return
      } catch {
        if error.text != lastFailure { tell(.failed(error.text)) }
        lastFailure = error.text
      }
      for _ in 0..<Self.retryTicks where !isHalted.load(ordering: .sequentiallyConsistent) { usleep(Self.retryTick) }
    }
  }

  /// The time before a join is tried again: the ticks, and the length of one in microseconds.
  private static let retryTicks = 20
  private static let retryTick: useconds_t = 50_000
  /// The time between two events of progress, in microseconds.
  private static let progressInterval: Int64 = 500_000

  private struct JoinFailure: Error { let text: String }

  private func newLoss() -> LogLoss {
    LogLoss(number: .random(in: 0...UInt64.max), node: number, seconds: Int64(time(nil)))
  }

  private func report(_ loss: LogLoss, _ tables: any SnapshotTables) throws(JoinFailure) {
    do throws(SnapshotFailure) { try tables.report(loss) } catch { throw JoinFailure(text: error.text) }
  }

  private func load(_ joining: Joining, after error: ReplicaError?, _ aside: String?) throws(JoinFailure) {
    var lastProgress = now()
    let loader = SnapshotLoader(
      joining.tables, joining.folder, secret: replica.secret, sealed: replica.sealed,
      isCancelled: { [self] in isHalted.load(ordering: .sequentiallyConsistent) },
      progress: { [self] bytes, total in
        guard bytes == total || now() - lastProgress >= Self.progressInterval else { return }
        lastProgress = now()
        tell(.loading(bytes: bytes, of: total))
      })
    do {
      try loader.load(after: error, aside: aside)
      try replica.attach(try joining.folder.existing())
    } catch let error as SnapshotLoadingError {
      throw JoinFailure(text: error.text)
    } catch {
      throw JoinFailure(text: "\(error)")
    }
    let applied = replica.applied
    mark.store(replica.lastMark.sequence, ordering: .sequentiallyConsistent)
    state.withLock { state in
      (state.isJoining, state.failure, state.lastAnswer) = (false, nil, nil)
      state.node.restart(after: applied, mark: replica.lastMark, renewal: .random(in: 0..<1 << 62))
    }
    tell(.ended(applied, aside: aside.flatMap { access("\(joining.folder.path)/\($0)", F_OK) == 0 ? $0 : nil }))
  }

  /// Calls an event at once: everything before it is applied, and `applying` is busy.
  private func tell(_ event: JoinEvent) { events.async { self.report(.join(event)) } }
}
