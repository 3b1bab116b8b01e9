import Glibc
package import KeyValue
package import LMDBEngine
import Synchronization

/// A data file with the log beside it, which another process writes, or wrote until it was killed. Nothing is changed, except for the lock file of LMDB and a ``LogHold``.
///
/// A snapshot shows every commit that was acknowledged before it was taken. It is a snapshot of the data file with a table
/// of the commits in the log after it, so it takes the memory of the tables that the writer has, and the time to read
/// them: less than a second. The table is kept, and the next snapshot adds the commits since.
package final class ReadOnlyStore: KeyValueStore {
  /// The data file. Its snapshots lack the commits in the log.
  package let base: LMDBStore
  private let folder: DiskFolder
  private let tail = Mutex(Tail())

  /// The commits in the log after those of the data file.
  private struct Tail {
    /// The mark of the data file after which the table begins.
    var mark: LogMark?
    var table = ReplayTable()
    /// The position after the last commit of the table.
    var origin = LogOrigin(position: LogPosition(), secret: 0)
  }

  /// The number of attempts to read a log that another process removes or replaces meanwhile.
  private static let attemptsMax = 5

  private init(_ base: LMDBStore, _ folder: DiskFolder) { (self.base, self.folder) = (base, folder) }

  /// Opens an existing data file. The options that concern writing are ignored.
  /// - Throws: as ``LMDBStore/open(_:)``.
  package static func open(_ options: LMDBOptions) throws(StorageError) -> ReadOnlyStore {
    var options = options.withRoom()
    options.readOnly = true
    options.acceptsOpenLog = true
    return ReadOnlyStore(
      try LMDBStore.open(options), DiskFolder(path: LoggedStore.logPath(of: options.path)))
  }

  /// Takes a snapshot of the newest commit. Cost: reads the commits in the log since the last snapshot.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the log is damaged or missing; ``StorageError`` if a call
  ///   fails.
  package func snapshot() throws(StorageError) -> any KeyValueSnapshot { try snapshotAndMark().snapshot }

  /// Takes a snapshot as ``snapshot()``. Returns it with the position in the log that it shows, as a mark, or `nil` if the
  /// file never had a log.
  /// - Throws: as ``snapshot()``.
  package func snapshotAndMark() throws(StorageError) -> (snapshot: any KeyValueSnapshot, mark: LogMark?) {
    var attempts = 0
    while true {
      let hold = try LogHold(folder.path)
      defer { withExtendedLifetime(hold) {} }
      let mark = try base.logMark()
      let snapshot = try base.snapshot()
      guard try base.logMark() == mark else {
        snapshot.end()
        continue
      }
      guard var mark, mark.isOpen else { return (snapshot, mark) }
      let found: Tail
      do throws(StorageError) {
        found = try readTail(after: mark)
      } catch {
        snapshot.end()
        // The process that writes may have been stopped or started meanwhile.
        attempts += 1
        guard attempts < Self.attemptsMax, error.mayPass else { throw error }
        continue
      }
      mark.position = found.origin.bytes
      guard !found.table.isEmpty else { return (snapshot, mark) }
      let layers = Layers(active: found.table.layer, flushing: nil, ordinal: found.table.ordinal, base: snapshot)
      return (LoggedSnapshot(layers), mark)
    }
  }

  /// Adds the commits that the log has after the table, or begins a new table after a mark. Returns both.
  private func readTail(after mark: LogMark) throws(StorageError) -> Tail {
    var failure: StorageError?
    let found = tail.withLock { tail in
      do throws(StorageError) { try read(after: mark, &tail) } catch {
        failure = error
        tail = Tail()
      }
      return tail
    }
    if let failure { throw failure }
    return found
  }

  private func read(after mark: LogMark, _ tail: inout Tail) throws(StorageError) {
    if tail.mark != mark { tail = Tail(mark: mark, origin: try LoggedStore.origin(in: mark, of: base)) }
    tail.origin.position = try FileLog.read(in: folder, after: tail.origin.position, secret: tail.origin.secret) {
      (batch, position) throws(StorageError) in
      try tail.table.add(batch, position, from: folder.path)
    }
  }

  /// Returns the position up to which the data file has every commit, or `nil` if it never had a log.
  /// - Throws: ``StorageError`` if the read fails.
  package func logOrigin() throws(StorageError) -> LogOrigin? { try base.logMark().flatMap { LogOrigin($0.position) } }

  /// Passes the commits after a position to `body`, in order, with their positions in the log. They are on the disk when
  /// the function returns. Returns `false` if the log does not continue that position, because commits were released, or
  /// other commits follow it; `body` may have some of them then. A log that was closed and opened continues with another
  /// secret.
  ///
  /// The caller has a ``LogHold`` after that position. Cost: reads the segments with later commits.
  /// - Throws: the error of `body`, or ``StorageError`` if a call fails.
  package func readLog(
    after position: LogPosition, _ body: (UnsafeRawBufferPointer, LogOrigin) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    var last = position
    var attempts = 0
    while true {
      guard let mark = try base.logMark() else { return false }
      let stored = try LoggedStore.origin(in: mark, of: base)
      if !mark.isOpen, stored.position == last { return true }
      do throws(StorageError) {
        _ = try FileLog.read(in: folder, after: last, secret: stored.secret) { (batch, next) throws(StorageError) in
          try body(batch, LogOrigin(position: next, secret: stored.secret))
          last = next
        }
        return true
      } catch {
        guard error.mayPass else { throw error }
        // The process that writes may have been stopped or started meanwhile.
        attempts += 1
        guard attempts < Self.attemptsMax else { return false }
        usleep(20_000)
      }
    }
  }

  /// Always fails.
  /// - Throws: ``StorageError/system(operation:path:code:)`` with `EROFS`.
  package func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    try base.write(body)
  }

  /// Writes a copy as ``KeyValueStore/copy(toFile:)``. The data file is copied first. Then the commits that the log has
  /// after the copy are moved to it, so it shows the moment at which that ends. Meanwhile the log keeps its commits.
  /// - Throws: ``StorageError`` if the file exists already, or reading or writing fails. The file is removed then.
  package func copy(toFile path: String) throws(StorageError) {
    var attempts = 0
    while true {
      let hold = try LogHold(folder.path)
      defer { withExtendedLifetime(hold) {} }
      try base.copy(toFile: path, keepsMark: true)
      do throws(StorageError) {
        return try finish(copy: path)
      } catch {
        unlink(path)
        unlink("\(path)-lock")
        attempts += 1
        guard attempts < Self.attemptsMax, error.mayPass else { throw error }
      }
    }
  }

  /// Moves the commits of the log to a copy of the data file, and closes its mark.
  private func finish(copy path: String) throws(StorageError) {
    defer { unlink("\(path)-lock") }
    var options = LMDBOptions(path: path).withRoom()
    options.acceptsOpenLog = true
    let copy = try LMDBStore.open(options)
    guard let mark = try copy.logMark(), mark.isOpen else { return }
    try LoggedStore.moveLog(in: folder, to: copy)
  }

  /// Returns the sizes and counts of the data file. The commits in the log are not counted.
  /// - Throws: ``StorageError`` if the data file cannot be read.
  package func statistics() throws(StorageError) -> KeyValueStatistics { try base.statistics() }
}
