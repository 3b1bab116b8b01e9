import KeyValue
import LMDBEngine
import LogEngine
import TestSupport

/// A disk that is slower than its writers, whatever the speed of the machine: each sync of a log, and each transaction of
/// a data file, takes as long as the clients need for a number of requests.
final class SlowDisk: Sendable {
  /// The work of the clients so far.
  struct Work: Sendable {
    /// The commits that clients sent.
    var commits = 0
    /// The reads that were answered.
    var reads = 0
    /// The commits that had been sent when the disk or the server made its last step.
    var commitsAtLastStep = 0
    /// Whether no more come. Then the disk is fast.
    var isOver = false
    /// The syncs of the log, and the transactions of the data file.
    var syncs = 0
    var flushes = 0
    /// Whether the disk waited in vain for the clients.
    var isStuck = false
  }

  let work = Observed(Work())

  /// Waits until clients have sent `commits` more commits, and have got the answers to `reads` more reads.
  func wait(commits: Int, reads: Int = 0) {
    let start = step()
    let isReached = work.wait(secondsMax: 120) { work in
      work.isOver || work.commits >= start.commits + commits && work.reads >= start.reads + reads
    }
    if !isReached { work.update { $0.isStuck = true } }
    step()
  }

  /// Notes a step of the disk or of the server, and returns the work so far.
  @discardableResult
  func step() -> Work {
    work.update { work in
      work.commitsAtLastStep = work.commits
      return work
    }
  }

  /// Waits while clients have sent ``commitsAheadMax`` commits since the last step. Otherwise they could send all of theirs
  /// before a thread of the server gets its turn.
  func keepPace() {
    let isReached = work.wait(secondsMax: 120) { work in
      work.isOver || work.commits - work.commitsAtLastStep < Self.commitsAheadMax
    }
    if !isReached { work.update { $0.isStuck = true } }
  }

  /// More than a sync takes.
  private static let commitsAheadMax = 1200
}

/// The folder of a log on a ``SlowDisk``. A sync takes as long as 1,000 commits and 20 reads of the clients.
final class SlowFolder: LogFolder {
  private let folder: MemoryFolder
  private let disk: SlowDisk
  let path = "log"

  init(_ disk: SlowDisk) { (self.disk, folder) = (disk, MemoryFolder()) }

  func names() throws(StorageError) -> [String] { folder.names() }
  func create(_ name: String, bytes: Int) throws(StorageError) -> any LogFile {
    SlowFile(folder.create(name, bytes: bytes), disk)
  }
  func open(_ name: String) throws(StorageError) -> any LogFile { SlowFile(try folder.open(name), disk) }
  func rename(_ name: String, to other: String) throws(StorageError) { try folder.rename(name, to: other) }
  func remove(_ name: String) throws(StorageError) { try folder.remove(name) }
  func syncNames() throws(StorageError) { folder.syncNames() }
}

private final class SlowFile: LogFile {
  private let file: any LogFile
  private let disk: SlowDisk
  var bytes: Int { file.bytes }

  init(_ file: any LogFile, _ disk: SlowDisk) { (self.file, self.disk) = (file, disk) }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageError) -> Int {
    try file.read(into: buffer, at: offset)
  }

  func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int) throws(StorageError) {
    try file.write(first, second, at: offset)
  }

  func sync() throws(StorageError) {
    disk.wait(commits: 1000, reads: 20)
    try file.sync()
    disk.work.update { $0.syncs += 1 }
  }
}

/// A data file in memory on a ``SlowDisk``. A transaction takes as long as 300 commits of the clients.
final class SlowDataFile: MarkedStore {
  private let base: LMDBStore
  private let disk: SlowDisk
  let path = "data"

  init(_ disk: SlowDisk) throws { (self.disk, base) = (disk, try LMDBStore.open(.inMemory(mapBytes: 1 << 30))) }

  func snapshot() throws(StorageError) -> any KeyValueSnapshot { try base.snapshot() }
  func logMark() throws(StorageError) -> LogMark? { try base.logMark() }
  func copy(toFile path: String) throws(StorageError) { try base.copy(toFile: path) }
  func statistics() throws(StorageError) -> KeyValueStatistics { try base.statistics() }
  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    try base.write(body)
  }

  func writeMarked(_ body: (any KeyValueTransaction) throws(StorageError) -> LogMark?) throws(StorageError) {
    disk.wait(commits: 300)
    try base.writeMarked(body)
    disk.work.update { $0.flushes += 1 }
  }
}
