import Foundation
import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import Testing
import TestSupport

@Suite struct ConcurrencyTests {
  /// Runs `body` on `count` new threads and waits for all of them.
  private func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) {
    let errors = TestSupport.onThreads(count) { thread -> (any Error)? in
      do { try body(thread) } catch { return error }
      return nil
    }
    for error in errors { if let error { Issue.record(error) } }
  }

  private static let keys: [Bytes] = (1...12).map { [UInt8($0)] } + (1...6).map { Bytes(repeating: 7, count: 400 * $0) }

  @Test func everySnapshotIsOneStateWithAllAcknowledgedWrites() throws {
    try checkSnapshots(of: LMDBStore.open(.inMemory()))
  }

  /// The tables are flushed after each commit, after several, or never.
  @Test(arguments: [1, 30_000, 1 << 30])
  func everySnapshotOfAStoreWithALogIsOneState(memtableBytesMax: Int) throws {
    let directory = try TemporaryDirectory()
    var settings = LoggedStoreSettings()
    settings.memtableBytesMax = memtableBytesMax
    settings.flushOperationsMax = 5
    try checkSnapshots(of: LoggedStore.open(LMDBOptions(path: directory.file("data.mdb")), settings: settings))
  }

  private func checkSnapshots(of store: any KeyValueStore) throws {
    let acknowledged = Atomic<Int>(0)
    let rounds = 300
    try store.put(Self.keys.map { Entry($0, [0, 0]) })
    onThreads(4) { thread in
      if thread == 0 {
        for round in 1...rounds {
          try store.put(Self.keys.map { Entry($0, [UInt8(round >> 8), UInt8(round & 0xFF)]) })
          acknowledged.store(round, ordering: .releasing)
        }
        return
      }
      var last = 0
      while last < rounds {
        let before = acknowledged.load(ordering: .acquiring)
        let snapshot = try store.snapshot()
        let entries = try snapshot.entries()
        let round = Int(entries[0].value[0]) << 8 | Int(entries[0].value[1])
        #expect(entries.map(\.key) == Self.keys.sorted { $0.lexicographicallyPrecedes($1) })
        #expect(entries.allSatisfy { $0.value == entries[0].value }, "one snapshot mixes two commits")
        #expect(round >= max(before, last))
        last = round
        snapshot.end()
      }
    }
    #expect(try store.statistics().readers == 0)
  }

  @Test func writersTakeTurns() throws {
    let store = try LMDBStore.open(.inMemory())
    try store.put([Entry([1], [0, 0])])
    onThreads(4) { _ in
      for _ in 0..<100 {
        try store.write { transaction throws(StorageError) in
          let value = try transaction.get([1]) ?? []
          let count = Int(value[0]) << 8 + Int(value[1]) + 1
          try transaction.put([1], [UInt8(count >> 8), UInt8(count & 0xFF)])
        }
      }
    }
    #expect(try store.entries() == [Entry([1], [1, 144])])
  }

  @Test func readerSlotsRunOutAndComeBack() throws {
    let store = try LMDBStore.open(.inMemory(readersMax: 10))
    var held: [any KeyValueSnapshot] = []
    #expect(throws: StorageError.tooManyReaders(limit: 10)) {
      while held.count < 100 { held.append(try store.snapshot()) }
    }
    #expect(held.count == 10)
    held.removeLast().end()
    held.append(try store.snapshot())
    // Dropping a snapshot ends it too.
    held.removeAll()
    for _ in 0..<10 { held.append(try store.snapshot()) }
    #expect(held.count == 10)
  }

  @Test func aCopyTakenWhileWritingIsOneState() throws {
    let directory = try TemporaryDirectory()
    let store = try LMDBStore.open(.inMemory())
    try store.put(Self.keys.map { Entry($0, [0, 0]) })
    let copies = (0..<5).map { directory.file("copy-\($0)") }
    let isDone = Atomic<Bool>(false)
    onThreads(2) { thread in
      if thread == 0 {
        for copy in copies { try store.copy(toFile: copy) }
        isDone.store(true, ordering: .releasing)
        return
      }
      var round = 0
      while !isDone.load(ordering: .acquiring) {
        round += 1
        try store.put(Self.keys.map { Entry($0, [UInt8(round >> 8 & 0xFF), UInt8(round & 0xFF)]) })
      }
    }
    for copy in copies {
      let opened = try LMDBStore.open(LMDBOptions(path: copy, readOnly: true))
      let entries = try opened.entries()
      #expect(entries.count == Self.keys.count)
      #expect(entries.allSatisfy { $0.value == entries[0].value })
      #expect(try opened.verify().entries == Self.keys.count)
    }
  }
}
