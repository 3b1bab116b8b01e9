import Accounts
import DocumentModel
import PostgresEngine
import Synchronization
import WireFormat

/// The cluster as operators see it in the console.
extension ClusteredNode {
  /// The nodes and the log as JSON, as far as PostgreSQL answered last. It does not wait for PostgreSQL.
  func describeForConsole() -> [UInt8] {
    let (observed, problem) = state.withLock { ($0.observed, $0.problem) }
    var map = MapValue([("project", .string(project)), ("nodes", .array([]))])
    map["problem"] = problem.map { .string("PostgreSQL does not answer: \($0)") }
    guard let (cluster, alive) = observed else { return map.json }
    map["epoch"] = .integer(Int64(clamping: cluster.epoch))
    map["entries"] = .integer(Int64(clamping: cluster.entries))
    map["logBytes"] = cluster.logBytes.map { .integer($0) }
    map["configuration"] = .integer(cluster.configuration)
    map["nodes"] = .array(cluster.members.map { .map(describe($0, isAlive: alive.contains($0.node), in: cluster)) })
    return map.json
  }

  private func describe(_ node: RegisteredNode, isAlive: Bool, in cluster: ClusterState) -> MapValue {
    let life =
      switch node.session?.isLive {
      case nil: "starting"
      case true: isAlive ? "live" : "silent"
      case false: "dead"
      }
    return MapValue([
      ("node", .integer(Int64(node.node))), ("address", .string(node.address)), ("state", .string(life)),
      ("isOwner", .boolean(node.node == cluster.owner && cluster.isOwnerLive)),
      ("isDraining", .boolean(node.isDraining)), ("software", .string(node.software)),
      ("started", .string(Timestamp(uncheckedMicroseconds: node.started).description)),
    ])
  }
}
