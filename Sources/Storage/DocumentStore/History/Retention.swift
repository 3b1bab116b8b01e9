import DocumentModel
import KeyEncoding
import KeyValue

/// How long a database keeps past states and its change log.
package struct Retention: Sendable {
  /// Seconds for which past states can be read: 300 to 604,800.
  package var historySeconds: Int
  /// Seconds for which listeners can resume from the change log; at least ``historySeconds``.
  package var changeLogSeconds: Int
  /// The most changes that the log keeps.
  package var changeLogEntriesMax: Int

  /// The possible values of ``historySeconds``.
  package static let historySecondsRange = 300...604_800

  /// Creates settings. A number outside its range is set to the nearest limit.
  package init(historySeconds: Int = 3600, changeLogSeconds: Int = 7 * 86_400, changeLogEntriesMax: Int = 5_000_000) {
    let range = Self.historySecondsRange
    self.historySeconds = min(max(historySeconds, range.lowerBound), range.upperBound)
    self.changeLogSeconds = max(changeLogSeconds, self.historySeconds)
    self.changeLogEntriesMax = max(changeLogEntriesMax, 1000)
  }
}

/// The newest versions that a database had at past times of its clock, while its clock is behind its versions.
///
/// Versions are times, unless the clock of the machine was wrong: after it was ahead, new versions follow those of the
/// wrong time closely, and say nothing about the age of a commit. These marks do. They are lost when the database is
/// closed; then history is kept for longer, but not more than ``Retention/changeLogEntriesMax`` changes.
struct VersionAges {
  private var marks: [(time: Int64, version: Int64)] = []
  /// The marks in the time that the history covers. Each is one such part of that time newer than the previous one.
  private static let marksMax = 16

  /// Notes the newest version at a time of the clock. Call it regularly.
  mutating func note(_ version: Int64, at now: Int64, _ retention: Retention) {
    guard version > now else { return marks.removeAll() }
    marks.removeAll { $0.time > now }
    let historyMicroseconds = Int64(retention.historySeconds) * 1_000_000
    if let last = marks.last, now - last.time < historyMicroseconds / Int64(Self.marksMax) { return }
    marks.append((now, version))
    // Keep one mark from before the history that is due, and those after it.
    let cutoff = now - historyMicroseconds - Trimmer.delayMicroseconds
    while marks.count > 1, marks[1].time <= cutoff { marks.removeFirst() }
  }

  /// Returns a version that the database had at a time, or `nil` if none is known.
  func version(at time: Int64) -> Int64? { marks.last { $0.time <= time }?.version }
}

/// Removes expired history, log entries and outcomes of commits, a limited number at a time.
struct Trimmer {
  let retention: Retention
  let ages: VersionAges
  /// The entries removed in one write transaction, limited so that commits do not wait long.
  static let batchEntriesMax = 2000
  /// The time for which expired entries wait, so that a steady load is trimmed in batches.
  static let delayMicroseconds: Int64 = 60_000_000

  /// Removes up to one batch. Returns whether more entries are due.
  func trim(_ transaction: any KeyValueTransaction, now: Int64) throws(StorageError) -> Bool {
    var reader = SnapshotReader(transaction)
    let trimsByCount = try isLogFull(&reader, slack: 0) ? isHistoryUnbounded(&reader, now: now) : false
    let moreHistory = try trimHistory(transaction, cutoff: trimsByCount ? .max : historyCutoff(now))
    let moreLog = try trimChangeLog(transaction, cutoff: changeLogCutoff(now))
    let moreOutcomes = try RecentCommits.trim(transaction, before: now - RecentCommits.keptMicroseconds)
    return moreHistory || moreLog || moreOutcomes
  }

  /// Removes up to one batch of the history and the log up to the given versions. Returns whether more is due.
  func trim(
    _ transaction: any KeyValueTransaction, historyUpTo: Int64, logUpTo: Int64
  ) throws(StorageError) -> Bool {
    let moreHistory = try trimHistory(transaction, cutoff: historyUpTo)
    let moreLog = try trimChangeLog(transaction, cutoff: logUpTo)
    return moreHistory || moreLog
  }

  /// Returns whether ``trim(_:now:)`` would remove anything. Cost: three seeks.
  func isDue(_ reader: inout SnapshotReader, now: Int64) throws(StorageError) -> Bool {
    if try isLogFull(&reader, slack: Self.batchEntriesMax), try isHistoryUnbounded(&reader, now: now) { return true }
    let now = now - Self.delayMicroseconds
    if try RecentCommits.hasRows(before: now - RecentCommits.keptMicroseconds, in: reader.snapshot) { return true }
    let historyFrom = Int64(bitPattern: try reader.meta(.historyFrom))
    if let next = try nextVersion(reader.snapshot, after: historyFrom), next <= historyCutoff(now) { return true }
    let logFrom = Int64(bitPattern: try reader.meta(.changeLogFrom))
    guard let next = try nextVersion(reader.snapshot, after: logFrom), next <= historyFrom else { return false }
    return try next <= changeLogCutoff(now) ? true : isLogFull(&reader, slack: Self.batchEntriesMax)
  }

  /// Whether the log has more entries than it may have, and `slack` more.
  private func isLogFull(_ reader: inout SnapshotReader, slack: Int) throws(StorageError) -> Bool {
    try reader.meta(.changeLogCount) > UInt64(retention.changeLogEntriesMax + slack)
  }

  /// Whether the clock is behind the versions, so that time may not limit the history, and the log has only the entries
  /// that the history needs. If the log is full, the history is then trimmed by the number of entries.
  private func isHistoryUnbounded(_ reader: inout SnapshotReader, now: Int64) throws(StorageError) -> Bool {
    guard try reader.lastVersion() > now else { return false }
    let logFrom = Int64(bitPattern: try reader.meta(.changeLogFrom))
    return logFrom >= Int64(bitPattern: try reader.meta(.historyFrom))
  }

  private func historyCutoff(_ now: Int64) -> Int64 {
    let cutoff = now - Int64(retention.historySeconds) * 1_000_000
    return max(cutoff, ages.version(at: cutoff) ?? cutoff)
  }

  private func changeLogCutoff(_ now: Int64) -> Int64 { now - Int64(retention.changeLogSeconds) * 1_000_000 }

  /// Removes before-images up to `cutoff`.
  ///
  /// A before-image written by commit `v` serves reads below `v`, so it can go once reads below `v` are no longer
  /// allowed. ``MetaKey/historyFrom`` is exact: it is the version of the last commit whose before-images are gone.
  /// So the state after a commit stays readable until the next commit is trimmed, however old it is.
  private func trimHistory(_ transaction: any KeyValueTransaction, cutoff: Int64) throws(StorageError) -> Bool {
    var reader = SnapshotReader(transaction)
    let from = Int64(bitPattern: try reader.meta(.historyFrom))
    let entries = try logEntries(transaction, above: from, upTo: cutoff)
    guard let last = entries.last?.version else { return false }
    var key = StorageKey()
    for entry in entries {
      key.begin(.history)
      key.append(number: entry.collection)
      key.append(segment: entry.id)
      key.append(version: entry.version)
      try transaction.remove(key)
    }
    try transaction.put(.historyFrom, UInt64(bitPattern: last))
    return entries.count >= Self.batchEntriesMax
  }

  private func trimChangeLog(_ transaction: any KeyValueTransaction, cutoff: Int64) throws(StorageError) -> Bool {
    var reader = SnapshotReader(transaction)
    let from = Int64(bitPattern: try reader.meta(.changeLogFrom))
    let count = try reader.meta(.changeLogCount)
    let excess = max(0, Int(count) - retention.changeLogEntriesMax)
    // Trimming the history needs the log, so the log never ends after the history does.
    let historyFrom = Int64(bitPattern: try reader.meta(.historyFrom))
    let limit = excess > 0 ? historyFrom : min(cutoff, historyFrom)
    var entries = try logEntries(transaction, above: from, upTo: limit)
    if excess > 0, entries.count > excess {
      // Remove whole commits only, because a resume token lies between two commits.
      let last = max(entries[excess - 1].version, cutoff)
      entries.removeAll { $0.version > last }
    }
    guard let last = entries.last?.version else { return false }
    var key = StorageKey()
    for entry in entries {
      key.begin(.changeLog)
      key.append(version: entry.version)
      key.append(number: entry.position)
      try transaction.remove(key)
      key.begin(.collectionChanges)
      key.append(number: entry.collection)
      key.append(version: entry.version)
      key.append(lastID: entry.id)
      try transaction.remove(key)
    }
    try transaction.put(.changeLogFrom, UInt64(bitPattern: last))
    try transaction.put(.changeLogCount, count - min(count, UInt64(entries.count)))
    return entries.count >= Self.batchEntriesMax
  }

  /// Returns the version of the first commit in the log after a version.
  private func nextVersion(_ snapshot: any KeyValueSnapshot, after version: Int64) throws(StorageError) -> Int64? {
    var key = StorageKey()
    key.begin(.changeLog)
    let rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: version + 1)
    try rows.seek(key)
    guard let suffix = try rows.suffix(), suffix.count >= 8 else { return nil }
    return OrderedCode.version(at: 0, of: suffix)
  }

  private struct LogEntry {
    var version: Int64
    var position: UInt64
    var collection: UInt64
    var id: [UInt8]
  }

  /// Returns the log entries with versions above `from` and up to `limit`: about one batch, and whole commits only.
  private func logEntries(
    _ transaction: any KeyValueTransaction, above from: Int64, upTo limit: Int64
  ) throws(StorageError) -> [LogEntry] {
    var key = StorageKey()
    key.begin(.changeLog)
    let rows = PrefixCursor(try transaction.makeCursor(), prefix: key.bytes)
    key.append(version: from + 1)
    try rows.seek(key)
    var entries: [LogEntry] = []
    while var suffix = try rows.suffix() {
      guard let entry = Self.decode(&suffix, value: rows.cursor.value) else {
        throw .corruption(path: "changeLog", detail: "malformed change-log row")
      }
      guard entry.version <= limit else { break }
      if entries.count >= Self.batchEntriesMax, entries.last?.version != entry.version { break }
      entries.append(entry)
      rows.consume()
    }
    return entries
  }

  private static func decode(_ key: inout UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> LogEntry? {
    guard key.count > 8, value.count > 2 else { return nil }
    let version = OrderedCode.version(at: 0, of: key)
    key = UnsafeRawBufferPointer(rebasing: key[8...])
    var rest = UnsafeRawBufferPointer(rebasing: value[1...])
    guard let position = OrderedCode.takeNumber(&key), let collection = OrderedCode.takeNumber(&rest) else {
      return nil
    }
    var id: [UInt8] = []
    guard OrderedCode.decode(lastID: rest, into: &id) else { return nil }
    return LogEntry(version: version, position: position, collection: collection, id: id)
  }
}
