import Dispatch
import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import Testing
import TestSupport

/// The work of a flush beside writers and readers.
@Suite struct FlushTests {
  private static let keys = 1000

  private func key(_ number: Int) -> Bytes { withUnsafeBytes(of: UInt32(number).bigEndian) { Bytes($0) } }

  private func fill(_ base: CountedBase) throws -> LoggedStore {
    var settings = LoggedStoreSettings()
    settings.budget = MemtableBudget(tablesBytesMax: 8 << 20, filledBytesMax: 8 << 20)
    settings.idleSeconds = 3600
    settings.flushOperationsMax = 500
    settings.quietFlushOperationsMax = 50
    let store = try LoggedStore.open(base, folder: SimulatedFolder(SimulatedDisk(seed: 1)), settings: settings)
    try store.put((0..<Self.keys).map { Entry(key($0), [1]) })
    base.take()
    return store
  }

  /// A flush that nobody waits for divides its work, so that it holds little memory and other threads get their turns.
  @Test func aFlushThatNobodyAwaitsIsDivided() throws {
    let base = CountedBase(try LMDBStore.open(.inMemory()))
    let store = try fill(base)
    store.flushIfIdle()
    #expect(base.take() >= Self.keys / 50)
    #expect(try base.snapshot().entries().count == Self.keys)
    try store.put((0..<Self.keys).map { Entry(key($0), [2]) })
    try store.flush()
    // One of them may have begun before the store was flushed.
    #expect(base.take() <= Self.keys / 500 + 2)
    #expect(try base.snapshot().entries().allSatisfy { $0.value == [2] })
  }

  /// The flush of an idle store waits until a writer has committed, so the writer cannot wait for the flush.
  @Test func writersGoOnDuringTheFlushOfAnIdleStore() throws {
    let base = CountedBase(try LMDBStore.open(.inMemory()))
    let store = try fill(base)
    let later = Entry(key(5000), [5])
    base.beforeNext {
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global().async {
        try? store.put([later])
        done.signal()
      }
      done.wait()
    }
    store.flushIfIdle()
    #expect(try store.entries().count == Self.keys + 1)
    #expect(try base.snapshot().entries().count == Self.keys)
    store.flushIfIdle()
    store.flushIfIdle()
    #expect(try base.snapshot().entries().count == Self.keys + 1)
  }

  /// The further the active table is ahead of the flush, the longer a writer waits. None waits for the end of the
  /// flush.
  @Test func writersSlowDownAsTheirTableFills() throws {
    let base = CountedBase(try LMDBStore.open(.inMemory()))
    let steps = Atomic(0)
    let stepsMax = 100
    var settings = LoggedStoreSettings()
    settings.budget = MemtableBudget(tablesBytesMax: 4 << 20, filledBytesMax: 2 << 20)
    settings.memtableBytesMax = 1 << 20
    settings.idleSeconds = 3600
    settings.pauseMicrosecondsMax = stepsMax * 1000
    settings.pause = { _ in steps.add(1, ordering: .relaxed) }
    let store = try LoggedStore.open(base, folder: SimulatedFolder(SimulatedDisk(seed: 1)), settings: settings)
    let isHeld = DispatchSemaphore(value: 0)
    try store.put([Entry(key(0), [])])
    base.beforeNext { _ = isHeld.wait(timeout: .now() + 60) }
    var waits: [Int] = []
    // With more commits, the second table would be full, and the writer would wait for the flush.
    while waits.last != stepsMax, waits.count < 1500 {
      let before = steps.load(ordering: .relaxed)
      try store.put([Entry(key(waits.count), Bytes(repeating: 1, count: 1000))])
      waits.append(steps.load(ordering: .relaxed) - before)
    }
    #expect(waits == waits.sorted())
    // The first table is full, and the second one is filled by a quarter.
    #expect((1000..<1400).contains(waits.count), "\(waits.count)")
    #expect(Set(waits).count > 3 && waits.last == stepsMax, "\(Set(waits).sorted())")
    isHeld.signal()
    try store.flush()
    #expect(try base.snapshot().entries().count == waits.count)
  }
}

/// A data file that counts its transactions, and does something before one of them.
private final class CountedBase: MarkedStore {
  private let base: LMDBStore
  private let state = Mutex<(transactions: Int, next: (@Sendable () -> Void)?)>((0, nil))
  let path = "data"

  init(_ base: LMDBStore) { self.base = base }

  /// Returns the number of transactions since the last call.
  @discardableResult
  func take() -> Int {
    state.withLock { state in
      defer { state.transactions = 0 }
      return state.transactions
    }
  }

  func beforeNext(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.next = body } }

  func snapshot() throws(StorageError) -> any KeyValueSnapshot { try base.snapshot() }
  func logMark() throws(StorageError) -> LogMark? { try base.logMark() }
  func copy(toFile path: String) throws(StorageError) { try base.copy(toFile: path) }
  func statistics() throws(StorageError) -> KeyValueStatistics { try base.statistics() }

  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    try base.write(body)
  }

  func writeMarked(_ body: (any KeyValueTransaction) throws(StorageError) -> LogMark?) throws(StorageError) {
    let next = state.withLock { state in
      state.transactions += 1
      defer { state.next = nil }
      return state.next
    }
    next?()
    try base.writeMarked(body)
  }
}
