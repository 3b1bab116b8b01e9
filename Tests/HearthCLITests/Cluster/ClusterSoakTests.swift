import Foundation
import Glibc
import Testing
import TestSupport

/// A cluster under load, of which a random part dies, stops or loses its files, again and again.
///
/// Each kind of fault comes once before one comes again. `CLUSTER_FAULTS` is the number of faults (one of each kind by default,
/// which is for `make test`), `CLUSTER_SEED` chooses their order and parts, and `CLUSTER_FAULT` names the only kind.
/// `make cluster-soak` sets them.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterSoakTests {
  /// A kind of fault. A node that ends starts again at once.
  enum Fault: String, CaseIterable, Sendable {
    case ownerKilled, nodeKilled, allNodesKilled, postgresKilled, everythingKilled
    /// SIGSTOP for 1 to 15 seconds: an owner that others replace meanwhile wakes as a zombie.
    case ownerPaused, nodePaused
    /// SIGTERM: a handover.
    case ownerStopped
    /// `hearth cluster drain`, and then `--undo`.
    case ownerDrained
    /// A node is killed and loses its directory, so another one joins in its place.
    case nodeEmptied
    /// A node is killed and gets an older copy of its directory: in another place, or the same one.
    case nodeRestored
    case rulesDeployed
    /// Somebody writes another owner into the tables, with a new epoch.
    case ownerForged
  }

  private static let environment = ProcessInfo.processInfo.environment
  private static let count = environment["CLUSTER_FAULTS"].flatMap { Int($0) } ?? Fault.allCases.count
  private static let only = environment["CLUSTER_FAULT"].map { Fault(rawValue: $0) }
  private static let seed = TestSeeds.of("CLUSTER_SEED", otherwise: [1])[0]
  /// So many faults happen to one cluster. Then its content is checked, and the next cluster is made.
  private static let faultsPerCluster = 25
  /// The bounds of what a node and PostgreSQL use at most.
  private static let (mebibytesMax, descriptorsMax, logMebibytesMax) = (256, 200, 32)

  @Test(.timeLimit(.minutes(10 + 2 * count))) func nothingIsLostInRandomFaults() async throws {
    try await onDedicatedThread {
      let kinds = try Self.only.map { [try #require($0, "CLUSTER_FAULT names no fault")] } ?? Fault.allCases
      try #require(Self.count > 0)
      print("CLUSTER_SEED=\(Self.seed)")
      // The kinds have a generator of their own, because the parts that a fault needs depend on times.
      var (dealer, random) = (SplitMix(seed: Self.seed), SplitMix(seed: Self.seed &+ 1))
      var faults: [Fault] = []
      while faults.count < Self.count { faults += kinds.shuffled(using: &dealer) }
      faults.removeLast(faults.count - Self.count)
      var pauses: [Fault: [Int]] = [:]
      for first in stride(from: 0, to: Self.count, by: Self.faultsPerCluster) {
        let next = Array(faults[first..<min(first + Self.faultsPerCluster, Self.count)])
        for (fault, pause) in try Self.run(next, &random) { pauses[fault, default: []].append(pause) }
      }
      print("CLUSTER_SEED=\(Self.seed): \(Self.count) faults\n\(Self.table(pauses))")
      // With a margin for loaded machines; see docs/performance.md.
      for pause in pauses[.ownerKilled] ?? [] { #expect(pause < 15_000, "CLUSTER_SEED=\(Self.seed)") }
    }
  }

  /// Lets the faults happen to a new cluster, and checks it. Returns the longest time without a commit after each.
  private static func run(_ faults: [Fault], _ random: inout SplitMix) throws -> [(Fault, Int)] {
    let run = try FaultRun(ServedCluster(serving: ["--snapshot-log", "2M", "--kept-log", "1s"]))
    let story = "CLUSTER_SEED=\(seed), \(faults.map(\.rawValue).joined(separator: ", "))"
    var pauses: [(Fault, Int)] = []
    for (number, fault) in faults.enumerated() {
      do {
        pauses.append((fault, try run.pause { try cause(fault, run, &random) }))
      } catch {
        Issue.record("\(story): \(fault), the fault \(number + 1): \(error)")
        throw error
      }
      try expectBounds(run.cluster, story)
    }
    let failures = try run.finish(story)
    // The nodes that stay send again what a killed one did not answer.
    if Set(faults).isSubset(of: [.ownerKilled, .nodeKilled]) { #expect(failures == 0, "\(story)") }
    return pauses
  }

  private static func cause(_ fault: Fault, _ run: FaultRun, _ random: inout SplitMix) throws {
    let cluster = run.cluster
    let postgres = try #require(cluster.postgres as? PostgresServer)
    let node = random.pick(cluster.nodes.indices)
    let order = cluster.nodes.indices.shuffled(using: &random)
    switch fault {
    case .ownerKilled:
      let owner = try cluster.owner()
      cluster.kill(owner)
      _ = try cluster.owner(after: owner)
      try cluster.restart(owner)
    case .nodeKilled:
      cluster.kill(node)
      try cluster.restart(node)
    case .allNodesKilled:
      for node in order { cluster.kill(node) }
      for node in order.reversed() { try cluster.restart(node) }
    case .postgresKilled:
      postgres.kill()
      try postgres.restart()
    case .everythingKilled:
      for node in order.prefix(2) { cluster.kill(node) }
      postgres.kill()
      cluster.kill(order[2])
      try postgres.restart()
      for node in order { try cluster.restart(node) }
    case .ownerPaused: try pause(cluster.owner(), run, &random)
    case .nodePaused: try pause(node, run, &random)
    case .ownerStopped:
      let owner = try cluster.owner()
      let process = cluster.nodes[owner].process
      process.send(signal: SIGTERM)
      #expect(process.waitForExit(timeoutSeconds: 30) == .code(0), "\(process.output.suffix(4000))")
      try cluster.restart(owner)
    case .ownerDrained:
      let number = try #require(try cluster.status()["owner"]?.integerValue)
      for options in [[], ["--undo"]] {
        let drained = try HearthBinary.run(["cluster", "drain", cluster.url, "\(number)"] + options)
        #expect(drained.exit == .code(0), "\(drained.output)")
      }
    case .nodeEmptied:
      cluster.kill(node)
      try FileManager.default.removeItem(atPath: cluster.data(of: node))
      try cluster.restart(node)
    case .nodeRestored:
      cluster.kill(node)
      try copy(cluster.data(of: node), to: "\(cluster.data(of: node)).old")
      try cluster.restart(node)
      try run.commit(500)
      cluster.kill(node)
      try restore(cluster.data(of: node), inPlace: random.chance(oneIn: 2))
      try cluster.restart(node)
    case .ownerForged:
      let status = try cluster.status()
      let numbers = (status["nodes"]?.elements ?? []).compactMap { $0["node"]?.integerValue }
      let number = random.pick(numbers.filter { $0 != status["owner"]?.integerValue })
      try postgres.sql(
        """
        UPDATE hearth_cluster SET owner = \(number), epoch = epoch + 1,
          owner_session = (SELECT session FROM hearth_node WHERE node = \(number))
        """, in: "hearth")
    case .rulesDeployed:
      let rules = try cluster.directory.write("next.rules", ServedCluster.openRules + "// \(random.next())\n")
      let deployed = try HearthBinary.run(["cluster", "deploy", cluster.url, "--rules", rules])
      #expect(deployed.exit == .code(0), "\(deployed.output)")
    }
  }

  /// Replaces a data directory by its older copy. In place, it keeps its lock file, and so the number of its node.
  private static func restore(_ data: String, inPlace: Bool) throws {
    let old = "\(data).old"
    if inPlace {
      for name in try FileManager.default.contentsOfDirectory(atPath: data) where name != "hearth.lock" {
        try FileManager.default.removeItem(atPath: "\(data)/\(name)")
      }
      try copy("\(old)/.", to: data)
      try FileManager.default.removeItem(atPath: old)
    } else {
      try FileManager.default.removeItem(atPath: data)
      try FileManager.default.moveItem(atPath: old, toPath: data)
    }
  }

  private static func copy(_ source: String, to target: String) throws {
    let process = try ServerProcess(
      executable: "/usr/bin/env", arguments: ["cp", "-a", "--sparse=always", source, target])
    try #require(process.waitForExit(timeoutSeconds: 60) == .code(0), "\(process.output)")
  }

  private static func pause(_ node: Int, _ run: FaultRun, _ random: inout SplitMix) throws {
    let process = run.cluster.nodes[node].process
    process.send(signal: SIGSTOP)
    OtherProcess.send(signal: SIGCONT, to: process, afterRandom: 1000...15_000, &random)
    try run.waitUntilServing(node, "after a pause")
  }

  /// Expects that no node uses too much memory or too many descriptors, and that the log is shortened.
  private static func expectBounds(_ cluster: ServedCluster, _ story: String) throws {
    for (index, node) in cluster.nodes.enumerated() {
      guard let use = ProcessUse(of: node.process.processID) else { continue }
      #expect(use.mebibytes < mebibytesMax && use.descriptors < descriptorsMax, "\(story): node \(index + 1): \(use)")
    }
    // The space that PostgreSQL has not freed yet does not count.
    let size = try cluster.postgres.sql("SELECT coalesce(sum(length(body)), 0) >> 20 FROM hearth_log", in: "hearth")
    #expect(try #require(Int(size)) < logMebibytesMax, "\(story): the log")
  }

  private static func table(_ pauses: [Fault: [Int]]) -> String {
    let rows = Fault.allCases.compactMap { fault -> String? in
      guard let times = pauses[fault]?.sorted() else { return nil }
      let (middle, high) = (times[times.count / 2], times[min(times.count * 99 / 100, times.count - 1)])
      let name = fault.rawValue.padding(toLength: 20, withPad: " ", startingAt: 0)
      return "  \(name)\(times.count) times, without a commit for "
        + "\(middle) ms (median), \(high) ms (p99), \(times.last ?? 0) ms (longest)"
    }
    return rows.joined(separator: "\n")
  }
}
