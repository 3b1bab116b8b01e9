import Foundation
import Glibc
import Testing
import TestSupport

/// Nodes of a cluster whose clocks are wrong, under load. Leases compare no times of day, so all is as with right clocks; but
/// such a node does not own the cluster, because the owner's clock gives commits their times.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .needs(.compiler), .serialized)
struct ClusterClockTests {
  /// Creates a document, and returns by how many seconds its time is ahead of this machine's clock.
  private static func lead(_ cluster: ServedCluster, at node: Int) throws -> Double {
    let made = try ServedCluster.send(cluster.ports[node], "POST", "\(ServedCluster.documents)/timed", "{}")
    let text = try #require(try JSONNode(parsing: made.body)["updateTime"]?.stringValue, "\(made.text)")
    let time = try Date("\(text.prefix(19))Z", strategy: .iso8601)
    return time.timeIntervalSinceNow
  }

  private static func takeovers(_ cluster: ServedCluster, of node: Int) throws -> Double {
    try #require(try cluster.metrics(of: node)["hearth_cluster_takeovers_total"])
  }

  /// The node with the wrong clock starts first, so it would be the first owner. It is not, also when the owner is killed.
  @Test(arguments: [3600, -3600]) func aNodeWithAWrongClockDoesNotOwn(ahead: Int) async throws {
    try await onDedicatedThread {
      let clock = try NodeClock()
      try clock.set(ahead: ahead)
      let cluster = try ServedCluster(environments: [clock.environment])
      let run = try FaultRun(cluster)
      let owner = try cluster.owner()
      #expect(owner != 0)
      #expect(abs(try Self.lead(cluster, at: 0)) < 30)
      cluster.nodes[owner].process.send(signal: SIGKILL)
      let next = try cluster.owner(after: owner)
      #expect(next != 0)
      try run.commit(100)
      try cluster.restart(owner)
      try run.finish("a clock that is \(ahead) seconds ahead")
      #expect(try Self.takeovers(cluster, of: 0) == 0)
      #expect(abs(try Self.lead(cluster, at: 0)) < 30)
      #expect(cluster.nodes[0].process.output.contains("this node cannot own the cluster"))
    }
  }

  /// The clock of the owner jumps. It gives the cluster away, and no commit gets a time of that clock.
  @Test(arguments: [3600, -3600]) func anOwnerWhoseClockJumpsGivesTheClusterAway(ahead: Int) async throws {
    try await onDedicatedThread {
      let clocks = try (0..<3).map { _ in try NodeClock() }
      let cluster = try ServedCluster(environments: clocks.map(\.environment))
      let run = try FaultRun(cluster)
      let owner = try cluster.owner()
      try clocks[owner].set(ahead: ahead)
      #expect(try cluster.owner(after: owner) != owner)
      try run.commit(100)
      for node in cluster.ports.indices { #expect(abs(try Self.lead(cluster, at: node)) < 30, "node \(node + 1)") }
      // When the clock is right again, it may own the cluster.
      try clocks[owner].set()
      try cluster.nodes[owner].process.waitForOutput("the right clock", timeoutSeconds: 60) {
        $0.contains("clocks of this machine and PostgreSQL's agree again")
      }
      try run.finish("a jump of \(ahead) seconds")
    }
  }

  /// All clocks of a node run 5 % too fast, those of another one 5 % too slow, also those of leases. After ten seconds their
  /// times of day are wrong by half a second. The owner is paused meanwhile, so that a takeover happens with them.
  @Test func leasesPermitClocksOfOtherRates() async throws {
    try await onDedicatedThread {
      let (fast, slow) = (try NodeClock(), try NodeClock())
      try fast.set(rate: 0.05)
      try slow.set(rate: -0.05)
      let cluster = try ServedCluster(environments: [fast.environment, slow.environment])
      let run = try FaultRun(cluster)
      let first = try cluster.owner()
      cluster.nodes[first].process.send(signal: SIGSTOP)
      _ = try cluster.owner(after: first)
      cluster.nodes[first].process.send(signal: SIGCONT)
      for node in 0..<2 {
        try cluster.nodes[node].process.waitForOutput("a wrong clock", timeoutSeconds: 60) {
          $0.contains("this node cannot own the cluster")
        }
      }
      let isRight = try OtherProcess.eventually(secondsMax: 30) { try cluster.owner() == 2 }
      #expect(isRight, "a node with a wrong clock owns the cluster")
      try run.commit(100)
      for node in cluster.ports.indices { #expect(abs(try Self.lead(cluster, at: node)) < 5, "node \(node + 1)") }
      try run.finish("clocks that are 5 % fast and slow")
    }
  }
}
