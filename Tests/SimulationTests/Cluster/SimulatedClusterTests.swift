import Testing
import TestSupport

/// Random histories of whole nodes. A failure prints the seed. `HEARTH_NODES_SEED=N` runs one seed, and `random` a new
/// one.
@Suite struct SimulatedClusterTests {
  private static let seeds = TestSeeds.of("HEARTH_NODES_SEED", otherwise: Array(1...200))
  private static let steps = 2500

  private struct Outcome: Sendable {
    var seed: UInt64
    var failure: String?
    var counts = ClusterClients.Counts()
    var epochs: UInt64 = 0
    var snapshotsLoaded = 0
  }

  private static func play(seed: UInt64, _ fault: ClusterFault? = nil) throws -> Outcome {
    let cluster = try SimulatedCluster(seed: seed, fault)
    defer { cluster.end() }
    var outcome = Outcome(seed: seed)
    do {
      try cluster.play(steps: steps)
      try cluster.heal()
    } catch { outcome.failure = "\(error)\nThe last faults:\(cluster.lastFaults)" }
    (outcome.counts, outcome.epochs) = (cluster.counts, cluster.epochs)
    outcome.snapshotsLoaded = cluster.snapshotsLoaded
    return outcome
  }

  @Test func clientsOfAnyNodeSeeOneHistory() async throws {
    let outcomes = try await onDedicatedThread { try Self.seeds.map { try Self.play(seed: $0) } }
    for outcome in outcomes {
      if let failure = outcome.failure { Issue.record("seed \(outcome.seed): \(failure)") }
    }
    // The histories are not empty.
    guard outcomes.count > 1 else { return }
    func total(_ count: KeyPath<ClusterClients.Counts, Int>) -> Int {
      outcomes.reduce(0) { $0 + $1.counts[keyPath: count] }
    }
    let runs = outcomes.count
    #expect(total(\.commits) > 10 * runs && total(\.transactions) > 2 * runs && total(\.refused) > 2 * runs)
    #expect(total(\.ownerReads) > 10 * runs && total(\.followerReads) > 5 * runs && total(\.promises) > 5 * runs)
    #expect(total(\.ownerSnapshots) > 5 * runs && total(\.followerSnapshots) > 2 * runs)
    #expect(outcomes.reduce(0) { $0 + $1.epochs } > UInt64(3 * runs))
    #expect(outcomes.reduce(0) { $0 + $1.snapshotsLoaded } > runs / 10)
  }

  @Test(arguments: ClusterFault.allCases) func faultsAreNoticed(_ fault: ClusterFault) async throws {
    let failure = try await onDedicatedThread {
      for seed in 1...400 as ClosedRange<UInt64> {
        if let failure = try Self.play(seed: seed, fault).failure { return failure }
      }
      return ""
    }
    let expected =
      switch fault {
      case .ownerNotAsked: ["a read at a follower", "was acknowledged before"]
      case .leaseNeverEnds: ["a read at the owner", "was promised", "was acknowledged before"]
      case .floorIgnored: ["was promised"]
      case .commitsNotNoted: ["no progress without faults"]
      case .repeatedAsNew: ["the log has"]
      }
    #expect(expected.contains { failure.contains($0) }, "\(fault): \(failure)")
  }

  /// Otherwise a failure could not be repeated.
  @Test func aSeedDecidesEverything() async throws {
    let outcomes = try await onDedicatedThread { try (0..<2).map { _ in try Self.play(seed: 5) } }
    #expect("\(outcomes[0])" == "\(outcomes[1])")
  }
}
