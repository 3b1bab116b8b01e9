package import SharedLog

/// A node of a cluster, as the tables describe it.
package struct RegisteredNode: Equatable, Sendable {
  /// The number of the node.
  package let node: UInt32
  /// The address at which other nodes reach it, such as `10.0.0.2:8090`.
  package let address: String
  /// The version of its software.
  package let software: String
  /// The time of its last start by PostgreSQL's clock, in microseconds since 1970.
  package let started: Int64
  /// Whether the operator asked it to own nothing.
  package let isDraining: Bool
  /// Its last session, or `nil` if it has not begun one.
  package let session: Session?

  /// The last session of a node.
  package struct Session: Equatable, Sendable {
    package let number: UInt64
    /// The number of its last renewal.
    package let renewal: UInt64
    /// Whether other nodes have not declared it dead. A node that was killed stays live until another one takes over.
    package let isLive: Bool

    package init(number: UInt64, renewal: UInt64, isLive: Bool) {
      self.number = number
      self.renewal = renewal
      self.isLive = isLive
    }
  }
}

/// The state of a cluster, from one snapshot of the tables.
package struct ClusterState: Equatable, Sendable {
  package let epoch: UInt64
  /// The node that owns the cluster, whether or not it is alive.
  package let owner: UInt32?
  /// Whether the session with which the owner took over is its last one, and others did not declare it dead.
  package let isOwnerLive: Bool
  /// The sequence up to which the owner confirmed the log.
  package let confirmed: UInt64
  /// The sequence of the first entry that the log has, or would have if it is empty.
  package let firstSequence: UInt64
  /// The sequence of the last entry, or 0 if there never was one.
  package let head: UInt64
  /// The size of the log on the disk of PostgreSQL, in bytes, or `nil` if the engine cannot tell.
  package let logBytes: Int64?
  /// The version of the newest configuration.
  package let configuration: Int64
  /// The last loss of entries that a node reported, or `nil` without one.
  package let loss: LogLoss?
  /// Whether an owner renewed the incarnation of each database since ``loss``.
  package let isLossAnswered: Bool
  /// The nodes, by number.
  package let members: [RegisteredNode]

  /// The last loss, if no owner has renewed the databases since then.
  package var unansweredLoss: LogLoss? { isLossAnswered ? nil : loss }

  /// The number of entries that the log has.
  package var entries: UInt64 { head < firstSequence ? 0 : head - firstSequence + 1 }

  /// Returns the node of a number, or `nil` if none is registered under it.
  package func member(_ node: UInt32) -> RegisteredNode? { members.first { $0.node == node } }
}
