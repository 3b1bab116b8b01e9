import PostgresEngine
import Transport

/// Tells from the renewals of their sessions which nodes are alive.
struct NodeWatch {
  private struct Seen {
    var session: RegisteredNode.Session
    var since: Int64
  }

  private var seen: [UInt32: Seen] = [:]
  /// The time after which a node without a renewal counts as dead, in microseconds.
  private static let silence: Int64 = 5_000_000

  /// Notes what the tables say at a time of a clock in microseconds. Returns the addresses of the nodes that are alive.
  mutating func note(_ nodes: [RegisteredNode], at now: Int64) -> [UInt32: NodeAddress] {
    var alive: [UInt32: NodeAddress] = [:]
    var next: [UInt32: Seen] = [:]
    for node in nodes {
      guard let session = node.session, session.isLive else { continue }
      var entry = seen[node.node] ?? Seen(session: session, since: now)
      if entry.session != session { entry = Seen(session: session, since: now) }
      next[node.node] = entry
      if now - entry.since < Self.silence, let address = NodeAddress(text: node.address) { alive[node.node] = address }
    }
    seen = next
    return alive
  }
}
