import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import Testing
import TestSupport

/// The table of a log that was read again has the state of the store that wrote it.
@Suite struct RecoveredTableTests {
  /// Keys that are parts of each other, that end in zeros, and that differ late, since recovery sorts keys piece by piece.
  private static func key(_ random: inout SplitMix) -> Bytes {
    let stems: [Bytes] = [[], [0], [0, 0], [7], Bytes(repeating: 5, count: 6), Bytes(repeating: 5, count: 700)]
    let count = Int.random(in: 1...16, using: &random)
    return random.pick(stems) + (0..<count).map { _ in random.pick([0, 0, 1, 255] as Bytes) }
  }

  @Test(arguments: TestSeeds.of("HEARTH_RECOVERY_SEED", otherwise: Array(1...20)))
  func itHasEveryKeyInOrder(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let disk = SimulatedDisk(seed: seed)
    var settings = LoggedStoreSettings()
    settings.flushesInline = true
    settings.singleRemovalsMax = 3
    let stored = (0..<40).map { _ in Entry(Self.key(&random), [1]) }
    try SimulatedBase(disk).write { transaction throws(StorageError) in
      for entry in stored { try transaction.put(entry.key, entry.value) }
    }
    let first = try LoggedStore.open(SimulatedBase(disk), folder: SimulatedFolder(disk), settings: settings)
    // It is not closed before the end, as if it was killed.
    defer { withExtendedLifetime(first) {} }
    for number in 0..<60 {
      let count = Int.random(in: 1...20, using: &random)
      try first.write { transaction throws(StorageError) in
        for _ in 0..<count {
          let key = Self.key(&random)
          switch Int.random(in: 0..<20, using: &random) {
          case 0..<14: try transaction.put(key, Bytes(repeating: UInt8(number), count: count))
          case 14..<19: try transaction.remove(key)
          default: try transaction.removeRange(from: key, to: key + [200])
          }
        }
      }
    }
    let expected = try first.entries()
    #expect(expected.count > 100)
    #expect(disk.state.withLock { $0.entries.count } <= stored.count, "only the log has the commits")
    let second = try LoggedStore.open(SimulatedBase(disk), folder: SimulatedFolder(disk), settings: settings)
    #expect(try second.entries() == expected, "seed \(seed)")
    #expect(try second.snapshot().entriesBackwards() == expected.reversed(), "seed \(seed)")
    for entry in expected { #expect(try second.snapshot().get(entry.key) == entry.value, "seed \(seed)") }
    // Further commits find their places between the recovered keys.
    for entry in stored { try second.put([Entry(entry.key + [0], [2]), Entry(entry.key, [3])]) }
    let all = try second.entries()
    #expect(all == all.sorted { $0.key.lexicographicallyPrecedes($1.key) }, "seed \(seed)")
    try second.flush()
    #expect(try second.entries() == all, "seed \(seed)")
  }
}
