import KeyValue
import LMDBEngine
import LogEngine
import SharedLog
import Synchronization
import Testing
import TestSupport

/// A ``LoggedStore`` whose log is shared: the engine that a single server has, behind tables that lose answers.
@Suite struct OwnedLogTests {
  /// The tables of a ``TableState``, whose requests or answers are lost now and then.
  private final class FaultyTables: SharedTables {
    struct State {
      var tables: TableState
      var random: SplitMix
      /// One request in so many has a fault; `nil` for none.
      var faultIn: Int?
    }

    let state: Mutex<State>

    init(seed: UInt64, faultIn: Int?) {
      let tables = TableState(secret: 7, skew: 0)
      state = Mutex(State(tables: tables, random: SplitMix(seed: seed), faultIn: faultIn))
    }

    func perform(_ request: TableRequest) -> TableReply? {
      state.withLock { state in
        let isFaulty = state.faultIn.map { state.random.chance(oneIn: $0) } ?? false
        if isFaulty, state.random.chance(oneIn: 2) { return nil }
        let (reply, _) = state.tables.perform(request)
        return isFaulty ? nil : reply
      }
    }
  }

  /// A node with a data file, and the store on it while it believes that it owns the log.
  private final class Node {
    let number: UInt32
    let base: LMDBStore
    var store: LoggedStore?
    private var session: UInt64 = 0

    init(_ number: UInt32) throws {
      self.number = number
      base = try LMDBStore.open(.inMemory(mapBytes: 16 << 20))
    }

    /// Ends the session of the owner, whose lease is over, and opens the store.
    func takeOver(_ tables: FaultyTables, repeats: @escaping @Sendable () -> Bool) throws {
      store = nil
      let after = try base.logOrigin()?.position.sequence ?? 0
      let entries = tables.state.withLock { state in
        let owner = state.tables.owner
        if let owner { state.tables.nodes[owner.node]?.isLive = false }
        let last = state.tables.nodes[number]?.session ?? 0
        _ = state.tables.perform(.beginSession(node: number, after: last, renewal: 0))
        session = state.tables.nodes[number]?.session ?? 0
        let mark = owner.map { OwnerMark(owner: $0, renewal: 0, isLive: false) }
        _ = state.tables.perform(
          .takeOver(by: NodeSession(node: number, session: session), from: mark, epoch: state.tables.epoch))
        return state.tables.entries.filter { $0.position.sequence > after }
      }
      #expect(entries.last.flatMap { TakeoverNote($0.body) }?.owner.node == number)
      var settings = LoggedStoreSettings()
      settings.flushesInline = true
      settings.memtableBytesMax = 2000
      store = try OwnedLog.open(
        base, entries: entries, tables, of: "p", secret: 7, settings: settings, repeats: repeats)
    }

    /// Adds 1 to the counter.
    func increment() throws {
      try #require(store).write { (transaction) throws(StorageError) in
        let count = try OwnedLogTests.count(transaction)
        try withBytes([1]) { (key) throws(StorageError) in
          try withBytes([count &+ 1]) { (value) throws(StorageError) in try transaction.put(key, value) }
        }
      }
    }

    func count() throws -> UInt8 {
      let snapshot = try #require(store).snapshot()
      defer { snapshot.end() }
      return try OwnedLogTests.count(snapshot)
    }
  }

  private static func count(_ snapshot: any KeyValueSnapshot) throws(StorageError) -> UInt8 {
    var count: UInt8 = 0
    try withBytes([1]) { (key) throws(StorageError) in count = try snapshot.value(for: key)?.first ?? 0 }
    return count
  }

  /// Every increment that was acknowledged counts once, and one that was refused does not count.
  @Test func incrementsAreExact() throws {
    for seed in 1...40 as ClosedRange<UInt64> {
      var random = SplitMix(seed: seed)
      let tables = FaultyTables(seed: seed &+ 1000, faultIn: 4)
      let nodes = try [Node(1), Node(2)]
      // The owner, and the one that still believes to be.
      var owner = nodes[0]
      try owner.takeOver(tables) { true }
      var expected: UInt8 = 0
      for _ in 0..<60 {
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
          owner = owner === nodes[0] ? nodes[1] : nodes[0]
          try owner.takeOver(tables) { true }
          #expect(try owner.count() == expected, "seed \(seed)")
        case 1:
          let zombie = owner === nodes[0] ? nodes[1] : nodes[0]
          guard zombie.store != nil else { continue }
          #expect(throws: StorageError.notOwner(of: "p", owner: nil), "seed \(seed)") { try zombie.increment() }
        default:
          try owner.increment()
          expected += 1
          #expect(try owner.count() == expected, "seed \(seed)")
        }
      }
    }
  }

  /// An owner that does not wait for the outcome learns nothing, and commits nothing more.
  @Test func anAppendThatIsGivenUpHasAnUnknownOutcome() throws {
    let tables = FaultyTables(seed: 1, faultIn: nil)
    let node = try Node(1)
    try node.takeOver(tables) { false }
    try node.increment()
    tables.state.withLock { $0.faultIn = 1 }
    #expect {
      try node.increment()
    } throws: { error in
      if case .outcomeUnknown? = error as? StorageError { true } else { false }
    }
    tables.state.withLock { $0.faultIn = nil }
    #expect(throws: StorageError.notOwner(of: "p", owner: nil)) { try node.increment() }
    #expect(try node.count() == 1)
    // The next owner knows.
    let appended = tables.state.withLock { $0.tables.entries.count { $0.kind == .batch } }
    try node.takeOver(tables) { true }
    #expect(try Int(node.count()) == appended)
  }

  /// The entry may have been appended and truncated since, so its absence proves nothing.
  @Test func aTruncatedLogLeavesTheOutcomeUnknown() throws {
    let entry = SharedEntry(.batch, [1], after: LogPosition(sequence: 4, epoch: 2, chain: 5), epoch: 2, secret: 7)
    var append = EntryAppend(entry, behind: LogPosition(sequence: 4, epoch: 2, chain: 5))
    #expect(append.receive(.refused(found: nil)) == .refused)
    append = EntryAppend(entry, behind: LogPosition(sequence: 4, epoch: 2, chain: 5))
    #expect(append.receive(nil) == .perform(append.request))
    #expect(append.receive(.refused(found: nil)) == .unknown)
    #expect(append.receive(.refused(found: LogPosition(sequence: 5, epoch: 3, chain: 9))) == .refused)
    #expect(append.receive(.refused(found: entry.position)) == .perform(.settle(entry.position)))
    #expect(append.receive(.settled) == .appended)
  }

  @Test func aFileOfAnotherLogIsRefused() throws {
    let tables = FaultyTables(seed: 1, faultIn: nil)
    let node = try Node(1)
    try node.takeOver(tables) { true }
    try node.increment()
    node.store = nil
    #expect(throws: StorageError.self) {
      try OwnedLog.open(node.base, entries: [], tables, of: "q", secret: 8) { true }
    }
    #expect(throws: StorageError.self) {
      let entry = SharedEntry(.takeover, [], after: LogPosition(sequence: 9, epoch: 1, chain: 1), epoch: 2, secret: 7)
      _ = try OwnedLog.open(node.base, entries: [entry], tables, of: "p", secret: 7) { true }
    }
  }

  @Test func takeoverNotesHaveOneForm() {
    let note = TakeoverNote(owner: NodeSession(node: 3, session: 1 << 40), floor: -5)
    #expect(TakeoverNote(note.body) == note)
    #expect(TakeoverNote([1, 2, 3]) == nil)
  }
}

/// Calls `body` with bytes.
private func withBytes(
  _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(StorageError) -> Void
) throws(StorageError) {
  var failure: StorageError?
  bytes.withUnsafeBytes { bytes in
    do throws(StorageError) { try body(bytes) } catch { failure = error }
  }
  if let failure { throw failure }
}
