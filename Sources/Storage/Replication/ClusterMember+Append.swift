import Glibc
import KeyValue
import LogEngine
import SharedLog
import Synchronization

/// Commits of this node.
extension ClusterMember: ProjectLog {
  /// Appends an entry on the calling thread, which is the writer of a store.
  ///
  /// It is certain of the outcome when it returns, or gives up after ``Patience/commit``: then the node gives the
  /// project away, and settles the entry in the background. So nothing is written on a state that may lack it.
  func append(_ body: [UInt8], of store: StoreName, in lease: EpochLease) throws(StorageError) -> LogPosition {
    let fate = turn.withLock { _ in
      let fate = appendAlone(body, lease)
      if case .appended(let position) = fate {
        unpublished.store(position.sequence, ordering: .sequentiallyConsistent)
      }
      return fate
    }
    switch fate {
    case .appended(let position): return position
    case .notOwner: throw .notOwner(of: store.text, owner: nil)
    case .unknown:
      throw .outcomeUnknown(path: store.text, detail: "the log of the cluster did not say whether it has it")
    }
  }

  func noteReadable(_ position: LogPosition) {
    _ = unpublished.compareExchange(expected: position.sequence, desired: 0, ordering: .sequentiallyConsistent)
    // The next append waits until this entry is readable, so nothing later is in a store yet.
    haltIfDue(at: position.sequence)
    feed.noteReadable(position.sequence)
  }

  private func appendAlone(_ body: [UInt8], _ lease: EpochLease) -> ClusterNode.CommitFate {
    let deadline = now() + patience.commit
    // Its writer is about to make it readable. Other nodes take an entry for readable when the next one follows it.
    while !feed.isReadable(in: lease.epoch) { usleep(Self.readablePause) }
    guard begin(body, lease) else { return .notOwner }
    var pause: UInt32 = Self.firstPause
    while true {
      switch nextStep(deadline) {
      case .over(let fate): return fate
      case .wait: usleep(Self.healingPause)
      case .perform(let request, let number):
        let reply = tables.perform(request)
        if reply == nil {
          usleep(pause)
          pause = min(2 * pause, Self.lastPause)
        }
        note(reply, to: number)
      }
    }
  }

  /// The pause before an append is repeated, in microseconds. It doubles each time.
  private static let firstPause: UInt32 = 2_000
  private static let lastPause: UInt32 = 200_000

  /// The time between two looks at the entry before, in microseconds.
  private static let readablePause: UInt32 = 20

  /// The time between two looks at a repair of the log, in microseconds.
  private static let healingPause: UInt32 = 1_000

  private enum Step {
    case perform(TableRequest, number: Int)
    /// The log is repaired first.
    case wait
    case over(ClusterNode.CommitFate)
  }

  /// Begins a commit. Returns `false` if this node may not append.
  private func begin(_ body: [UInt8], _ lease: EpochLease) -> Bool {
    state.withLock { state in
      guard !isHalted.load(ordering: .sequentiallyConsistent), state.lease === lease,
        state.node.acceptsCommits(at: now())
      else { return false }
      let actions = state.node.submit(body, at: now())
      guard let position = state.node.appending else { return false }
      state.commit = Commit(position: position, bytes: body.count)
      take(actions, &state)
      return true
    }
  }

  private func note(_ reply: TableReply?, to number: Int) {
    state.withLock { state in
      if reply != nil { state.lastAnswer = now() }
      take(state.node.receive(reply, to: number, at: now()), &state)
    }
  }

  private func nextStep(_ deadline: Int64) -> Step {
    state.withLock { state in
      if let fate = state.commit?.fate {
        state.commit = nil
        return .over(fate)
      }
      let next = takeNext(&state)
      let isGivenUp = isHalted.load(ordering: .sequentiallyConsistent) || now() >= deadline
      if let next, !isGivenUp { return .perform(next.request, number: next.number) }
      if state.node.isHealing, !isGivenUp { return .wait }
      state.commit = nil
      // From now on the entry is one like the handover that follows it.
      take(state.node.handOver(at: now()), &state)
      if let next { take([.perform(next.request, number: next.number)], &state) }
      return .over(.unknown)
    }
  }

  private func takeNext(_ state: inout State) -> (request: TableRequest, number: Int)? {
    defer { state.commit?.next = nil }
    return state.commit?.next
  }
}
