import Foundation
import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import Testing
import TestSupport

@Suite struct LoggedStoreTests {
  private static let entries = [
    Entry([1], [1]), Entry([2], Bytes(repeating: 2, count: 10_000)), Entry(Bytes(repeating: 3, count: 4000), [3]),
  ]
  private let directory: TemporaryDirectory
  private let options: LMDBOptions

  init() throws {
    directory = try TemporaryDirectory()
    options = LMDBOptions(path: directory.file("data.mdb"))
  }

  /// Closing removes the log, so the file is an ordinary one again.
  @Test func aClosedStoreIsAnOrdinaryDataFile() throws {
    try LMDBStore.open(options).put([Entry([9], [9])])
    var store: LoggedStore? = try LoggedStore.open(options)
    #expect(try directory.fileNames == ["data.mdb", "data.mdb-lock"])
    try store?.put(Self.entries)
    #expect(try directory.fileNames.contains("data.mdb-log"))
    store = nil
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("data.mdb-log")) == [])
    let plain = try LMDBStore.open(options)
    #expect(try plain.entries() == Self.entries + [Entry([9], [9])])
    #expect(try plain.logMark()?.isOpen == false)
    // Other commits follow that are not in the log.
    try plain.put([Entry([8], [8])])
    #expect(try plain.logMark() == nil)
    try plain.put([Entry([8], [9])])
  }

  @Test func aKilledStoreKeepsItsCommitsInTheLog() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = options.path as String] in
      let store = try LoggedStore.open(LMDBOptions(path: path))
      for entry in LoggedStoreTests.entries { try store.put([entry]) }
      try store.write { transaction throws(StorageError) in
        try transaction.put([9], [9])
        kill(getpid(), SIGKILL)
      }
    }
    // Without its log the file would show an old state.
    #expect(throws: StorageError.openLog(path: options.path)) { try LMDBStore.open(options) }
    var readOnly = options
    readOnly.readOnly = true
    #expect(throws: StorageError.openLog(path: options.path)) { try LMDBStore.open(readOnly) }
    try {
      let store = try LoggedStore.open(options)
      #expect(try store.entries() == Self.entries)
      try store.put([Entry([9], [9])])
    }()
    #expect(try LMDBStore.open(options).entries() == Self.entries + [Entry([9], [9])])
  }

  @Test func settlingMovesTheLogToTheFile() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = options.path as String] in
      try LoggedStore.open(LMDBOptions(path: path)).write { transaction throws(StorageError) in
        try transaction.put([7], [7])
      }
      let store = try LoggedStore.open(LMDBOptions(path: path))
      try store.put(LoggedStoreTests.entries)
      kill(getpid(), SIGKILL)
    }
    try LoggedStore.settle(options)
    #expect(try LMDBStore.open(options).entries() == Self.entries + [Entry([7], [7])])
    try LoggedStore.settle(options)
  }

  @Test func aMissingOrDamagedLogIsRefused() async throws {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = options.path as String] in
      let store = try LoggedStore.open(LMDBOptions(path: path))
      for entry in LoggedStoreTests.entries { try store.put([entry]) }
      kill(getpid(), SIGKILL)
    }
    let segment = directory.file("data.mdb-log/0000000000000001.log")
    let content = try Data(contentsOf: URL(fileURLWithPath: segment))
    var damaged = content
    damaged[130] ^= 1
    try damaged.write(to: URL(fileURLWithPath: segment))
    #expect(throws: StorageError.self) { try LoggedStore.open(options) }
    try FileManager.default.removeItem(atPath: segment)
    #expect(throws: StorageError.self) { try LoggedStore.open(options) }
    try content.write(to: URL(fileURLWithPath: segment))
    #expect(try LoggedStore.open(options).entries() == Self.entries)
  }

  @Test func aCopyHasNoLog() throws {
    let store = try LoggedStore.open(options)
    try store.put(Self.entries)
    let path = directory.file("copy.mdb")
    try store.copy(toFile: path)
    try store.put([Entry([9], [9])])
    #expect(try directory.fileNames.filter { $0.hasPrefix("copy") } == ["copy.mdb"])
    #expect(try LMDBStore.open(LMDBOptions(path: path)).entries() == Self.entries)
    #expect(throws: StorageError.system(operation: "open", path: path, code: EEXIST)) { try store.copy(toFile: path) }
  }

  /// The map is smaller than a memtable, so a flush fails after the commits were acknowledged.
  @Test func aFullMapKeepsWhatWasAcknowledged() throws {
    var settings = LoggedStoreSettings()
    settings.memtableBytesMax = 1 << 20
    let small = LMDBOptions(path: options.path, mapBytes: 512 << 10)
    var stored: [Entry] = []
    do {
      let store = try LoggedStore.open(small, settings: settings)
      #expect(throws: StorageError.storageFull(limitBytes: small.mapBytes)) {
        while stored.count < 10_000 {
          let key: Bytes = [1, UInt8(stored.count >> 8), UInt8(stored.count & 0xFF)]
          let entry = Entry(key, Bytes(repeating: 1, count: 1500))
          try store.put([entry])
          stored.append(entry)
        }
      }
      #expect(stored.count > 600)
      #expect(try store.entries() == stored)
    }
    // The log stays. With a larger map, everything goes to the file.
    #expect(try LoggedStore.open(options).entries() == stored)
    #expect(try LMDBStore.open(options).entries() == stored)
  }

  /// Operators see that a store accepts nothing, before a client does.
  @Test func aLogThatFailedIsKnown() throws {
    let disk = SimulatedDisk(seed: 4)
    let store = try LoggedStore.open(LMDBStore.open(.inMemory()), folder: SimulatedFolder(disk))
    try store.put([Entry([1], [1])])
    #expect(store.writeFailure == nil)
    // The record is written, and its sync fails.
    disk.plan(.error(5), atCall: 2)
    #expect(throws: StorageError.self) { try store.put([Entry([2], [2])]) }
    let failure = StorageError.system(operation: "fdatasync", path: "log", code: 5)
    #expect(store.writeFailure == failure)
    #expect(throws: failure) { try store.put([Entry([3], [3])]) }
    #expect(try store.entries() == [Entry([1], [1])])
  }

  /// Without another write, the timer tries it again.
  @Test func aFlushThatFailedIsTriedAgain() throws {
    let disk = SimulatedDisk(seed: 5)
    var settings = LoggedStoreSettings()
    settings.idleSeconds = 3600
    let store = try LoggedStore.open(SimulatedBase(disk), folder: SimulatedFolder(disk), settings: settings)
    try store.put([Entry([1], [1])])
    disk.plan(.error(5), atCall: 1)
    store.flushIfIdle()
    #expect(store.writeFailure == .system(operation: "mdb_txn_commit", path: "log", code: 5))
    store.flushIfIdle()
    #expect(store.writeFailure == nil)
    #expect(disk.state.withLock { $0.entries } == [[1]: [1]])
  }

  /// A removed range hides a large part of the data file before it is flushed.
  @Test func aLargeRangeIsRecordedAsARange() throws {
    var settings = LoggedStoreSettings()
    settings.flushesInline = true
    let folder = SimulatedFolder(SimulatedDisk(seed: 3))
    let base = try LMDBStore.open(.inMemory())
    let many = (0..<20_000).map { Entry([1, UInt8($0 >> 8), UInt8($0 & 0xFF)], [0]) }
    try base.put(many)
    let store = try LoggedStore.open(base, folder: folder, settings: settings)
    var removed = 0
    try store.write { transaction throws(StorageError) in
      removed = try transaction.removeRange(from: many[10].key, to: many[19_990].key)
      try transaction.put(many[500].key, [5])
    }
    #expect(removed == 19_980)
    let left = many[..<10] + [Entry(many[500].key, [5])] + many[19_990...]
    #expect(try store.entries() == Array(left))
    #expect(try store.snapshot().entriesBackwards() == left.reversed())
    #expect(try store.snapshot().get(many[400].key) == nil)
    let segment = try folder.open("0000000000000001.log")
    var bytes = Bytes(repeating: 0, count: 256)
    _ = try bytes.withUnsafeMutableBytes { try segment.read(into: $0, at: 64) }
    #expect(bytes[48...].prefix(10) == [1, 3, 3, 3, 1, 0, 10, 1, 78, 22], "one range, not 19,980 removals")
    try store.flush()
    #expect(try base.entries() == Array(left))
  }
}
