import Dispatch
import Replication
import SharedLog
import Synchronization
import Transport

/// The search of a node for the owner among the other nodes, while PostgreSQL does not answer it.
extension ClusteredNode {
  /// The silence of PostgreSQL after which a node asks the others, in microseconds. A lease is over then, or about to be.
  private static let silence: Int64 = 2_000_000

  /// Whether PostgreSQL does not answer. That is unknown at a node that loads its replica, because it sends no requests.
  var isCutOff: Bool {
    let status = member.status
    return !status.isJoining && (status.silence.map { $0 >= Self.silence } ?? false)
  }

  /// Asks the other nodes once a second, if PostgreSQL does not answer, or if this node does not reach the owner. It has a queue of
  /// its own, because requests to PostgreSQL are waited for on the other one.
  func searchOwner() {
    guard !state.withLock({ $0.isStopping }) else { return }
    searching.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.searchOwner() }
    if isCutOff { search.ask(state.withLock { $0.nodes }) }
    findDetour()
  }

  /// Handles the answer of an owner, its epoch in 8 bytes: relays requests to it, and follows its log.
  func found(_ address: NodeAddress, _ answer: [UInt8]) {
    guard isCutOff, answer.count == 8 else { return }
    let epoch = answer.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    // An owner of an earlier epoch closes the project first. The next answer leads on.
    guard member.status.role == .follower, state.withLock({ $0.epoch == nil }) else {
      return member.noteOwner(in: epoch)
    }
    let isNew = state.withLock { state in
      guard epoch >= state.foundEpoch, state.epoch == nil, !state.isStopping else { return false }
      state.foundEpoch = epoch
      return true
    }
    guard isNew, owner.address != address else { return }
    // PostgreSQL may have lost commits before that owner's epoch, and this node cannot ask whether its replica has them. So it
    // reads nothing itself: without PostgreSQL, it gets no configuration to read by.
    follow(nil as NodeAddress?)
    owner.set(address)
    targetChanged()
    follow(address)
    // This node may have become the owner meanwhile.
    guard state.withLock({ $0.epoch != nil }) else { return }
    follow(nil as NodeAddress?)
    owner.set(ownAddress)
  }
}
