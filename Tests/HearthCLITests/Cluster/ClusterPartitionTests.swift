import Dispatch
import Foundation
import Glibc
import Synchronization
import Testing
import TestSupport

/// Three nodes whose links to each other and to PostgreSQL break under load, and are healed.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterPartitionTests {
  /// The links that break.
  enum Partition: String, CaseIterable, Sendable {
    /// Connections of the owner to PostgreSQL are reset.
    case ownerCutFromPostgres
    /// Those are silent, in both directions or in one.
    case ownerHeldFromPostgres, ownerRequestsHeld, ownerAnswersHeld
    /// One of the other nodes and the owner do not hear each other.
    case ownerHeldFromAFollower
    case followerCutFromPostgres
    /// A node hears nobody, except for clients.
    case followerIsolated, ownerIsolated
  }

  @Test(arguments: Partition.allCases, TestSeeds.of("HEARTH_CLUSTER_SEED", otherwise: [1]))
  func nothingIsLostInAPartition(_ partition: Partition, seed: UInt64) async throws {
    try await onDedicatedThread {
      let run = try FaultRun(ServedCluster(linksSeed: seed))
      let (cluster, links) = (run.cluster, try run.links)
      let owner = try cluster.owner()
      let (follower, other) = ((owner + 1) % 3, (owner + 2) % 3)
      let epoch = try run.epoch
      switch partition {
      case .ownerCutFromPostgres: links.set(.cut, toPostgresFrom: owner)
      case .ownerHeldFromPostgres: links.set(.hold, toPostgresFrom: owner)
      case .ownerRequestsHeld: links.set(.holdRequests, toPostgresFrom: owner)
      case .ownerAnswersHeld: links.set(.holdAnswers, toPostgresFrom: owner)
      case .ownerHeldFromAFollower:
        links.set(.hold, from: follower, to: owner)
        links.set(.hold, from: owner, to: follower)
      case .followerCutFromPostgres: links.set(.cut, toPostgresFrom: follower)
      case .followerIsolated: links.set(.hold, around: follower)
      case .ownerIsolated: links.set(.hold, around: owner)
      }
      switch partition {
      case .ownerCutFromPostgres, .ownerHeldFromPostgres, .ownerRequestsHeld, .ownerAnswersHeld:
        _ = try cluster.owner(after: owner)
        try run.waitForSilence(of: owner)
        // The former owner passes requests to the next one.
        try run.waitUntilServing(owner, "\(partition), broken")
      case .ownerIsolated:
        _ = try cluster.owner(after: owner)
        try run.waitForSilence(of: owner)
        // Its replica may be old.
        #expect(run.statusOfRead(at: owner) != 200)
        try run.waitUntilUnready(owner)
      case .ownerHeldFromAFollower:
        try run.waitForRenewals(5, of: owner)
        try run.waitUntilServing(other, "\(partition), broken")
        // The third node passes its requests on.
        try run.waitUntilServing(follower, "\(partition), broken")
        #expect(cluster.nodes[follower].process.output.contains("does not reach the owner at"))
        #expect(try ServedCluster.send(cluster.ports[follower], "GET", "/readyz").status == 200)
      case .followerCutFromPostgres:
        try run.waitForSilence(of: follower)
        for node in cluster.ports.indices { try run.waitUntilServing(node, "\(partition), broken") }
      case .followerIsolated:
        try run.waitForSilence(of: follower)
        #expect(run.statusOfRead(at: follower) != 200)
        try run.waitUntilUnready(follower)
      }
      try run.commit(100)
      switch partition {
      case .ownerHeldFromAFollower, .followerCutFromPostgres, .followerIsolated: #expect(try run.epoch == epoch)
      default: #expect(try run.epoch > epoch)
      }
      links.setAll(.none)
      try run.finish("\(partition)")
      // The former owner reads again by itself.
      let last = try cluster.owner()
      for node in cluster.ports.indices where node != last { try cluster.waitUntilReading(node) }
    }
  }

  /// The server gets requests and acts, but its answer is lost with the connection, again and again: between nodes, and
  /// between them and PostgreSQL.
  @Test(arguments: TestSeeds.of("HEARTH_CLUSTER_SEED", otherwise: [1]))
  func incrementsAreExactWhenAnswersAreLost(seed: UInt64) async throws {
    try await onDedicatedThread {
      let run = try FaultRun(ServedCluster(linksSeed: seed))
      let links = try run.links
      links.setAll(.loseAnswers(oneIn: 20))
      #expect(links.lostByPostgres.wait(secondsMax: 60) { $0 >= 50 }, "\(links.lostByPostgres.value)")
      #expect(links.lostByNodes.wait(secondsMax: 60) { $0 >= 50 }, "\(links.lostByNodes.value)")
      try run.commit(100)
      links.setAll(.none)
      let lost = (links.lostByPostgres.value, links.lostByNodes.value)
      try run.finish("lost answers: \(lost.0) of PostgreSQL, \(lost.1) of nodes")
    }
  }

  /// A node that does not own the cluster gets a twentieth of a processor.
  @Test func aSlowNodeSlowsNoOther() async throws {
    try await onDedicatedThread {
      let run = try FaultRun(ServedCluster())
      let cluster = run.cluster
      let owner = try cluster.owner()
      let (slow, other) = ((owner + 1) % 3, (owner + 2) % 3)
      let epoch = try run.epoch
      let brake = Brake(cluster.nodes[slow].process)
      for _ in 0..<5 {
        try run.waitForRenewals(1, of: owner)
        try run.waitUntilServing(other, "beside a slow node")
        try run.waitUntilServing(owner, "beside a slow node")
      }
      try run.commit(100)
      #expect(try run.epoch == epoch)
      brake.release()
      try run.finish("a slow node")
      try cluster.waitUntilReading(slow)
    }
  }
}

/// Stops a process for most of the time, so that it runs for 5 of 100 milliseconds.
private final class Brake {
  private let timer = DispatchSource.makeTimerSource()

  init(_ process: ServerProcess) {
    let ticks = Atomic(0)
    timer.schedule(deadline: .now(), repeating: .milliseconds(5), leeway: .nanoseconds(0))
    timer.setEventHandler {
      switch ticks.add(1, ordering: .relaxed).newValue % 20 {
      case 0: process.send(signal: SIGCONT)
      case 1: process.send(signal: SIGSTOP)
      default: break
      }
    }
    timer.setCancelHandler { process.send(signal: SIGCONT) }
    timer.activate()
  }

  /// Lets the process run.
  func release() { timer.cancel() }

  deinit { release() }
}
