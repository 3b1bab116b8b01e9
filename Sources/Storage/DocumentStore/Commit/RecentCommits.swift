import DocumentModel
import KeyEncoding
import KeyValue

/// The rows of ``Table/recentCommits``: the outcomes of recent commits by the ID of their request, so that a request that
/// arrives again gets the outcome of the first commit.
///
/// The key begins with the period in which the request arrived, so that old rows are removed without a search, and ends
/// with the ID. A lookup tries each period that has rows, of which there are about four. The period is one of the clock,
/// because versions are no times while the clock is behind them. A commit writes its row in its own transaction: the row
/// exists if and only if the commit does, also after a restart and on every replica.
///
/// A plain write of one document has a row of about 40 bytes. See ``StoredOutcome`` for the largest one.
///
/// A value of this type reads one snapshot, or one write transaction, and remembers the periods that have rows.
struct RecentCommits {
  /// The time for which an outcome is kept at least, in microseconds. It is kept for up to ``periodMicroseconds`` and the
  /// interval of maintenance longer.
  static let keptMicroseconds: Int64 = 600_000_000
  /// The length of a period, in microseconds. The number is on disk.
  static let periodMicroseconds: Int64 = 300_000_000

  /// The periods that have rows, in order; `nil` before the first lookup.
  private var periods: [UInt64]?

  /// Forgets the periods, because another transaction begins.
  mutating func forget() { periods = nil }

  /// Returns the outcome of the commit with an ID, or `nil` if it is not known. Cost: a lookup for each period; the first
  /// time also a seek for each.
  /// - Throws: ``CommitError/idReused`` if the commit had other writes, or ``CommitError/storage(_:)``.
  mutating func outcome(
    of id: RequestID, digest: UInt64, in snapshot: any KeyValueSnapshot
  ) throws(CommitError) -> CommitOutcome? {
    let stored: StoredOutcome
    do throws(StorageError) {
      guard let found = try find(id, in: snapshot) else { return nil }
      stored = found
    } catch { throw .storage(error) }
    guard stored.digest == digest else { throw .idReused }
    return stored.outcome
  }

  private mutating func find(
    _ id: RequestID, in snapshot: any KeyValueSnapshot
  ) throws(StorageError) -> StoredOutcome? {
    let known: [UInt64] = if let periods { periods } else { try Self.periods(in: snapshot) }
    periods = known
    // The newest first, because most repetitions arrive soon.
    for period in known.reversed() {
      let key = Self.key(period, id)
      let value = try key.withBytes { (key) throws(StorageError) in try snapshot.value(for: key) }
      guard let value else { continue }
      guard let stored = StoredOutcome(value) else { throw Self.malformed("a value") }
      return stored
    }
    return nil
  }

  private static func periods(in snapshot: any KeyValueSnapshot) throws(StorageError) -> [UInt64] {
    var periods: [UInt64] = []
    let rows = try DatabaseContents.cursor(.recentCommits, snapshot)
    while let period = try period(of: rows) {
      periods.append(period)
      var key = StorageKey()
      key.begin(.recentCommits)
      key.append(number: period + 1)
      try rows.seek(key)
    }
    return periods
  }

  /// Stores the outcome of a commit whose request arrived at a time, in microseconds since 1970.
  mutating func put(
    _ outcome: CommitOutcome, of id: RequestID, digest: UInt64, at arrival: Int64,
    _ transaction: any KeyValueTransaction
  ) throws(StorageError) {
    let period = Self.period(of: arrival)
    try transaction.put(Self.key(period, id), StoredOutcome(digest: digest, outcome: outcome).bytes)
    if periods?.contains(period) == false { periods?.append(period) }
  }

  private static func key(_ period: UInt64, _ id: RequestID) -> StorageKey {
    var key = StorageKey()
    key.begin(.recentCommits)
    key.append(number: period)
    key.append(raw: id.bytes)
    return key
  }

  /// Whether ``trim(_:before:)`` would remove a row. Cost: one seek.
  static func hasRows(before time: Int64, in snapshot: any KeyValueSnapshot) throws(StorageError) -> Bool {
    guard let first = try period(of: DatabaseContents.cursor(.recentCommits, snapshot)) else { return false }
    return first < period(of: time)
  }

  /// Removes the rows of the periods that end before a time, at most ``Trimmer/batchEntriesMax``. Returns whether more
  /// may be left.
  static func trim(
    _ transaction: any KeyValueTransaction, before time: Int64
  ) throws(StorageError) -> Bool {
    let end = period(of: time)
    let rows = try DatabaseContents.cursor(.recentCommits, transaction)
    var count = 0
    while let period = try period(of: rows), period < end, count < Trimmer.batchEntriesMax {
      count += 1
      rows.consume()
    }
    guard count > 0 else { return false }
    var upper = StorageKey()
    // The first row that stays, or the end of the periods.
    if count == Trimmer.batchEntriesMax, try rows.suffix() != nil {
      upper.begin(raw: Array(rows.cursor.key))
    } else {
      upper.begin(.recentCommits)
      upper.append(number: end)
    }
    var lower = StorageKey()
    lower.begin(.recentCommits)
    try lower.withBytes { (lower) throws(StorageError) in
      try upper.withBytes { (upper) throws(StorageError) in _ = try transaction.removeRange(from: lower, to: upper) }
    }
    return count == Trimmer.batchEntriesMax
  }

  /// Decodes a row, given the part of its key after the number of the table. Returns `nil` if it is malformed.
  static func decode(
    _ suffix: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> (period: UInt64, outcome: CommitOutcome)? {
    var rest = suffix
    guard let period = OrderedCode.takeNumber(&rest), rest.count == 16, let stored = StoredOutcome(value) else {
      return nil
    }
    return (period, stored.outcome)
  }

  /// Returns the period of a time in microseconds since 1970.
  static func period(of time: Int64) -> UInt64 { UInt64(max(time, 0) / periodMicroseconds) }

  /// Returns the period of the row at which a cursor is, or `nil` at the end of the table.
  private static func period(of rows: PrefixCursor) throws(StorageError) -> UInt64? {
    guard var suffix = try rows.suffix() else { return nil }
    guard let period = OrderedCode.takeNumber(&suffix) else { throw malformed("a key") }
    return period
  }

  private static func malformed(_ part: String) -> StorageError {
    .corruption(path: "recentCommits", detail: "\(part) is malformed")
  }
}
