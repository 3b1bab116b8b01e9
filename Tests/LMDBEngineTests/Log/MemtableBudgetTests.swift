import Dispatch
import Glibc
import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import Testing
import TestSupport

/// Stores that share the memory of their memtables, and writers that are faster than the data file.
@Suite struct MemtableBudgetTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func key(_ number: Int) -> Bytes { withUnsafeBytes(of: UInt32(number).bigEndian) { Bytes($0) } }

  private func open(
    _ base: any MarkedStore, _ name: String, _ budget: MemtableBudget, in folder: (any LogFolder)? = nil,
    _ change: (inout LoggedStoreSettings) -> Void = { _ in }
  ) throws -> LoggedStore {
    var settings = LoggedStoreSettings()
    settings.budget = budget
    settings.idleSeconds = 3600
    change(&settings)
    return try LoggedStore.open(base, folder: folder ?? DiskFolder(path: directory.file(name)), settings: settings)
  }

  /// The store with the largest table is flushed when another one needs the memory, and the other one is not.
  @Test func theLargestTableIsFlushed() throws {
    let budget = MemtableBudget(tablesBytesMax: 1 << 20, filledBytesMax: 256 << 10)
    let bases = try (0..<2).map { _ in try LMDBStore.open(.inMemory()) }
    let flushes = Flushes(bases[0]) {}
    let stores = try [open(flushes, "a", budget), open(bases[1], "b", budget)]
    try stores[0].put([Entry(key(0), Bytes(repeating: 1, count: 200 << 10))])
    #expect(try bases[0].entries().isEmpty)
    for number in 0..<70 { try stores[1].put([Entry(key(number), Bytes(repeating: 2, count: 1000))]) }
    flushes.waitForFirst()
    #expect(try bases[0].entries().count == 1)
    #expect(try bases[1].entries().isEmpty)
    #expect(try stores[0].snapshot().get(key(0))?.count == 200 << 10)
    #expect(try stores[1].entries().count == 70)
    try stores[0].flush()
    try stores[1].flush()
    #expect(budget.freeBytes == 1 << 20)
  }

  /// The table of another store, which is being flushed, has all of the memory. So the writer waits for a flush of its own
  /// table.
  @Test func aWriterDoesNotExceedTheMemoryThatOthersFlush() throws {
    let budget = MemtableBudget(tablesBytesMax: 1 << 20, filledBytesMax: 1 << 20)
    let (begun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isHeld = Atomic(true)
    let slow = try Flushes(LMDBStore.open(.inMemory())) {
      guard isHeld.exchange(false, ordering: .relaxed) else { return }
      begun.signal()
      mayEnd.wait()
    }
    let first = try open(slow, "a", budget) { $0.memtableBytesMax = 900 << 10 }
    isHeld.store(false, ordering: .relaxed)
    // The first transaction opens the mark.
    try first.put([Entry(key(0), [1])])
    isHeld.store(true, ordering: .relaxed)
    try first.put([Entry(key(1), Bytes(repeating: 1, count: 1000 << 10))])
    begun.wait()
    defer { mayEnd.signal() }
    let base = try LMDBStore.open(.inMemory())
    let second = try open(base, "b", budget) { $0.memtableBytesMax = 900 << 10 }
    var least = Int.max
    for number in 0..<50 {
      try second.put([Entry(key(number), Bytes(repeating: 2, count: 50 << 10))])
      least = min(least, budget.freeBytes)
    }
    #expect(least > -(256 << 10), "\(least) bytes were free")
    #expect(try second.entries().count == 50 && base.entries().count > 40)
  }

  /// A closed store gives its memory back.
  @Test func anIdleStoreIsFlushed() throws {
    let budget = MemtableBudget(tablesBytesMax: 1 << 20, filledBytesMax: 1 << 20)
    let base = try LMDBStore.open(.inMemory())
    var store: LoggedStore? = try open(base, "log", budget)
    for number in 0..<10 { try store?.put([Entry(key(number), [1])]) }
    store?.flushIfIdle()
    #expect(try base.entries().isEmpty, "commits came after the timer was set")
    store?.flushIfIdle()
    #expect(try base.entries().count == 10)
    #expect(budget.freeBytes == 1 << 20)
    try store?.put([Entry(key(10), [1])])
    #expect(budget.freeBytes < 1 << 20)
    store = nil
    #expect(budget.freeBytes == 1 << 20)
    #expect(try base.entries().count == 11)
  }

  /// A release waits for the flush that runs, so the file can be opened again at once.
  @Test func aReleasedStoreIsClosed() throws {
    let options = LMDBOptions(path: directory.file("data.mdb"))
    let budget = MemtableBudget(tablesBytesMax: 8 << 20, filledBytesMax: 8 << 20)
    for round in 0..<30 {
      var store: LoggedStore? = try open(LMDBStore.open(options), "log", budget) { $0.memtableBytesMax = 1 }
      for number in 0..<3 { try store?.put([Entry(key(3 * round + number), Bytes(repeating: 1, count: 20_000))]) }
      store = nil
      #expect(try LMDBStore.open(options).entries().count == 3 * round + 3)
    }
  }

  /// Another store needs the memory at the moment of the release. The released store then begins no flush, which would
  /// mark the log as open after the release has removed it.
  @Test func aReleasedStoreIsNotFlushedAgain() throws {
    let options = LMDBOptions(path: directory.file("data.mdb"))
    let budget = MemtableBudget(tablesBytesMax: 4 << 20, filledBytesMax: 256 << 10)
    let other = try open(LMDBStore.open(.inMemory()), "other", budget)
    for round in 0..<100 {
      var store: LoggedStore? = try open(LMDBStore.open(options), "log", budget)
      #expect(try store?.entries().count == min(round, 1))
      try store?.put([Entry(key(0), Bytes(repeating: 1, count: 250 << 10))])
      try other.put([Entry(key(round), Bytes(repeating: 2, count: 16 << 10))])
      store = nil
      try other.flush()
      #expect(budget.freeBytes == 4 << 20)
    }
  }

  /// The data file takes ten times as long as the writers need to fill the tables. The memory stays within the budget, all
  /// commits succeed, and the writers wait a little each instead of one of them for a whole flush.
  @Test func writersKeepThePaceOfASlowDisk() throws {
    let budget = MemtableBudget(tablesBytesMax: 1 << 20, filledBytesMax: 640 << 10)
    let base = try LMDBStore.open(.inMemory())
    // A slow disk: 100 operations in 8 milliseconds, or 200 ms for a table.
    let slow = Flushes(base) {
      let end = ContinuousClock.now + .milliseconds(8)
      while ContinuousClock.now < end { sched_yield() }
    }
    let store = try open(slow, "log", budget, in: SimulatedFolder(SimulatedDisk(seed: 1))) { settings in
      settings.memtableBytesMax = 640 << 10
      settings.flushOperationsMax = 100
      settings.log = FileLog.Sizes(segmentBytesMin: 64 << 10, segmentBytesMax: 64 << 10)
    }
    let clock = ContinuousClock()
    var waits: [Duration] = []
    var leastFree = Int.max
    let began = clock.now
    for number in 0..<16_000 {
      let start = clock.now
      try store.put([Entry(key(number &* 2_654_435_761 & 0xFFFF_FFFF), Bytes(repeating: 3, count: 200))])
      waits.append(clock.now - start)
      leastFree = min(leastFree, budget.freeBytes)
    }
    let total = clock.now - began
    #expect(slow.flushes > 4)
    // One chunk of a table and one transaction beyond.
    #expect(leastFree > -(256 << 10), "\(leastFree) bytes were free")
    let longest = try #require(waits.max())
    #expect(longest < total / (2 * slow.flushes), "a writer waited \(longest), \(slow.flushes) flushes took \(total)")
    #expect(try store.entries().count == 16_000)
  }
}

/// A data file that counts the flushes to it, and does something before each transaction of one.
private final class Flushes: MarkedStore {
  private let base: LMDBStore
  private let before: @Sendable () -> Void
  private let count = Mutex(0)
  private let first = DispatchSemaphore(value: 0)
  let path = "data"

  init(_ base: LMDBStore, _ before: @escaping @Sendable () -> Void) { (self.base, self.before) = (base, before) }

  var flushes: Int { count.withLock { $0 } }
  /// Waits until a flush has ended.
  func waitForFirst() { first.wait() }

  func snapshot() throws(StorageError) -> any KeyValueSnapshot { try base.snapshot() }
  func logMark() throws(StorageError) -> LogMark? { try base.logMark() }
  func copy(toFile path: String) throws(StorageError) { try base.copy(toFile: path) }
  func statistics() throws(StorageError) -> KeyValueStatistics { try base.statistics() }

  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    try base.write(body)
  }

  func writeMarked(_ body: (any KeyValueTransaction) throws(StorageError) -> LogMark?) throws(StorageError) {
    before()
    var isMarked = false
    try base.writeMarked { (transaction) throws(StorageError) in
      let mark = try body(transaction)
      isMarked = mark != nil
      return mark
    }
    guard isMarked else { return }
    let number = count.withLock { count in
      count += 1
      return count
    }
    // The first transaction opens the mark.
    if number == 2 { first.signal() }
  }
}
