/// The part of a node in its cluster at one moment, as metrics report it.
package struct ClusterReading: Equatable, Sendable {
  /// The part of a node for the project.
  package enum Role: String, CaseIterable, Sendable {
    /// It passes requests to the owner.
    case follower
    /// It executes all requests.
    case owner
    /// It gives the project away, and executes nothing more.
    case leaving
  }

  /// The number of the node.
  package var node: Int
  package var role: Role
  /// The newest epoch of which the replica has an entry.
  package var epoch: Int
  /// The sequence up to which the replica has the log.
  package var appliedSequence: Int
  /// The times that this node became the owner since its start.
  package var takeovers: Int
  /// The time for which the node may answer reads as the owner, in microseconds; 0 if it may not.
  package var leaseMicroseconds: Int64
  /// The time since PostgreSQL answered last, in microseconds, or `nil` if it has not yet.
  package var silenceMicroseconds: Int64?
  /// The requests passed to other nodes, the further tries of such requests, those that a lost connection may have left
  /// done, and those that were refused.
  package var (relayed, repeated, broken, failed) = (0, 0, 0, 0)
  /// The connections to other nodes that are open.
  package var peerConnections = 0

  package init(
    node: Int, role: Role, epoch: Int, appliedSequence: Int, takeovers: Int, leaseMicroseconds: Int64,
    silenceMicroseconds: Int64?
  ) {
    (self.node, self.role, self.epoch, self.appliedSequence) = (node, role, epoch, appliedSequence)
    (self.takeovers, self.leaseMicroseconds) = (takeovers, leaseMicroseconds)
    self.silenceMicroseconds = silenceMicroseconds
  }

  /// Appends the samples of the node.
  func append(to text: inout MetricsText) {
    text.family("hearth_cluster_node_info", .gauge, "Always 1; the label is the number of this node in its cluster.")
    text.sample([("node", "\(node)")], 1)
    text.family("hearth_cluster_role", .gauge, "1 for the part that this node has in its cluster, 0 for the others.")
    for role in Role.allCases { text.sample([("role", role.rawValue)], role == self.role ? 1 : 0) }
    text.family("hearth_cluster_epoch", .gauge, "Newest epoch that the replica of this node has; it counts owners.")
    text.sample([], epoch)
    text.family("hearth_cluster_applied_sequence", .gauge, "Entry up to which the replica of this node has the log.")
    text.sample([], appliedSequence)
    text.family("hearth_cluster_takeovers_total", .counter, "Times that this node became the owner.")
    text.sample([], takeovers)
    text.family(
      "hearth_cluster_lease_seconds", .gauge, "Time for which this node may answer reads as the owner; else 0.")
    text.sample([], Double(max(0, leaseMicroseconds)) / 1e6)
    if let silenceMicroseconds {
      text.family("hearth_cluster_silence_seconds", .gauge, "Time since PostgreSQL answered this node last.")
      text.sample([], Double(max(0, silenceMicroseconds)) / 1e6)
    }
    text.family("hearth_relay_requests_total", .counter, "Requests of clients that this node passed to the owner.")
    text.sample([], relayed)
    text.family("hearth_relay_repeated_total", .counter, "Further tries of such requests.")
    text.sample([], repeated)
    text.family(
      "hearth_relay_broken_total", .counter, "Tries that the owner may have executed when the connection to it broke.")
    text.sample([], broken)
    text.family(
      "hearth_relay_failed_total", .counter,
      "Requests refused because no owner took them, or their outcome is unknown.")
    text.sample([], failed)
    text.family("hearth_relay_connections_open", .gauge, "Connections to other nodes open now.")
    text.sample([], peerConnections)
  }
}
