import Foundation
import KeyValue
import LogEngine
import Synchronization
import Testing
import TestSupport

/// The log alone, on a simulated disk that is damaged between two openings.
@Suite struct FileLogTests {
  private static let secret: UInt64 = 77
  private static let sizes = FileLog.Sizes(segmentBytesMin: 4096, segmentBytesMax: 8192)
  private let disk = SimulatedDisk(seed: 1)
  private var folder: SimulatedFolder { SimulatedFolder(disk) }

  /// A batch of `bytes` bytes that names a commit.
  private static func batch(_ number: Int, bytes: Int = 100) -> CommitBatch {
    var batch = CommitBatch()
    batch.append(put: [UInt8(number)], Bytes(repeating: UInt8(number), count: bytes))
    return batch
  }

  private func write(_ numbers: ClosedRange<Int>, bytes: Int = 100, to log: FileLog) throws -> LogPosition {
    for number in numbers { _ = try log.append(Self.batch(number, bytes: bytes)) }
    return log.position
  }

  private func create() throws -> FileLog {
    try FileLog.create(in: folder, after: LogPosition(), secret: Self.secret, sizes: Self.sizes)
  }

  /// Opens the log and returns the numbers of the commits that it replays.
  @discardableResult
  private func recover(after base: LogPosition = LogPosition()) throws -> (log: FileLog, replayed: [Int]) {
    var replayed: [Int] = []
    let log = try FileLog.recover(in: folder, after: base, secret: Self.secret, sizes: Self.sizes) {
      (batch, position) throws(StorageError) in
      #expect([UInt8](batch) == Self.batch(Int(batch[4]), bytes: batch.count - 5).bytes || batch.count > 132)
      #expect(position.sequence == UInt64(replayed.last ?? Int(position.sequence) - 1) + 1)
      replayed.append(Int(position.sequence))
    }
    return (log, replayed)
  }

  /// Changes the bytes of a segment, durably.
  private func change(_ name: String, _ body: (inout Bytes) -> Void) {
    disk.state.withLock { state in
      guard let number = state.names[name], var file = state.files[number] else { return }
      body(&file.content)
      file.durable = file.content
      state.files[number] = file
    }
  }

  private static let first = "0000000000000001.log"

  @Test func commitsAreReplayedAfterAPosition() throws {
    let log = try create()
    let third = try write(1...3, to: log)
    _ = try write(4...9, to: log)
    #expect(try recover().replayed == Array(1...9))
    #expect(try recover(after: third).replayed == Array(4...9))
    let (again, _) = try recover()
    #expect(again.position == log.position)
    _ = try write(10...12, to: again)
    #expect(again.position.epoch == log.position.epoch + 1)
    #expect(try recover(after: third).replayed == Array(4...12))
  }

  @Test func segmentsAreFilledReleasedAndUsedAgain() throws {
    let log = try create()
    // Each segment takes a few records of 1 KiB; a longer record gets a segment of its own size.
    var position = try write(1...20, bytes: 1000, to: log)
    position = try write(21...21, bytes: 30_000, to: log)
    #expect(try folder.names().count > 4)
    try log.release(upTo: position.sequence, keepingSpares: true)
    let names = try folder.names()
    #expect(names.count { $0.hasSuffix(".log") && !$0.hasPrefix("spare") } == 1)
    #expect(names.count { $0.hasPrefix("spare") } == 4)
    let after = try write(22...40, bytes: 1000, to: log)
    #expect(try folder.names().count { $0.hasPrefix("spare") } < 4)
    try log.release(upTo: position.sequence, keepingSpares: false)
    #expect(try folder.names().count { $0.hasPrefix("spare") } == 0)
    #expect(try recover(after: position).replayed == Array(22...40))
    try log.release(upTo: after.sequence, keepingSpares: true)
    #expect(try recover(after: after).replayed == [])
    #expect(throws: StorageError.self) { try recover(after: position) }
  }

  /// Every prefix of the last record is a torn append: the commits before it remain.
  @Test func aTornLastRecordIsCut() throws {
    let log = try create()
    let second = try write(1...2, to: log)
    let whole = try snapshot()
    _ = try write(3...3, to: log)
    let full = try snapshot()
    let difference = full.indices.filter { full[$0] != whole[$0] }
    for end in stride(from: difference[0], to: difference[difference.count - 1], by: 7) {
      change(Self.first) { $0 = Bytes(full[..<end] + whole[end...]) }
      let (cut, replayed) = try recover()
      #expect(replayed == [1, 2])
      #expect(cut.position == second)
      try removeAllButFirst()
    }
    change(Self.first) { $0 = full }
    #expect(try recover().replayed == [1, 2, 3])
  }

  private func snapshot() throws -> Bytes {
    let file = try folder.open(Self.first)
    var bytes = Bytes(repeating: 0, count: file.bytes)
    _ = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
    return bytes
  }

  private func removeAllButFirst() throws {
    for name in try folder.names() where name != Self.first { try folder.remove(name) }
  }

  /// Any bit of a record before the last.
  @Test func aDamagedMiddleIsRefused() throws {
    let log = try create()
    _ = try write(1...3, to: log)
    let whole = try snapshot()
    for offset in stride(from: 64, to: 64 + 2 * 160, by: 3) where whole[offset] != 0 {
      change(Self.first) { $0[offset] ^= 1 << UInt8(offset & 7) }
      #expect(throws: StorageError.self, "byte \(offset)") { try recover() }
      change(Self.first) { $0 = whole }
    }
    #expect(try recover().replayed == [1, 2, 3])
  }

  /// Without its end, a file has no sign that commits are missing, but it has its length.
  @Test func aShorterSegmentIsRefused() throws {
    let log = try create()
    _ = try write(1...3, to: log)
    let whole = try snapshot()
    for bytes in [whole.count - 1, 64 + 2 * 160, 64] {
      change(Self.first) { $0 = Bytes(whole[..<bytes]) }
      #expect(throws: StorageError.self, "\(bytes) bytes") { try recover() }
    }
    change(Self.first) { $0 = whole }
    #expect(try recover().replayed == [1, 2, 3])
  }

  @Test func positionsThatNoLogReachesAreRefused() {
    #expect(LogOrigin([UInt8](repeating: 0xFF, count: 32)) == nil)
    let large = LogOrigin(position: LogPosition(sequence: 1 << 62 - 1, epoch: 1 << 62 - 1), secret: .max)
    #expect(LogOrigin(large.bytes) == large)
    #expect(LogOrigin(LogOrigin(position: LogPosition(sequence: 1 << 62), secret: 1).bytes) == nil)
    #expect(LogOrigin(LogOrigin(position: LogPosition(epoch: 1 << 62), secret: 1).bytes) == nil)
  }

  @Test func aMissingSegmentIsRefused() throws {
    let log = try create()
    _ = try write(1...30, bytes: 1000, to: log)
    let names = try folder.names().sorted()
    try #require(names.count > 4)
    for name in names.dropLast() {
      let removed = disk.state.withLock { $0.names.removeValue(forKey: name) }
      let number = try #require(removed)
      #expect(throws: StorageError.self, "\(name)") { try recover() }
      disk.state.withLock { $0.names[name] = number }
    }
    #expect(try recover().replayed == Array(1...30))
  }

  @Test func aLogOfAnotherFileIsRefused() throws {
    let log = try create()
    var position = try write(1...3, to: log)
    position.chain ^= 1
    #expect(throws: StorageError.self) { try recover(after: position) }
    #expect(throws: StorageError.self) {
      _ = try FileLog.recover(in: folder, after: LogPosition(), secret: 78) { _, _ throws(StorageError) in }
    }
    #expect(throws: StorageError.self) { try recover(after: LogPosition(sequence: 9, epoch: 1, chain: 1)) }
  }

  @Test func afterAFailedSyncNothingIsAccepted() throws {
    let log = try create()
    _ = try write(1...2, to: log)
    disk.plan(.error(5), atCall: 2)
    let failure = StorageError.system(operation: "fdatasync", path: "log", code: 5)
    // The first record may be on the disk. The others were not written.
    #expect(throws: StorageError.outcomeUnknown(path: "log", detail: failure.description)) {
      try log.append(Self.batch(3))
    }
    for number in 4...5 {
      #expect(throws: failure) { try log.append(Self.batch(number)) }
    }
    #expect(log.position.sequence == 2)
    #expect(log.failure == failure)
  }

  /// Its commits can be read. The first commit after the disk has room again begins the segment.
  @Test func aLogOnAFullDiskIsOpened() throws {
    _ = try write(1...3, to: create())
    // The head and the last record are written and synced again before.
    disk.plan(.error(28), atCall: 4)
    let (log, replayed) = try recover()
    #expect(replayed == Array(1...3))
    #expect(disk.lastCalls.hasSuffix("create 0000000000000002.log, remove 0000000000000002.log"), "\(disk.lastCalls)")
    disk.plan(.error(28), atCall: 1)
    #expect(throws: StorageError.diskFull(path: "log")) { try log.append(Self.batch(4)) }
    _ = try write(4...5, to: log)
    #expect(try recover().replayed == Array(1...5))
  }

  /// Without a look into the folder, a process that reads the log could lose the commits that it needs.
  @Test func aFolderThatCannotBeReadHoldsEverything() throws {
    let directory = try TemporaryDirectory()
    #expect(DiskFolder(path: directory.file("none")).heldSequence() == nil)
    try Data().write(to: URL(fileURLWithPath: directory.file("file")))
    #expect(DiskFolder(path: directory.file("file")).heldSequence() == 0)
  }

  /// An opening begins a segment. A release may then remove all segments before it, although it has no record yet.
  @Test func aNewSegmentIsDurableBeforeOthersAreReleased() throws {
    var log = try create()
    for number in 1...30 {
      let position = try write(number...number, to: log)
      log = try recover(after: position).log
      try log.release(upTo: position.sequence, keepingSpares: true)
      disk.restart()
      log = try recover(after: position).log
      #expect(log.position == position)
    }
  }

  /// The head of the last segment is only in the cache of the kernel, because its sync failed. The power fails at each
  /// call of the next opening.
  @Test func anOpeningSyncsASegmentBeforeItRemovesOthers() throws {
    var log = try create()
    for number in 1...40 {
      let position = try write(number...number, to: log)
      try log.release(upTo: position.sequence - 1, keepingSpares: false)
      // An opening writes two heads and a record, syncs three times and creates a file.
      disk.plan(.error(5), atCall: 7)
      #expect(throws: StorageError.system(operation: "fdatasync", path: "log", code: 5)) {
        try recover(after: position)
      }
      disk.plan(.powerLoss, atCall: 1 + number % 8)
      _ = try? recover(after: position)
      disk.restart()
      log = try recover(after: position).log
      #expect(log.position == position)
    }
  }

  @Test func aFullDiskRefusesASegmentAndThenTakesIt() throws {
    let log = try create()
    _ = try write(1...2, bytes: 1000, to: log)
    disk.plan(.error(28), atCall: 1)
    #expect(throws: StorageError.diskFull(path: "log")) { try log.append(Self.batch(3, bytes: 6000)) }
    #expect(log.failure == nil)
    _ = try write(3...4, bytes: 6000, to: log)
    #expect(try recover().replayed == [1, 2, 3, 4])
  }

  /// A server with many databases must not wait for each of them, if the process that follows them hangs.
  @Test func onlyTheFirstLogWaitsForAFollowerThatHangs() throws {
    let looks = Observed(0)
    for _ in 0..<2 {
      let folder = HeldFolder(SimulatedFolder(SimulatedDisk(seed: 1)), looks)
      let log = try FileLog.create(in: folder, after: LogPosition(), secret: Self.secret, sizes: Self.sizes)
      _ = try write(1...3, to: log)
      looks.value = 0
      try log.removeAll()
      #expect(try folder.names().count == 1, "the follower may still read it")
    }
    #expect(looks.value == 1)
  }
}

/// A folder of a log that another process follows, which does not read on.
private final class HeldFolder: LogFolder {
  private let folder: SimulatedFolder
  private let looks: Observed<Int>

  init(_ folder: SimulatedFolder, _ looks: Observed<Int>) { (self.folder, self.looks) = (folder, looks) }

  var path: String { folder.path }
  func names() throws(StorageError) -> [String] { try folder.names() }
  func create(_ name: String, bytes: Int) throws(StorageError) -> any LogFile { try folder.create(name, bytes: bytes) }
  func open(_ name: String) throws(StorageError) -> any LogFile { try folder.open(name) }
  func rename(_ name: String, to other: String) throws(StorageError) { try folder.rename(name, to: other) }
  func remove(_ name: String) throws(StorageError) { try folder.remove(name) }
  func syncNames() throws(StorageError) { try folder.syncNames() }
  func heldSequence() -> UInt64? {
    looks.update { $0 += 1 }
    return 1
  }
}
