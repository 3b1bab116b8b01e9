import Glibc
import PostgresEngine

extension Command {
  /// Asks a node of a cluster to own nothing.
  static let clusterDrain = Command(
    name: "cluster drain", summary: "Asks a node of a cluster to hand its ownership over, before maintenance.",
    operands: "[POSTGRES-URL] NODE", operandCount: 1...2,
    options: [.flag("undo", "let the node own the cluster again")],
    details: """
      NODE is a number that `hearth cluster status` shows. If the node owns the cluster, the verb waits up to
      \(ClusterDrain.secondsMax) seconds until another one does. The node continues to relay requests, also after a restart,
      and owns nothing until --undo. The exit code is 1 if no other node has taken over.

      \(ClusterAddress.details)
      """,
    examples: [
      ("hearth cluster drain postgres://hearth@pg1,pg2/hearth 1", "before a machine is stopped"),
      ("hearth cluster drain postgres://hearth@pg1,pg2/hearth 1 --undo", "afterwards"),
    ],
    run: { arguments in
      let url = try ClusterAddress.url(arguments.operands.count == 2 ? arguments.operands[0] : nil)
      guard let word = arguments.operands.last, let node = UInt32(word), node > 0 else {
        throw CommandFailure.usage("NODE must be the number of a node, such as 1")
      }
      _ = try ClusterSchema.check(at: url)
      return try ClusterDrain(catalog: try ClusterCatalog(url), node: node).run(isUndone: arguments.has("undo"))
    })
}

/// One run of `hearth cluster drain`.
private struct ClusterDrain {
  /// The longest wait for another owner.
  static let secondsMax = 10

  let catalog: ClusterCatalog
  let node: UInt32

  func run(isUndone: Bool) throws -> Int32 {
    // Before the change, because the node may hand over at once.
    let state = try catalog.state()
    guard try catalog.setDraining(!isUndone, node: node) else {
      throw CommandFailure.failed("the cluster has no node \(node); `hearth cluster status` shows its nodes")
    }
    if isUndone {
      Terminal.output.write("node \(node) may own the cluster again\n")
      return 0
    }
    guard state.owner == node, state.isOwnerLive else {
      Terminal.output.write("node \(node) does not own the cluster, and will not until --undo\n")
      return 0
    }
    let end = Progress.now() + Int64(Self.secondsMax) * 1000
    while Progress.now() < end {
      usleep(100_000)
      // A short outage of PostgreSQL does not matter.
      guard let state = try? catalog.state() else { continue }
      if let owner = state.owner, owner != node, state.isOwnerLive {
        Terminal.output.write("node \(owner) owns the cluster now; node \(node) will not until --undo\n")
        return 0
      }
    }
    throw CommandFailure.failed(
      "no other node took over within \(Self.secondsMax) seconds; node \(node) still hands over when one can. To take that "
        + "back, run the command with --undo")
  }
}
