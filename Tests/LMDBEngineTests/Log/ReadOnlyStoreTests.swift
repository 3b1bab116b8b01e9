import Foundation
import KeyValue
import LMDBEngine
import LogEngine
import Testing
import TestSupport

/// Reading a data file and its log from another process, while they change and after a crash.
@Suite struct ReadOnlyStoreTests {
  private static let entries = (1...50).map { Entry([1, UInt8($0)], Bytes(repeating: UInt8($0), count: 100)) }
  private let directory: TemporaryDirectory
  private let options: LMDBOptions

  init() throws {
    directory = try TemporaryDirectory()
    options = LMDBOptions(path: directory.file("data.mdb"))
  }

  private var log: String { directory.file("data.mdb-log") }
  private var segment: String { "\(log)/0000000000000001.log" }

  /// Leaves a store with ``entries`` as a killed process leaves it.
  private func killStore() async {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = options.path as String] in
      let store = try LoggedStore.open(LMDBOptions(path: path))
      for entry in ReadOnlyStoreTests.entries { try store.put([entry]) }
      kill(getpid(), SIGKILL)
    }
  }

  @Test func aKilledStoreIsReadWithItsLogAndDoesNotChange() async throws {
    await killStore()
    let content = try Data(contentsOf: URL(fileURLWithPath: segment))
    let file = try Data(contentsOf: URL(fileURLWithPath: options.path))
    try {
      let store = try ReadOnlyStore.open(options)
      #expect(try store.base.entries() == [])
      #expect(try store.entries() == Self.entries)
      #expect(try store.entries() == Self.entries)
      try store.copy(toFile: directory.file("copy.mdb"))
      #expect(throws: StorageError.system(operation: "write", path: options.path, code: EROFS)) { try store.put([]) }
    }()
    #expect(try directory.fileNames.filter { $0.hasPrefix("copy") } == ["copy.mdb"])
    #expect(try LMDBStore.open(LMDBOptions(path: directory.file("copy.mdb"))).entries() == Self.entries)
    #expect(try FileManager.default.contentsOfDirectory(atPath: log) == ["0000000000000001.log"], "no hold is left")
    #expect(try Data(contentsOf: URL(fileURLWithPath: segment)) == content)
    #expect(try Data(contentsOf: URL(fileURLWithPath: options.path)) == file)
  }

  @Test func aFileWithoutAnOpenLogIsReadAlone() throws {
    try LMDBStore.open(options).put(Self.entries)
    #expect(try ReadOnlyStore.open(options).entries() == Self.entries)
    try LoggedStore.open(options).put([Entry([9], [9])])
    #expect(try ReadOnlyStore.open(options).entries() == Self.entries + [Entry([9], [9])])
    try ReadOnlyStore.open(options).copy(toFile: directory.file("copy.mdb"))
    #expect(
      try LMDBStore.open(LMDBOptions(path: directory.file("copy.mdb"))).entries() == Self.entries + [Entry([9], [9])])
  }

  @Test func theIncompleteRecordOfACrashIsIgnored() async throws {
    await killStore()
    var content = try Data(contentsOf: URL(fileURLWithPath: segment))
    // The last record ends with the last byte that is not zero.
    let end = try #require(content.lastIndex { $0 != 0 })
    content[end] = 0
    try content.write(to: URL(fileURLWithPath: segment))
    #expect(try ReadOnlyStore.open(options).entries() == Array(Self.entries.dropLast()))
  }

  @Test func damageIsReportedAndCanBeGivenUp() async throws {
    await killStore()
    var content = try Data(contentsOf: URL(fileURLWithPath: segment))
    let tenth = try #require(content.firstRange(of: Data(repeating: 10, count: 100)))
    content[tenth.lowerBound] ^= 1
    try content.write(to: URL(fileURLWithPath: segment))
    let damage = #expect(throws: StorageError.self) { try ReadOnlyStore.open(options).snapshot() }
    guard case .corruption(log, let detail) = try #require(damage) else {
      Issue.record("\(String(describing: damage))")
      return
    }
    #expect(detail.contains("has commit 11"))
    #expect(throws: StorageError.self) { try ReadOnlyStore.open(options).copy(toFile: directory.file("copy.mdb")) }
    #expect(try !directory.fileNames.contains("copy.mdb"))
    let renamed = try #require(try LoggedStore.giveUpDamaged(options))
    #expect(try LMDBStore.open(options).entries() == Array(Self.entries[..<9]))
    #expect(try LoggedStore.open(options).entries() == Array(Self.entries[..<9]))
    #expect(try Data(contentsOf: URL(fileURLWithPath: "\(renamed)/0000000000000001.log")) == content)
    #expect(try LoggedStore.giveUpDamaged(options) == nil, "an intact log is not given up")
  }

  @Test func aMissingLogCanBeGivenUp() async throws {
    await killStore()
    try FileManager.default.removeItem(atPath: log)
    #expect(throws: StorageError.self) { try ReadOnlyStore.open(options).snapshot() }
    #expect(try LoggedStore.giveUpDamaged(options) != nil)
    #expect(try LMDBStore.open(options).entries() == [])
  }

  /// A store that changes all the time, with tiny segments and tables: each flush releases segments. Each commit `n` adds
  /// the key `n`, removes an old one, and notes `n`, so one number determines all entries.
  private enum Busy {
    static let window: UInt64 = 200
    static let commitsPerOpening: UInt64 = 2000
    static let progressName = "progress"

    static func key(_ number: UInt64) -> Bytes { [2] + withUnsafeBytes(of: number.bigEndian) { Bytes($0) } }

    static func number(_ bytes: some Collection<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    /// Commits until the process is killed. Notes each commit in a file after it was acknowledged.
    static func run(in folder: String) throws {
      var settings = LoggedStoreSettings()
      settings.memtableBytesMax = 64 << 10
      settings.pauseMicrosecondsMax = 0
      settings.log = FileLog.Sizes(segmentBytesMin: 4 << 10, segmentBytesMax: 16 << 10)
      let progress = open("\(folder)/\(progressName)", O_RDWR | O_CREAT, 0o600)
      var next: UInt64 = 1
      while true {
        // Closing and opening again is a part of the test.
        let store: LoggedStore
        do throws(StorageError) {
          store = try LoggedStore.open(LMDBOptions(path: "\(folder)/data.mdb"), settings: settings)
        } catch .locked {
          // A flush still uses the store that was released.
          sched_yield()
          continue
        }
        for _ in 0..<commitsPerOpening {
          try store.write { transaction throws(StorageError) in
            try transaction.put(key(next), Bytes(repeating: UInt8(truncatingIfNeeded: next), count: 300))
            if next.isMultiple(of: 100), next > window {
              try transaction.removeRange(from: key(0), to: key(next - window))
            }
            try transaction.put([1], withUnsafeBytes(of: next.bigEndian) { Bytes($0) })
          }
          var number = next
          pwrite(progress, &number, 8, 0)
          next += 1
        }
      }
    }

    /// Checks that the entries are those after one commit. Returns its number.
    static func check(_ entries: [Entry]) throws -> UInt64 {
      let last = number(try #require(entries.first).value)
      let removed = last / 100 * 100
      let first = removed > window ? removed - window : 1
      let expected = (first...last).map { key($0) }
      try #require(entries.dropFirst().map(\.key) == expected, "commit \(last)")
      for entry in entries.dropFirst() {
        let byte = UInt8(truncatingIfNeeded: number(entry.key.dropFirst()))
        try #require(entry.value == Bytes(repeating: byte, count: 300), "commit \(last)")
      }
      return last
    }
  }

  /// Snapshots and copies show every acknowledged commit and no half of one, while segments are released and the store is
  /// closed and opened.
  @Test func everySnapshotIsWholeWhileAnotherProcessWrites() async throws {
    async let writer: Void = expectKill(directory.path)
    let (last, duration) = try await onDedicatedThread { [directory, options] in
      let start = ContinuousClock.now
      let last = try Self.readBeside(directory, options)
      return (last, ContinuousClock.now - start)
    }
    #expect(last > Busy.commitsPerOpening, "the store was closed and opened")
    // A time limit of the test would include its waits for a thread.
    #expect(duration < .seconds(120))
    _ = FileManager.default.createFile(atPath: directory.file("end"), contents: nil)
    await writer
  }

  /// Reads and copies the store of ``Busy`` while it writes. Returns the last commit that was read.
  private static func readBeside(_ directory: TemporaryDirectory, _ options: LMDBOptions) throws -> UInt64 {
    let progressPath = directory.file(Busy.progressName)
    try #require(OtherProcess.eventually { access(progressPath, F_OK) == 0 })
    let progress = open(progressPath, O_RDONLY)
    defer { close(progress) }
    func acknowledged() -> UInt64 {
      var number: UInt64 = 0
      pread(progress, &number, 8, 0)
      return number
    }
    try #require(OtherProcess.eventually { acknowledged() >= 300 })
    let store = try ReadOnlyStore.open(options)
    var last: UInt64 = 0
    for round in 0..<30 {
      // The thread that reads can be much faster than a writer that shares its processor with other tests.
      try #require(OtherProcess.eventually { acknowledged() >= last + 60 })
      let before = acknowledged()
      let shown = try Busy.check(try store.entries())
      try #require(shown >= before && shown >= last)
      last = shown
      guard round.isMultiple(of: 6) else { continue }
      let copy = directory.file("copy\(round).mdb")
      try store.copy(toFile: copy)
      let copied = try LMDBStore.open(LMDBOptions(path: copy))
      try #require(try copied.logMark()?.isOpen == false)
      try #require(try Busy.check(try copied.entries()) >= shown)
    }
    return last
  }

  /// Runs ``Busy`` in a process of its own until a file `end` appears.
  private func expectKill(_ path: String) async {
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      Thread {
        _ = OtherProcess.eventually(secondsMax: 300) { access("\(path)/end", F_OK) == 0 }
        kill(getpid(), SIGKILL)
      }.start()
      try Busy.run(in: path)
    }
  }

  /// Segments stay while a living process holds them, also over a restart, and no longer.
  @Test func heldCommitsStay() throws {
    var settings = LoggedStoreSettings()
    settings.flushesInline = true
    settings.memtableBytesMax = 4 << 10
    settings.log = FileLog.Sizes(segmentBytesMin: 4 << 10, segmentBytesMax: 4 << 10)
    func segments() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: log).filter { $0.hasSuffix(".log") && !$0.hasPrefix("spare") }
        .count
    }
    #expect(try LogHold(log) == nil, "there is no log yet")
    let store = try LoggedStore.open(options, settings: settings)
    func write(_ count: Int) throws {
      for number in 0..<count { try store.put([Entry([UInt8(number)], Bytes(repeating: 1, count: 1000))]) }
    }
    try write(20)
    let usual = try segments()
    try {
      let hold = try #require(try LogHold(log))
      try write(60)
      #expect(try segments() > usual + 10)
      try hold.advance(to: 60)
      try write(5)
      #expect(try (usual + 3...usual + 10).contains(segments()))
    }()
    try write(10)
    #expect(try segments() <= usual + 1)
    // The file of a process that was killed has no lock.
    _ = FileManager.default.createFile(atPath: "\(log)/hold-dead", contents: nil)
    try write(10)
    #expect(try segments() <= usual + 1)
    #expect(try !FileManager.default.contentsOfDirectory(atPath: log).contains("hold-dead"))
  }
}
