import Foundation
import KeyValue
import LMDBEngine
import Testing
import TestSupport

@Suite struct DurabilityTests {
  private static let entries = [
    Entry([1], [1]), Entry([2], Bytes(repeating: 2, count: 10_000)),
    Entry(Bytes(repeating: 3, count: 4000), [3]),
  ]

  @Test func aReopenedStoreHasItsData() throws {
    let directory = try TemporaryDirectory()
    let options = LMDBOptions(path: directory.file("data.mdb"))
    try LMDBStore.open(options).put(Self.entries)
    #expect(try directory.fileNames == ["data.mdb", "data.mdb-lock"])
    var store: LMDBStore? = try LMDBStore.open(options)
    #expect(try store?.entries() == Self.entries)
    try store?.put([Entry(Bytes(repeating: 4, count: 4000), [4])])
    store = nil
    store = try LMDBStore.open(LMDBOptions(path: options.path, readOnly: true))
    #expect(try store?.entries().count == 4)
    #expect(try store?.verify().nodes == 14)
  }

  @Test func aReadOnlyStoreRefusesWrites() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("data.mdb")
    #expect(throws: StorageError.system(operation: "open", path: path, code: ENOENT)) {
      try LMDBStore.open(LMDBOptions(path: path, readOnly: true))
    }
    try LMDBStore.open(LMDBOptions(path: path)).put(Self.entries)
    let store = try LMDBStore.open(LMDBOptions(path: path, readOnly: true))
    #expect(throws: StorageError.system(operation: "write", path: path, code: EROFS)) {
      try store.put(Self.entries)
    }
    #expect(try store.entries() == Self.entries)
  }

  @Test func aKilledProcessLosesOnlyUncommittedWrites() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("data.mdb")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let store = try LMDBStore.open(LMDBOptions(path: path))
      try store.put(DurabilityTests.entries)
      let snapshot = try store.snapshot()
      try store.write { transaction throws(StorageError) in
        try transaction.put([9], [9])
        try transaction.remove([1])
        kill(getpid(), SIGKILL)
      }
      snapshot.end()
    }
    let store = try LMDBStore.open(LMDBOptions(path: path))
    #expect(try store.entries() == Self.entries)
    #expect(try store.statistics().readers == 0)
    try store.put([Entry([9], [9])])
    _ = try store.verify()
  }

  @Test func anotherProcessMayReadAnOpenStoreAndDie() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("data.mdb")
    let store = try LMDBStore.open(LMDBOptions(path: path))
    try store.put(Self.entries)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let other = try LMDBStore.open(LMDBOptions(path: path, readOnly: true))
      #expect(try other.verify().entries == 3)
      let snapshot = try other.snapshot()
      #expect(try other.statistics().readers == 1)
      kill(getpid(), SIGKILL)
      snapshot.end()
    }
    #expect(try store.statistics().readers == 0, "the slot of a dead process is still in use")
    try store.put([Entry([9], [9])])
    #expect(try store.entries().count == 4)
  }

  @Test func inMemoryStoresLeaveNoFile() throws {
    let store = try LMDBStore.open(.inMemory())
    try store.put(Self.entries)
    #expect(!FileManager.default.fileExists(atPath: store.path))
    #expect(!FileManager.default.fileExists(atPath: store.path + "-lock"))
    #expect(try store.entries() == Self.entries)
    #expect(try store.statistics().fileBytes > 0)
  }

  @Test func copiesOpenOnDiskAndInMemory() throws {
    let directory = try TemporaryDirectory()
    let store = try LMDBStore.open(.inMemory())
    for round: UInt8 in 0..<50 { try store.put([Entry([round], Bytes(repeating: round, count: 9000))]) }
    try store.put(Self.entries)
    let all = try store.entries()
    let fork = try LMDBStore.openInMemory(copyOf: store)
    #expect(try fork.entries() == all)
    try fork.put([Entry([77], [77])])
    #expect(try store.entries() == all)
    let path = directory.file("copy.mdb")
    try fork.copy(toFile: path)
    #expect(try directory.fileNames == ["copy.mdb"])
    #expect(throws: StorageError.system(operation: "open", path: path, code: EEXIST)) {
      try store.copy(toFile: path)
    }
    let copy = try LMDBStore.open(LMDBOptions(path: path))
    #expect(try copy.entries() == fork.entries())
    try copy.put([Entry(Bytes(repeating: 3, count: 4001), [1])])
    #expect(try copy.verify().entries == all.count + 2)
    // An empty store can be copied, too.
    #expect(try LMDBStore.openInMemory(copyOf: .open(.inMemory())).entries() == [])
  }

  @Test(arguments: [LMDBOptions.Durability.inMemory, .durable])
  func aFullMapKeepsItsDataAndAllowsDeletes(_ durability: LMDBOptions.Durability) throws {
    let directory = try TemporaryDirectory()
    let limit = 1 << 20
    let store = try LMDBStore.open(
      LMDBOptions(path: directory.file("data.mdb"), mapBytes: limit, durability: durability))
    var stored: [Entry] = []
    #expect(throws: StorageError.storageFull(limitBytes: limit)) {
      while stored.count < 10_000 {
        let entry = Entry([1, UInt8(stored.count >> 8), UInt8(stored.count & 0xFF)], Bytes(repeating: 1, count: 1500))
        try store.put([entry])
        stored.append(entry)
      }
    }
    #expect(stored.count > 200)
    #expect(try store.entries() == stored)
    // If the caller ignores an error, the transaction must not be committed in part.
    #expect(throws: StorageError.storageFull(limitBytes: limit)) {
      try store.write { transaction throws(StorageError) in
        try transaction.put([0], [0])
        do { try transaction.put([2], Bytes(repeating: 2, count: limit)) } catch {}
      }
    }
    #expect(try store.entries() == stored)
    while let entry = stored.popLast() {
      try store.write { transaction throws(StorageError) in try transaction.remove(entry.key) }
    }
    #expect(try store.entries() == [])
    try store.put(Self.entries)
    #expect(try store.entries() == Self.entries)
  }
}
