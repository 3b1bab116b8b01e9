import Dispatch
import Replication
import Synchronization
import Transport

/// The way of a node that does not reach the owner, while both reach PostgreSQL, so that the owner stays the owner: another node
/// passes requests on.
///
/// Reads go there as well: this node cannot ask the owner how far the log is.
extension ClusteredNode {
  /// The time after which a detour ends that its node does not confirm any more, in seconds. A round of questions takes some
  /// seconds if one node does not answer.
  static let detourSeconds = 10

  /// The address of the owner, if this node reaches it directly.
  var reachedOwner: NodeAddress? {
    guard owner.detour == nil, let address = owner.address else { return nil }
    return (address == ownAddress ? door.isOwner : follower.isConnected) ? address : nil
  }

  /// Asks the other nodes whether they reach the owner, if the stream of the log to this one broke. Called once a second.
  func findDetour() {
    guard let address = owner.address, address != ownAddress else { return door.setDetoured(false) }
    guard !follower.isConnected else { return endDetour(to: address) }
    if state.withLock({ $0.detourEnds.map { $0 <= .now() } ?? false }) { endDetour(to: address) }
    detours.ask(state.withLock { $0.nodes }.filter { $0 != address && $0 != ownAddress })
  }

  /// Handles the answer of a node: it reaches an owner.
  func found(_ node: NodeAddress, reaching found: [UInt8]) {
    guard let address = owner.address, Array(address.description.utf8) == found, !follower.isConnected,
      owner.detour.map({ $0 == node }) ?? true
    else { return }
    state.withLock { $0.detourEnds = .now() + .seconds(Self.detourSeconds) }
    guard owner.setDetour(node, to: address) else { return }
    door.setDetoured(true)
    targetChanged()
    configuration.log(
      .warn, "cluster.detour",
      "node \(number) does not reach the owner at \(address), so the node at \(node) passes its requests on",
      [("node", .integer(Int(number)))])
  }

  private func endDetour(to address: NodeAddress) {
    state.withLock { $0.detourEnds = nil }
    door.setDetoured(false)
    guard owner.setDetour(nil, to: address) else { return }
    targetChanged()
    configuration.log(
      .info, "cluster.detour", "node \(number) passes requests to the owner at \(address) itself again",
      [("node", .integer(Int(number)))])
  }
}
