import Dispatch
import Synchronization
import Transport

/// The way of a node that does not reach the owner, while both reach PostgreSQL, so that the owner stays the owner: another node
/// passes requests on.
///
/// This node reads nothing itself then: it cannot ask the owner how far the log is, and does not learn of new rules.
extension ClusteredNode {
  /// The address of the owner, if this node reaches it directly.
  var reachedOwner: NodeAddress? {
    guard owner.detour == nil, let address = owner.address else { return nil }
    return (address == ownAddress ? door.isOwner : follower.way == .open) ? address : nil
  }

  /// Asks the other nodes whether they reach the owner, if the way of this one broke. Called once a second.
  func findDetour() {
    guard let address = owner.address, address != ownAddress, follower.way == .broken else { return endDetour() }
    endDetour(isOverdue: true)
    detours.ask(state.withLock { $0.nodes }.filter { $0 != address && $0 != ownAddress })
  }

  /// Handles the answer of a node: it reaches an owner.
  func found(_ node: NodeAddress, reaching found: [UInt8]) {
    guard let address = owner.address, Array(address.description.utf8) == found, follower.way == .broken,
      owner.confirmDetour(node, to: address)
    else { return }
    targetChanged()
    queue.async { [self] in
      guard owner.detour != nil else { return }
      // Streams of listeners end. Their clients connect again, to the owner.
      door.read(nil)
      followed.retire()
    }
    configuration.log(
      .warn, "cluster.detour",
      "node \(number) does not reach the owner at \(address), so the node at \(node) passes its requests on",
      [("node", .integer(Int(number)))])
  }

  private func endDetour(isOverdue: Bool = false) {
    guard owner.endDetour(isOverdue: isOverdue) else { return }
    targetChanged()
    configuration.log(
      .info, "cluster.detour", "node \(number) passes its requests to the owner itself again",
      [("node", .integer(Int(number)))])
  }
}
