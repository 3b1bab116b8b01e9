import CXXHash
package import DocumentModel
package import Matching
import Synchronization
import WireFormat

/// The id of a client's transaction: 24 bytes that only this database could have made.
///
/// Layout: mode (1), seven bytes of a counter and its start, version read at (8), keyed hash (8). The hash lets an id
/// that ended be told from one that never was, also after a restart, without remembering any.
package struct TransactionID: Hashable, Sendable {
  /// The wire form.
  package let bytes: [UInt8]

  /// Wraps wire bytes; whether they are an id shows when they are used.
  package init(bytes: [UInt8]) { self.bytes = bytes }
}

/// The open transactions of one database: what each may do, reads at, and has read.
///
/// Optimistic: nothing is locked. The table only remembers; the commit is checked (design, section 5). Bounded in
/// number and in memory: the transactions idle longest give way.
package final class TransactionTable: Sendable {
  /// What a transaction may do.
  package enum Mode: UInt8, Sendable {
    case readOnly = 1
    case readWrite = 2
  }

  private struct Open {
    var mode: Mode
    var started: Int64
    var lastUsed: Int64
    var reads: ReadSet
  }

  private struct State {
    var open: [TransactionID: Open] = [:]
    /// Of all that open transactions read.
    var bytes = 0
    var counter: UInt64

    @discardableResult
    mutating func remove(_ id: TransactionID) -> Open? {
      let open = open.removeValue(forKey: id)
      bytes -= open?.reads.bytes ?? 0
      return open
    }

    mutating func removeAll(where isOver: (Open) -> Bool) {
      for id in open.filter({ isOver($0.value) }).keys { remove(id) }
    }
  }

  /// Memory for what all open transactions read, in bytes.
  static let bytesMax = 64 << 20

  private let seed: UInt64
  private let clock: Clock
  private let state: Mutex<State>

  /// Creates a table; `seed` must survive a restart of the database and differ between databases.
  init(seed: UInt64, clock: Clock) {
    self.seed = seed
    self.clock = clock
    state = Mutex(State(counter: UInt64.random(in: 0...UInt64.max)))
  }

  /// Opens a transaction that reads at a version.
  package func begin(_ mode: Mode, readVersion: Int64) -> TransactionID {
    let now = clock.now()
    return state.withLock { state in
      if state.open.count >= Limits.transactionsMax { Self.makeRoom(&state, now: now) }
      state.counter &+= 1
      let id = makeID(mode, counter: state.counter, readVersion: readVersion)
      state.open[id] = Open(mode: mode, started: now, lastUsed: now, reads: ReadSet(at: readVersion))
      return id
    }
  }

  /// The mode and version of an open transaction; counts as use.
  /// - Throws: ``CommitError/transactionUnknown`` or ``CommitError/transactionOver(isReadOnly:)``.
  package func use(_ id: TransactionID) throws(CommitError) -> (mode: Mode, readVersion: Int64) {
    let mode = try mode(of: id)
    let now = clock.now()
    let found = state.withLock { state -> (Mode, Int64)? in
      guard let open = state.open[id] else { return nil }
      guard !Self.isOver(open, now: now) else {
        state.remove(id)
        return nil
      }
      state.open[id]?.lastUsed = now
      return (open.mode, open.reads.readVersion)
    }
    guard let found else { throw .transactionOver(isReadOnly: mode == .readOnly) }
    return found
  }

  /// Notes that a read-write transaction saw documents at these versions (0 for a missing one).
  package func noteReads(_ reads: [(key: DocumentKey, version: Int64)], in id: TransactionID) {
    // The first sight of a document counts; all reads of one transaction see one version anyway.
    change(id) { set in for (key, version) in reads { set.note(key, version: version) } }
  }

  /// Notes what decides the result of a query that a read-write transaction runs.
  ///
  /// What comes back wants to be told the results, where `limit` bounds them; `nil` where there is nothing to tell.
  @discardableResult
  package func note(_ range: QueryRange, limit: Int? = nil, in id: TransactionID) -> TrackedQuery? {
    let noted = change(id) { set in set.note(range) }
    guard let noted, let limit else { return nil }
    return TrackedQuery(self, id, noted, limit: limit)
  }

  /// Ends a noted range behind a document.
  func end(
    _ range: ReadSet.RangeID, behind fields: EncodedMap, at key: DocumentKey, in id: TransactionID
  ) throws(WireError) {
    var failure: WireError?
    change(id) { set in
      do throws(WireError) { try set.end(range, behind: fields, at: key.path) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Changes what a read-write transaction read; nothing happens where it is over, as its commit will say.
  @discardableResult
  private func change<R>(_ id: TransactionID, _ body: (inout ReadSet) -> R) -> R? {
    state.withLock { state -> R? in
      guard let index = state.open.index(forKey: id), state.open.values[index].mode == .readWrite else { return nil }
      let before = state.open.values[index].reads.bytes
      let result = body(&state.open.values[index].reads)
      state.bytes += state.open.values[index].reads.bytes - before
      if state.bytes > Self.bytesMax { Self.makeRoomInMemory(&state, for: id, now: clock.now()) }
      return result
    }
  }

  /// Closes a transaction for its commit and returns what it read.
  /// - Throws: as ``use(_:)``, and ``CommitError/transactionReadOnly`` when it has writes but may not; it stays open then.
  package func close(_ id: TransactionID, forWrites: Bool) throws(CommitError) -> ReadSet {
    let (mode, _) = try use(id)
    if mode == .readOnly, forWrites { throw .transactionReadOnly }
    // Another request may have ended it in between.
    guard let open = state.withLock({ $0.remove(id) }) else { throw .transactionOver(isReadOnly: mode == .readOnly) }
    return open.reads
  }

  /// Ends a transaction without a commit.
  /// - Throws: ``CommitError/transactionUnknown`` for bytes that are no id; ending one that is over is no error.
  package func rollback(_ id: TransactionID) throws(CommitError) {
    _ = try mode(of: id)
    state.withLock { _ = $0.remove(id) }
  }

  /// About how much memory all that was read takes, in bytes.
  package var bytes: Int { state.withLock { $0.bytes } }

  /// How many are open; those that ran out of time are let go of first. Cost: linear in them.
  package var count: Int {
    let now = clock.now()
    return state.withLock { state in
      state.removeAll { Self.isOver($0, now: now) }
      return state.open.count
    }
  }

  /// Ends every transaction; for a database that was cleared.
  func endAll() { state.withLock { $0.removeAll { _ in true } } }

  private static func isOver(_ open: Open, now: Int64) -> Bool {
    now - open.started > Int64(Limits.transactionSecondsMax) * 1_000_000
      || now - open.lastUsed > Int64(Limits.transactionIdleSecondsMax) * 1_000_000
  }

  private static func makeRoom(_ state: inout State, now: Int64) {
    state.removeAll { isOver($0, now: now) }
    guard state.open.count >= Limits.transactionsMax,
      let idlest = state.open.min(by: { $0.value.lastUsed < $1.value.lastUsed })?.key
    else { return }
    state.remove(idlest)
  }

  /// Ends transactions idle longest until an eighth of the memory is free, so that this is not soon done again.
  private static func makeRoomInMemory(_ state: inout State, for id: TransactionID, now: Int64) {
    state.removeAll { isOver($0, now: now) }
    let idlestFirst = state.open.filter { $0.key != id }.sorted { $0.value.lastUsed < $1.value.lastUsed }
    for (idle, _) in idlestFirst where state.bytes > bytesMax / 8 * 7 { state.remove(idle) }
  }

  // MARK: Ids

  private func makeID(_ mode: Mode, counter: UInt64, readVersion: Int64) -> TransactionID {
    var bytes: [UInt8] = [mode.rawValue]
    withUnsafeBytes(of: counter.littleEndian) { bytes.append(contentsOf: $0.prefix(7)) }
    withUnsafeBytes(of: readVersion.littleEndian) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: hash(bytes).littleEndian) { bytes.append(contentsOf: $0) }
    return TransactionID(bytes: bytes)
  }

  private func mode(of id: TransactionID) throws(CommitError) -> Mode {
    guard id.bytes.count == 24, let mode = Mode(rawValue: id.bytes[0]),
      withUnsafeBytes(of: hash(Array(id.bytes.prefix(16))).littleEndian, { $0.elementsEqual(id.bytes.suffix(8)) })
    else { throw .transactionUnknown }
    return mode
  }

  private func hash(_ bytes: [UInt8]) -> UInt64 { XXH3_64bits_withSeed(bytes, bytes.count, seed) }
}
