import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine

/// Copies the commits of one database to a ``FollowedLog`` as they happen.
final class DatabaseFollower {
  private let log: FollowedLog
  private let number: Int
  private let store: ReadOnlyStore
  private let folder: String
  private let path: String
  private let identity: FileFacts.Identity?
  private var writer: ShippedLogWriter
  /// The file to which the next commits go, and its length.
  private var last: (file: String, bytes: Int)?
  /// Keeps the commits that are not copied yet.
  private(set) var hold: LogHold?

  /// The bytes that are collected before they are stored.
  private static let partBytes = 1 << 20
  /// The size of a commit log that is kept for the follower, in bytes. A place that cannot be reached for so long needs a
  /// new backup.
  private static let heldBytesMax = 4 << 30

  /// Continues after the last commit that the log has.
  /// - Throws: `StorageError` if the database cannot be opened, or the errors of the place.
  init(_ log: FollowedLog, _ number: Int, of directory: String, _ files: [String]) throws {
    (self.log, self.number) = (log, number)
    path = "\(directory)/\(log.databases[number].path)"
    // Before the file is opened: if it is replaced in between, that is noticed.
    identity = FileFacts(of: path)?.identity
    let end = try log.end(of: number, files)
    store = try StoredDatabase.openReadOnly(LMDBOptions(path: path))
    folder = LoggedStore.logPath(of: path)
    writer = ShippedLogWriter(after: end.origin, time: end.time)
    last = end.last
    hold = try LogHold(folder, after: end.origin.position.sequence)
  }

  /// Whether the file that was opened still has its name: `hearth compact` and restores replace it.
  var isCurrent: Bool { identity != nil && FileFacts(of: path)?.identity == identity }

  /// Whether the log was closed and has commits that are not copied. The server gives a follower two seconds for them.
  var isClosed: Bool {
    guard let mark = try? store.base.logMark(), !mark.isOpen, let end = LogOrigin(mark.position) else { return false }
    return end.position.sequence > sequence
  }

  /// The number of the last copied commit.
  var sequence: UInt64 { writer.origin.position.sequence }

  /// Whether a commit log is longer than what is kept for a place that cannot be reached.
  static func isTooLong(_ folder: String) -> Bool { (try? FolderIterator.size(of: folder)) ?? 0 > heldBytesMax }

  /// Copies the new commits. Returns `false` if the database's log does not continue those that were copied.
  /// - Throws: `StorageError` if the database cannot be read, or the errors of the place. The next call continues.
  func copy() throws -> Bool {
    if hold == nil { hold = try LogHold(folder, after: writer.origin.position.sequence) }
    // After an error, the bytes of the last attempt are read again.
    var next = ShippedLogWriter(after: writer.origin, time: writer.time)
    var failure: (any Error)?
    let isWhole: Bool
    do throws(StorageError) {
      isWhole = try store.readLog(after: writer.origin.position) { (batch, origin) throws(StorageError) in
        do {
          if origin.secret != next.origin.secret {
            // The log was closed and opened, so other files follow.
            try put(&next)
            next.begin(secret: origin.secret)
            writer = next
            last = nil
          }
          next.append(batch, at: origin.position, time: Self.newestCommit(in: batch))
          if next.bytes.count >= Self.partBytes { try put(&next) }
        } catch {
          failure = error
          throw .rolledBack
        }
      }
    } catch {
      if Self.isTooLong(folder) { hold = nil }
      throw failure ?? error
    }
    try put(&next)
    return isWhole
  }

  private func put(_ next: inout ShippedLogWriter) throws {
    guard !next.bytes.isEmpty else { return }
    let bytes = next.takeBytes()
    if let last, log.place.appendsToLogFiles, last.bytes < FollowedLog.fileBytesMax {
      try log.place.appendToLogFile(last.file, bytes, at: last.bytes, of: log.name)
      self.last = (last.file, last.bytes + bytes.count)
    } else {
      let file = FollowedLog.file(of: number, after: writer.origin)
      let content = writer.origin.bytes + bytes
      try log.place.appendToLogFile(file, content, at: 0, of: log.name)
      last = (file, content.count)
    }
    writer = next
    try hold?.advance(to: next.origin.position.sequence)
  }

  /// Returns the time of the newest commit in a batch, or `nil` if it has none.
  private static func newestCommit(in batch: UnsafeRawBufferPointer) -> Int64? {
    guard var reader = try? CommitBatchReader(batch) else { return nil }
    var newest: Int64?
    while let operation = try? reader.next() {
      guard case .put(let key, let value) = operation, key.elementsEqual(LastVersionRow.key) else { continue }
      newest = LastVersionRow.version(value) ?? newest
    }
    return newest
  }
}
