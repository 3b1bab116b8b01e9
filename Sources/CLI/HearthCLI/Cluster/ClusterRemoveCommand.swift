import Glibc
import PostgresEngine
import SharedLog

extension Command {
  /// Removes a node that does not come back from the list of a cluster.
  static let clusterRemove = Command(
    name: "cluster remove", summary: "Removes a node that does not come back from the list of nodes.",
    operands: "[POSTGRES-URL] NODE", operandCount: 1...2,
    details: """
      NODE is a number that `hearth cluster status` shows. Stop the node first: the verb watches it for
      \(ClusterRemoval.watchSeconds) seconds, and refuses if it renews its session, or if no other node has taken the cluster
      over from it. No data are lost, because each node has all of them, and so has PostgreSQL.

      No other node gets the number. If the directory of the node is served later, it joins with its former number. The
      verb does not notice a node that loads its data or does not reach PostgreSQL: such a node comes back by itself. Use
      the verb only when all nodes have this version.

      \(ClusterAddress.details)
      """,
    examples: [
      ("hearth cluster remove postgres://hearth@pg1,pg2/hearth 3", "after the machine of node 3 was given up")
    ],
    run: { arguments in
      let url = try ClusterAddress.url(arguments.operands.count == 2 ? arguments.operands[0] : nil)
      guard let word = arguments.operands.last, let node = UInt32(word), node > 0 else {
        throw CommandFailure.usage("NODE must be the number of a node, such as 3")
      }
      _ = try ClusterSchema.check(at: url)
      return try ClusterRemoval(catalog: try ClusterCatalog(url), node: node).run()
    })
}

/// One run of `hearth cluster remove`.
private struct ClusterRemoval {
  /// A node renews its session once a second, and another one takes over after three seconds.
  static let watchSeconds = 5

  let catalog: ClusterCatalog
  let node: UInt32

  func run() throws -> Int32 {
    let seen = try member(of: catalog.state()).session
    let end = Progress.now() + Int64(Self.watchSeconds) * 1000
    repeat {
      usleep(100_000)
      let state = try catalog.state()
      guard try member(of: state).session == seen else {
        throw CommandFailure.failed("node \(node) renews its session: stop it first")
      }
      // If nobody took over, its clients would lose sight of the owner.
      guard Progress.now() < end || state.owner != node || !state.isOwnerLive else {
        throw CommandFailure.failed(
          "node \(node) owned the cluster last, and no other node has taken over; start another node first")
      }
    } while Progress.now() < end
    guard try catalog.remove(node, lastSeen: seen) else {
      throw CommandFailure.failed(
        "node \(node) started, or somebody removed it, while it was watched; see `hearth cluster status`")
    }
    Terminal.output.write("node \(node) is removed\n")
    return 0
  }

  private func member(of state: ClusterState) throws -> RegisteredNode {
    guard let member = state.member(node) else {
      throw CommandFailure.failed("the cluster has no node \(node); `hearth cluster status` shows its nodes")
    }
    return member
  }
}
