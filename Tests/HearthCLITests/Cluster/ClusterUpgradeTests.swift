import Foundation
import Testing
import TestSupport

/// A cluster whose nodes get another build one after the other, while clients commit and read at all of them.
@Suite(
  .needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .needs(.previousBuild), .serialized)
struct ClusterUpgradeTests {
  /// When the owner is replaced.
  enum Order: String, CaseIterable, Sendable {
    case ownerLast, ownerFirst
  }

  /// The nodes get this build, the earlier one again, and this one.
  @Test(arguments: Order.allCases) func anUpgradeAndTheWayBackLoseNothing(order: Order) async throws {
    try await onDedicatedThread {
      let previous = try #require(HearthBinary.previousPath)
      #expect(!FileManager.default.contentsEqual(atPath: previous, andPath: try #require(HearthBinary.path)))
      let cluster = try ServedCluster(executable: previous)
      let run = try FaultRun(cluster)
      for executable in [nil, previous, nil] {
        cluster.use(executable)
        let owner = try cluster.owner()
        let others = cluster.nodes.indices.filter { $0 != owner }
        for node in order == .ownerLast ? others + [owner] : [owner] + others {
          let process = cluster.nodes[node].process
          process.send(signal: SIGTERM)
          #expect(process.waitForExit(timeoutSeconds: 30) == .code(0), "\(process.output)")
          try cluster.restart(node)
          try run.waitUntilServing(node, order.rawValue)
          try run.commit(100)
        }
      }
      try run.finish(order.rawValue)
    }
  }
}
