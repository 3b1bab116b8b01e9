import Foundation
import Testing
import TestSupport

/// Nodes of a cluster whose clocks are wrong, under load. Leases compare no times of day, so all is as with right clocks; but
/// such a node does not own the cluster, because the owner's clock gives commits their times.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .needs(.wrongClock), .serialized)
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
  @Test(arguments: ["+1h", "-1h"]) func aNodeWithAWrongClockDoesNotOwn(offset: String) async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(environments: [WrongClock.environment(offset)])
      defer { WrongClock.removeTraces(of: [cluster.nodes[0].process.processID]) }
      let run = try FaultRun(cluster)
      let owner = try cluster.owner()
      #expect(owner != 0)
      #expect(abs(try Self.lead(cluster, at: 0)) < 30)
      cluster.nodes[owner].process.send(signal: SIGKILL)
      let next = try cluster.owner(after: owner)
      #expect(next != 0)
      try run.commit(100)
      try cluster.restart(owner)
      try run.finish("a clock of \(offset)")
      #expect(try Self.takeovers(cluster, of: 0) == 0)
      #expect(abs(try Self.lead(cluster, at: 0)) < 30)
      #expect(cluster.nodes[0].process.output.contains("this node cannot own the cluster"))
    }
  }

  /// The clock of the owner jumps. It gives the cluster away, and no commit gets a time of that clock.
  @Test(arguments: ["+1h", "-1h"]) func anOwnerWhoseClockJumpsGivesTheClusterAway(offset: String) async throws {
    try await onDedicatedThread {
      let directory = try TemporaryDirectory()
      let files = try (0..<3).map { try directory.write("clock\($0)", "+0\n") }
      let cluster = try ServedCluster(environments: files.map { WrongClock.environment(offsetIn: $0) })
      defer { WrongClock.removeTraces(of: cluster.nodes.map(\.process.processID)) }
      let run = try FaultRun(cluster)
      let owner = try cluster.owner()
      try directory.write("clock\(owner)", offset + "\n")
      #expect(try cluster.owner(after: owner) != owner)
      try run.commit(100)
      for node in cluster.ports.indices { #expect(abs(try Self.lead(cluster, at: node)) < 30, "node \(node + 1)") }
      // When the clock is right again, it may own the cluster.
      try directory.write("clock\(owner)", "+0\n")
      try cluster.nodes[owner].process.waitForOutput("the right clock", timeoutSeconds: 60) {
        $0.contains("clocks of this machine and PostgreSQL's agree again")
      }
      try run.finish("a jump of \(offset)")
    }
  }

  /// A clock that runs 1 % too fast differs from PostgreSQL's by half a second after 50 seconds; this one needs 10. Another
  /// node is paused meanwhile, so that leases and takeovers happen with it.
  @Test func aNodeWithAFastClockGivesTheClusterAwayInTime() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(environments: [WrongClock.environment("+0 x1.05")])
      defer { WrongClock.removeTraces(of: [cluster.nodes[0].process.processID]) }
      let run = try FaultRun(cluster)
      try cluster.nodes[0].process.waitForOutput("a wrong clock", timeoutSeconds: 60) {
        $0.contains("this node cannot own the cluster")
      }
      let owner = try cluster.owner(after: 0)
      #expect(owner != 0)
      cluster.nodes[owner].process.send(signal: SIGSTOP)
      #expect(try cluster.owner(after: owner) != 0)
      cluster.nodes[owner].process.send(signal: SIGCONT)
      try run.commit(100)
      for node in cluster.ports.indices { #expect(abs(try Self.lead(cluster, at: node)) < 5, "node \(node + 1)") }
      try run.finish("a clock that is 5 % fast")
    }
  }
}
