import LogEngine
import OperationsAPI
import Replication
import SharedLog
import Synchronization
import Transport

/// Reads the part of this server in its cluster for metrics. It is made before the node.
final class ClusterMeter: Sendable {
  private struct Reference: Sendable { weak var node: ClusteredNode? }

  private let reference = Mutex(Reference())

  var node: ClusteredNode? {
    get { reference.withLock { $0.node } }
    set { reference.withLock { $0.node = newValue } }
  }

  /// The reading of the node, or `nil` if this server is not one.
  var reading: ClusterReading? { node?.reading }
}

extension ClusteredNode {
  /// The part of this node now. Cost: two short locks.
  var reading: ClusterReading {
    let status = member.status
    let role: ClusterReading.Role =
      switch status.role {
      case .follower: .follower
      case .owner: .owner
      case .leaving: .leaving
      }
    var reading = ClusterReading(
      node: Int(number), role: role, epoch: Int(clamping: status.applied.epoch),
      appliedSequence: Int(clamping: status.applied.sequence), takeovers: takeovers.load(ordering: .relaxed),
      leaseMicroseconds: status.leaseRemaining, silenceMicroseconds: status.silence)
    let counts = relayed
    (reading.relayed, reading.repeated) = (counts.relayed, counts.repeated)
    (reading.broken, reading.failed) = (counts.broken, counts.failed)
    reading.peerConnections = counts.openConnections
    return reading
  }
}
