import Foundation
import Testing
import TestSupport

/// Three nodes and PostgreSQL in network namespaces, whose packets are lost under load. No connection ends by itself, so only
/// the timeouts of the nodes and of TCP notice it.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .needs(.networks), .serialized)
struct ClusterNetworkTests {
  /// The packets that are lost.
  enum Loss: String, CaseIterable, Sendable {
    /// Those between the owner and PostgreSQL.
    case ownerFromPostgres
    /// Those from and to the owner, except for clients.
    case owner
    /// Those between the owner and another node.
    case ownerFromAFollower
    /// Those from and to another node.
    case follower
    /// Those from and to PostgreSQL.
    case postgres
  }

  @Test(arguments: Loss.allCases) func nothingIsLostWithThePackets(_ loss: Loss) async throws {
    try await onDedicatedThread {
      let run = try FaultRun(ServedCluster(hasNetwork: true))
      let cluster = run.cluster
      let network = try #require(cluster.network)
      let owner = try cluster.owner()
      let (follower, other) = ((owner + 1) % 3, (owner + 2) % 3)
      let epoch = try run.epoch
      switch loss {
      case .ownerFromPostgres: try network.lose(between: .node(owner), and: .postgres)
      case .owner: try network.lose(around: .node(owner))
      case .ownerFromAFollower: try network.lose(between: .node(owner), and: .node(follower))
      case .follower: try network.lose(around: .node(follower))
      case .postgres: try network.lose(around: .postgres)
      }
      switch loss {
      case .ownerFromPostgres:
        _ = try cluster.owner(after: owner)
        // The former owner passes requests to the next one.
        try run.waitUntilServing(owner, "\(loss), broken")
      case .owner:
        _ = try cluster.owner(after: owner)
        // Its replica may be old.
        #expect(run.statusOfRead(at: owner) != 200)
        try run.waitUntilUnready(owner)
      case .ownerFromAFollower:
        // The third node passes its requests on.
        for node in [follower, other] { try run.waitUntilServing(node, "\(loss), broken") }
        #expect(try run.epoch == epoch)
      case .follower:
        try run.waitUntilUnready(follower)
        #expect(run.statusOfRead(at: follower) != 200)
        try run.waitUntilServing(other, "\(loss), broken")
        #expect(try run.epoch == epoch)
      case .postgres:
        // No node may answer without it, once the lease of the owner is over.
        for node in cluster.ports.indices { try run.waitUntilUnready(node) }
        for node in cluster.ports.indices { #expect(run.statusOfRead(at: node) != 200) }
      }
      if loss != .postgres { try run.commit(100) }
      try network.loseNothing()
      // Reads at three nodes without PostgreSQL take ten seconds each, and a kernel may wait a while before it sends again.
      try run.finish("packets of \(loss) lost", gapMax: 120_000)
    }
  }
}
