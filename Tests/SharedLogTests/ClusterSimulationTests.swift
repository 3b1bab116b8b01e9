import SharedLog
import Testing
import TestSupport

/// Random histories of a cluster. A failure prints the seed. `HEARTH_CLUSTER_SEED=N` runs one seed, and `random` a new one.
@Suite struct ClusterSimulationTests {
  private static let seeds = TestSeeds.of("HEARTH_CLUSTER_SEED", otherwise: Array(1...1000))
  private static let steps = 1500

  @Test func theClusterKeepsItsPromises() {
    var total = ClusterWitness.Counts()
    for seed in Self.seeds {
      var run = ClusterRun(seed: seed)
      do {
        try run.play(steps: Self.steps)
        try run.heal()
      } catch { Issue.record("seed \(seed): \(error)") }
      let counts = run.witness.counts
      total.acknowledged += counts.acknowledged
      total.refused += counts.refused
      total.unknown += counts.unknown
      total.reads += counts.reads
      total.promises += counts.promises
      total.takeovers += counts.takeovers
      total.handovers += counts.handovers
      total.losses += counts.losses
    }
    // The histories are not empty.
    guard Self.seeds.count > 1 else { return }
    let runs = Self.seeds.count
    #expect(total.acknowledged > 10 * runs && total.reads > 10 * runs && total.promises > 2 * runs, "\(total)")
    #expect(total.takeovers > 3 * runs && total.handovers > runs / 2, "\(total)")
    #expect(total.refused > runs / 100 && total.unknown > 0 && total.losses > runs / 10, "\(total)")
  }

  @Test(arguments: ClusterMutation.allCases)
  func mutationsAreNoticed(_ mutation: ClusterMutation) {
    let noticed = (1...1000 as ClosedRange<UInt64>).first { seed in
      var run = ClusterRun(seed: seed, mutation)
      do { try run.play(steps: Self.steps) } catch { return true }
      return false
    }
    #expect(noticed != nil, "no seed notices \(mutation)")
  }
}
