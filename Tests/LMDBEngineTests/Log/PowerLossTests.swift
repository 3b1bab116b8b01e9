import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import Testing
import TestSupport

/// Random transactions on a store whose disk loses power or fails, again and again. Each acknowledged commit is there
/// after each crash, and of the transaction that was not, all or nothing.
///
/// A failure prints the seed. `HEARTH_POWER_SEED=N` runs one seed, and `random` a new one.
@Suite struct PowerLossTests {
  /// 150 seeds with 20 crashes each.
  private static let seeds = TestSeeds.of("HEARTH_POWER_SEED", otherwise: Array(1...150))
  private static let crashes = 20

  @Test func acknowledgedCommitsSurvive() throws {
    for seed in Self.seeds {
      var run = CrashRun(seed: seed)
      do { try run.play(crashes: Self.crashes) } catch { Issue.record("seed \(seed): \(error)") }
    }
  }

  /// Each call of the disk meets each fault, reads included, in a run that is otherwise the same.
  @Test(
    arguments: [SimulatedDisk.Fault.powerLoss, .lateLoss, .error(5), .error(28), .error(24)],
    [1, 2, 3, 5, 6, 7] as [UInt64])
  func eachCallFailsInTurn(_ fault: SimulatedDisk.Fault, seed: UInt64) throws {
    var call = 0
    var isReached = true
    while isReached {
      call += 1
      var run = CrashRun(seed: seed)
      do { isReached = try run.play(fault, atCall: call) } catch {
        throw CrashRun.Lost(description: "\(fault) at call \(call): \(error)")
      }
    }
    #expect(call > 30, "only \(call) calls")
  }

  /// Each mutation of the engine loses or damages something, and the test above would notice.
  @Test(arguments: CrashRun.Mutation.allCases)
  func mutationsAreNoticed(_ mutation: CrashRun.Mutation) {
    let noticed = (1...40 as ClosedRange<UInt64>).contains { seed in
      var run = CrashRun(seed: seed, mutation)
      do { try run.play(crashes: Self.crashes) } catch { return true }
      return false
    }
    #expect(noticed, "no seed notices \(mutation)")
  }
}

struct CrashRun {
  enum Mutation: CaseIterable {
    /// The log acknowledges a commit before it is on the disk.
    case noSync
    /// The data file acknowledges a flush before it is on the disk, so the log lets go of a segment too early.
    case lateFlush
    /// A flush does not note its position. Its commits are replayed twice, which changes nothing, but the log has let go of
    /// some of them.
    case noPosition
  }

  struct Lost: Error, CustomStringConvertible { var description: String }

  typealias Model = [Bytes: Bytes]

  private var random: SplitMix
  private let disk: SimulatedDisk
  private let settings: LoggedStoreSettings
  /// The state after the last transaction that was acknowledged.
  private var acknowledged: Model = [:]
  /// The states if one of the transactions that failed since then is there after all.
  private var doubtful: [Model] = []
  private var number = 0
  /// The most calls between two restarts of the disk.
  private var lastCalls = 0

  init(seed: UInt64, _ mutation: Mutation? = nil) {
    random = SplitMix(seed: seed)
    disk = SimulatedDisk(seed: seed &+ 1_000_000)
    disk.state.withLock { state in
      state.ignoresSync = mutation == .noSync
      state.losesLastCommit = mutation == .lateFlush
      state.dropsMarks = mutation == .noPosition
    }
    var settings = LoggedStoreSettings()
    // In the background, flushes and commits happen at the same time, so a seed does not decide the order of the calls.
    settings.flushesInline = !(seed.isMultiple(of: 4) && mutation == nil)
    settings.budget = MemtableBudget(tablesBytesMax: 1 << 30, filledBytesMax: 1 << 30)
    settings.memtableBytesMax = [1, 20_000, 60_000][Int(random.next() % 3)]
    settings.flushOperationsMax = [2, 5, 1000][Int(random.next() % 3)]
    settings.singleRemovalsMax = 2
    settings.log = FileLog.Sizes(segmentBytesMin: 4096, segmentBytesMax: [4096, 16384][Int(random.next() % 2)])
    self.settings = settings
  }

  mutating func play(crashes: Int) throws {
    for round in 0..<crashes {
      do {
        try playUntilCrash(plansFault: round + 1 < crashes)
      } catch {
        throw Lost(description: "round \(round): \(error); the last calls: \(disk.lastCalls)")
      }
    }
  }

  /// Opens the log that a loss of power left, writes and closes the store, with a fault at a call that counts from 1. Then
  /// does the same without a fault. Returns whether the call was reached.
  mutating func play(_ fault: SimulatedDisk.Fault, atCall call: Int) throws -> Bool {
    disk.state.withLock { $0.countsReads = true }
    disk.plan(.powerLoss, atCall: 35)
    try playUntilCrash(plansFault: false)
    lastCalls = 0
    disk.plan(fault, atCall: call)
    try playUntilCrash(plansFault: false)
    let isReached = lastCalls >= call
    try playUntilCrash(plansFault: false)
    return isReached
  }

  private mutating func playUntilCrash(plansFault: Bool) throws {
    if plansFault { planFault() }
    // Opening fails only if the disk does, and then succeeds once it works again.
    var store = try? open()
    if store == nil {
      lastCalls = max(lastCalls, disk.calls)
      disk.restart()
      store = try open()
      if plansFault { planFault() }
    }
    try check(store)
    for _ in 0..<(4 + random.next() % 20) where !disk.isOff { try write(to: store) }
    // Without a crash this closes the store, which may also meet the fault.
    store = nil
    lastCalls = max(lastCalls, disk.calls)
    // If only the process ends, the kernel keeps what was written.
    if disk.isOff || random.chance(oneIn: 2) { disk.restart() } else { disk.state.withLock { $0.fault = nil } }
  }

  private func open() throws -> LoggedStore {
    try LoggedStore.open(
      SimulatedBase(disk), folder: SimulatedFolder(disk), settings: settings, newSecret: 0xD15C)
  }

  private mutating func planFault() {
    let faults: [SimulatedDisk.Fault] = [.powerLoss, .powerLoss, .lateLoss, .error(5), .error(28)]
    disk.plan(faults[Int(random.next() % 5)], atCall: 1 + Int(random.next() % 60))
  }

  /// Checks the state after an opening, or after a transaction, and takes it as the acknowledged one.
  private mutating func check(_ store: LoggedStore?) throws {
    guard !disk.isOff, let store else { return }
    let entries: [Entry]
    do { entries = try store.entries() } catch {
      // A flush in the background may meet the loss of power at any time.
      guard disk.isOff else { throw error }
      return
    }
    let found = Model(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
    guard found == acknowledged || doubtful.contains(found) else {
      throw Lost(
        description: "found \(Self.text(found)), acknowledged \(Self.text(acknowledged)), in doubt "
          + doubtful.map(Self.text).joined(separator: " or "))
    }
    acknowledged = found
    doubtful = []
  }

  private mutating func write(to store: LoggedStore?) throws {
    guard let store else { return }
    var model = acknowledged
    var random = random
    number += 1
    let number = number
    do throws(StorageError) {
      try store.write { transaction throws(StorageError) in
        for step in 0..<(1 + random.next() % 4) {
          switch random.next() % 8 {
          case 0..<4:
            let key = Self.key(&random)
            let value = Bytes("\(number).\(step)".utf8) + Bytes(repeating: 7, count: Int(random.next() % 900))
            try transaction.put(key, value)
            model[key] = value
          case 4:
            // A counter, which a commit that is applied twice would change.
            let count = (try transaction.get([0])?.first ?? 0) &+ 1
            try transaction.put([0], [count])
            model[[0]] = [count]
          case 5..<7:
            let key = Self.key(&random)
            try transaction.remove(key)
            model[key] = nil
          default:
            let (a, b) = (Self.key(&random), Self.key(&random))
            try transaction.removeRange(from: a, to: b)
            for key in model.keys
            where !key.lexicographicallyPrecedes(a) && key.lexicographicallyPrecedes(b) { model[key] = nil }
          }
        }
      }
      acknowledged = model
      doubtful = []
    } catch {
      doubtful.append(model)
    }
    self.random = random
    // The open store shows exactly what it acknowledged.
    guard !disk.isOff else { return }
    let kept = doubtful
    doubtful = []
    try check(store)
    doubtful = kept
  }

  private static func key(_ random: inout SplitMix) -> Bytes { [1 + UInt8(random.next() % 14)] }

  private static func text(_ model: Model) -> String {
    model.sorted { $0.key.lexicographicallyPrecedes($1.key) }
      .map { "\($0.key[0]): \(String(decoding: $0.value.prefix { $0 != 7 }, as: UTF8.self))" }
      .joined(separator: ", ")
  }
}
