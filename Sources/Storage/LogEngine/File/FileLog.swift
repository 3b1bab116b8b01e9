import Glibc
package import KeyValue
import Synchronization

/// An ordered, durable list of commits of one store. The implementation decides its place.
///
/// The thread that holds the writer of the store appends. Other threads may call ``release(upTo:keepingSpares:)`` meanwhile.
package protocol CommitLog: AnyObject {
  /// The position after the last commit.
  var position: LogPosition { get }

  /// Appends one commit. When it returns, the commit is durable.
  /// - Throws: ``StorageError/outcomeUnknown(path:detail:)`` if the commit may be found when the store is opened again.
  ///   After any other ``StorageError`` nothing was appended; if ``failure`` is `nil`, the caller may try again.
  func append(_ batch: CommitBatch) throws(StorageError) -> LogPosition

  /// Notes that readers of the store see the commit at a position, which was appended before. Called by its writer.
  func noteReadable(_ position: LogPosition)

  /// The error after which the log accepts no commits until the store is opened again.
  var failure: StorageError? { get }

  /// Permits the log to forget commits up to a number. It keeps those after it, and with `keepingSpares` also some space
  /// for commits to come.
  /// - Throws: ``StorageError`` if a file cannot be removed. The log is as usable as before.
  func release(upTo sequence: UInt64, keepingSpares: Bool) throws(StorageError)

  /// Removes the log with all its commits. Nothing is appended later.
  /// - Throws: ``StorageError`` if files cannot be removed.
  func removeAll() throws(StorageError)
}

extension CommitLog {
  /// Does nothing.
  package func noteReadable(_ position: LogPosition) {}
}

/// A ``CommitLog`` in files: numbered segments, each with its space allocated before its first record.
///
/// One append writes one record and syncs it, so at most the last record can be incomplete. After a failed write or
/// sync, the state of the record is unknown: a later sync that succeeds does not prove that it is on the disk. So the log
/// accepts nothing more (``failure``). `docs/internals/commit-log.md` describes the files and what recovery proves.
package final class FileLog: CommitLog {
  /// The sizes of a log.
  package struct Sizes: Sendable {
    /// The length of the first segment after an opening, in bytes. Each segment is twice as long as the one before.
    package var segmentBytesMin: Int
    /// The greatest length of a segment, in bytes. Only a longer record makes a longer segment.
    package var segmentBytesMax: Int

    package init(segmentBytesMin: Int = 256 << 10, segmentBytesMax: Int = 8 << 20) {
      self.segmentBytesMin = segmentBytesMin
      self.segmentBytesMax = segmentBytesMax
    }
  }

  struct Segment {
    var number: UInt64
    /// The number of its first commit, whether it has one or not.
    var first: UInt64
  }

  /// The start of the names of files that wait to become segments again. The number of a segment follows.
  static let sparePrefix = "spare"
  /// The most files that wait: a store that writes without a pause flushes about so many segments at a time.
  private static let sparesMax = 4

  package private(set) var position: LogPosition
  package private(set) var failure: StorageError?

  private let folder: any LogFolder
  private let secret: UInt64
  private let epoch: UInt64
  private let sizes: Sizes
  private var nextSegmentBytes: Int
  /// The file of the last segment and the offset of the next record in it. Only the writer uses them.
  private var file: (any LogFile)?
  private var offset = 0
  private var head = [UInt8](repeating: 0, count: LogSegmentHead.bytes)
  /// The state that the writer and ``release(upTo:keepingSpares:)`` share. Held only to look at it or change it.
  private let shared: Mutex<Shared>

  private struct Spare {
    var name: String
    var bytes: Int
  }

  private struct Shared {
    var segments: [Segment]
    var spares: [Spare] = []
  }

  /// Takes over a log whose last segment is complete; see `FileLog+Recovery.swift`.
  init(
    _ folder: any LogFolder, secret: UInt64, position: LogPosition, epoch: UInt64, segments: [Segment], sizes: Sizes
  ) {
    self.folder = folder
    self.secret = secret
    self.position = position
    self.epoch = epoch
    self.sizes = sizes
    nextSegmentBytes = sizes.segmentBytesMin
    shared = Mutex(Shared(segments: segments))
  }

  /// Creates a log without commits, and its first segment, durably. Removes files that an earlier attempt left.
  /// - Throws: ``StorageError`` if files cannot be created.
  package static func create(
    in folder: any LogFolder, after position: LogPosition, secret: UInt64, sizes: Sizes = Sizes()
  ) throws(StorageError) -> FileLog {
    try removeFiles(in: folder)
    let log = FileLog(
      folder, secret: secret, position: position, epoch: position.epoch + 1, segments: [], sizes: sizes)
    try log.beginSegment(recordBytes: 0)
    return log
  }

  /// Appends one record and syncs it. Begins a new segment if it has no room in the last.
  /// - Throws: ``StorageError``; see ``CommitLog/append(_:)``.
  package func append(_ batch: CommitBatch) throws(StorageError) -> LogPosition {
    if let failure { throw failure }
    let recordBytes = LogRecordHead.recordBytes(batchBytes: batch.bytes.count)
    if offset + recordBytes > file?.bytes ?? 0 {
      try beginSegment(recordBytes: recordBytes)
    }
    guard let file else { return position }
    var failed: StorageError?
    var next = position
    batch.bytes.withUnsafeBytes { batch in
      head.withUnsafeMutableBytes { buffer in
        let record = LogRecordHead(of: batch, after: position, epoch: epoch, secret: secret)
        record.write(to: buffer, secret: secret)
        do throws(StorageError) {
          try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<LogRecordHead.bytes]), batch, at: offset)
          try file.sync()
          next = record.position
        } catch { failed = error }
      }
    }
    if let failed {
      failure = failed
      throw .outcomeUnknown(path: folder.path, detail: failed.description)
    }
    offset += recordBytes
    position = next
    return next
  }

  /// Makes a new last segment with room for a record, durably. If it fails before the segment has its name, the log
  /// continues in the segment before, and the caller may try again.
  ///
  /// The head is synced before the segment counts. Otherwise a flush could release the segments before it, and a loss
  /// of power could leave no head that says where the log begins.
  func beginSegment(recordBytes: Int) throws(StorageError) {
    let number = (shared.withLock { $0.segments.last?.number } ?? 0) + 1
    let needed = (LogSegmentHead.bytes + recordBytes + 4095) & ~4095
    let name = Self.name(number)
    let opened: any LogFile
    let spare = shared.withLock { $0.spares.popLast() }
    if let spare, spare.bytes >= max(needed, nextSegmentBytes) {
      try folder.rename(spare.name, to: name)
      opened = try folder.open(name)
    } else {
      if let spare { try folder.remove(spare.name) }
      do throws(StorageError) {
        opened = try folder.create(name, bytes: max(needed, nextSegmentBytes))
      } catch {
        // Without this, the next attempt would find the name in use.
        do throws(StorageError) { try folder.remove(name) } catch {}
        throw error
      }
    }
    do throws(StorageError) {
      try folder.syncNames()
      head.withUnsafeMutableBytes {
        LogSegmentHead(secret: secret, number: number, fileBytes: opened.bytes, start: position).write(to: $0)
      }
      var failed: StorageError?
      head.withUnsafeBytes { head in
        do throws(StorageError) {
          try opened.write(head, UnsafeRawBufferPointer(start: nil, count: 0), at: 0)
        } catch { failed = error }
      }
      if let failed { throw failed }
      try opened.sync()
    } catch {
      failure = error
      throw error
    }
    nextSegmentBytes = min(sizes.segmentBytesMax, 2 * nextSegmentBytes)
    file = opened
    offset = LogSegmentHead.bytes
    shared.withLock { $0.segments.append(Segment(number: number, first: position.sequence + 1)) }
  }

  /// Removes the segments before the one with the first commit after a number, but none that another process holds. With
  /// `keepingSpares`, keeps some of their files to use them again, otherwise none.
  /// - Throws: ``StorageError`` if a file cannot be removed. The next opening removes it.
  package func release(upTo sequence: UInt64, keepingSpares: Bool) throws(StorageError) {
    let sequence = min(sequence, folder.heldSequence() ?? .max)
    while true {
      // A segment is not needed if the next one begins at or before the first commit that is.
      let (segment, spares): (Segment?, Int) = shared.withLock { shared in
        guard shared.segments.count > 1, shared.segments[1].first <= sequence + 1 else { return (nil, 0) }
        return (shared.segments.removeFirst(), shared.spares.count)
      }
      guard let segment else { break }
      let name = Self.name(segment.number)
      if keepingSpares, spares < Self.sparesMax, let bytes = try? folder.open(name).bytes,
        bytes <= sizes.segmentBytesMax
      {
        let spare = Spare(name: "\(Self.sparePrefix)-\(name)", bytes: bytes)
        try folder.rename(name, to: spare.name)
        shared.withLock { $0.spares.append(spare) }
      } else {
        try folder.remove(name)
      }
    }
    while !keepingSpares, let spare = shared.withLock({ $0.spares.popLast() }) { try folder.remove(spare.name) }
  }

  /// Removes the files of the log. First gives processes that follow it ``followersMillisecondsMax`` to read its end. If
  /// a process still reads it then, the files stay, and the next opening removes them. The logs that are closed in the next
  /// seconds do not wait, because the same process follows them.
  /// - Throws: ``StorageError`` if a file cannot be removed.
  package func removeAll() throws(StorageError) {
    file = nil
    failure = failure ?? .system(operation: "append", path: folder.path, code: 9)
    var held = folder.heldSequence() ?? .max
    if time(nil) - Self.waitedInVain.load(ordering: .relaxed) > Self.impatientSeconds {
      for _ in 0..<Self.followersMillisecondsMax / 20 where held > 0 && held < position.sequence {
        usleep(20_000)
        held = folder.heldSequence() ?? .max
      }
    }
    guard held >= position.sequence else {
      if held > 0 { Self.waitedInVain.store(time(nil), ordering: .relaxed) }
      return
    }
    try Self.removeFiles(in: folder)
  }

  /// The time for which a log that is being closed waits for processes that follow it, in milliseconds.
  private static let followersMillisecondsMax = 2000
  /// When a log of this process was last closed before it was read to its end, in seconds since 1970.
  private static let waitedInVain = Atomic<Int>(0)
  /// The time for which no other log waits then, in seconds.
  private static let impatientSeconds = 10

  /// Removes the files of a log, the newest segments last, so a part of them is never a whole log.
  static func removeFiles(in folder: any LogFolder) throws(StorageError) {
    let names = try folder.names().filter { number(of: $0) != nil || $0.hasPrefix(sparePrefix) }
    guard !names.isEmpty else { return }
    for name in names.sorted() { try folder.remove(name) }
    try folder.syncNames()
  }

  /// The name of a segment's file: its number in hexadecimal, so names sort by number.
  static func name(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits + ".log"
  }

  /// Returns the number of the segment with a name, or `nil` for another file.
  static func number(of name: String) -> UInt64? {
    guard name.utf8.count == 20, name.hasSuffix(".log"), let number = UInt64(name.dropLast(4), radix: 16),
      Self.name(number) == name
    else { return nil }
    return number
  }
}
