import CXXHash
package import DocumentModel
package import Matching
import Synchronization
import WireFormat

/// The open transactions of one database: their modes, read versions and reads.
///
/// Transactions are optimistic: they take no locks, and the commit checks the reads for conflicts
/// (``ConflictCheck``). The table is limited in number and memory: it ends the transactions that have been idle
/// longest.
package final class TransactionTable: Sendable {
  /// The operations that a transaction allows.
  package enum Mode: UInt8, Sendable {
    case readOnly = 1
    case readWrite = 2
  }

  private struct Open {
    var mode: Mode
    /// Microseconds of `clock`.
    var started: Int64
    /// Microseconds of `clock`.
    var lastUsed: Int64
    var reads: ReadSet
  }

  private struct State {
    var open: [TransactionID: Open] = [:]
    /// The approximate memory of the reads of all open transactions.
    var bytes = 0
    var counter: UInt64

    @discardableResult
    mutating func remove(_ id: TransactionID) -> Open? {
      let open = open.removeValue(forKey: id)
      bytes -= open?.reads.bytes ?? 0
      return open
    }

    mutating func removeAll(where shouldRemove: (Open) -> Bool) {
      for id in open.filter({ shouldRemove($0.value) }).keys { remove(id) }
    }
  }

  /// The maximum memory for the reads of all open transactions, in bytes. If it is exceeded, the transactions idle
  /// longest end, but never the one that is reading.
  static let bytesMax = 64 << 20

  /// Identifies the transactions of a database, also after a restart.
  private let seed: Atomic<UInt64>
  private let clock: Clock
  private let state: Mutex<State>

  /// Creates a table. `seed` must survive a restart of the database and differ between databases.
  init(seed: UInt64, clock: Clock) {
    self.seed = Atomic(seed)
    self.clock = clock
    state = Mutex(State(counter: UInt64.random(in: 0...UInt64.max)))
  }

  /// Sets the seed of a database that was just initialized. No transaction is open.
  func setSeed(_ seed: UInt64) { self.seed.store(seed, ordering: .relaxed) }

  /// Opens a transaction of a caller that reads at a version. If the table is full, the transaction idle longest ends.
  package func begin(_ mode: Mode, readVersion: Int64, by owner: TransactionOwner) -> TransactionID {
    let now = clock.now()
    return state.withLock { state in
      if state.open.count >= Limits.transactionsMax { Self.makeRoom(&state, now: now) }
      state.counter &+= 1
      let id = makeID(mode, counter: state.counter, readVersion: readVersion, owner)
      state.open[id] = Open(mode: mode, started: now, lastUsed: now, reads: ReadSet(at: readVersion))
      return id
    }
  }

  /// Returns the mode and the read version of an open transaction, and resets its idle time.
  /// - Throws: ``CommitError/transactionUnknown`` if the ID is invalid or belongs to another caller, or
  ///   ``CommitError/transactionOver(isReadOnly:)`` if the transaction ended or expired.
  package func use(
    _ id: TransactionID, by owner: TransactionOwner
  ) throws(CommitError) -> (mode: Mode, readVersion: Int64) {
    let mode = try mode(of: id, owner)
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

  /// Notes that a read-write transaction read documents at these versions, 0 for a missing one.
  package func noteReads(_ reads: [(key: DocumentKey, version: Int64)], in id: TransactionID) {
    // The first read of a document counts. All reads of one transaction are at the same version anyway.
    change(id) { set in for (key, version) in reads { set.note(key, version: version) } }
  }

  /// Notes the range that determines the result of a query in a read-write transaction.
  ///
  /// If the query has a `limit`, returns a ``TrackedQuery`` whose `returned(_:_:)` must be called for each result,
  /// otherwise `nil`.
  @discardableResult
  package func note(_ range: QueryRange, limit: Int? = nil, in id: TransactionID) -> TrackedQuery? {
    let noted = change(id) { set in set.note(range) }
    guard let noted, let limit else { return nil }
    return TrackedQuery(self, id, noted, limit: limit)
  }

  /// Ends a noted range after a document.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
  func end(
    _ range: ReadSet.RangeID, after fields: EncodedMap, at key: DocumentKey, in id: TransactionID
  ) throws(WireError) {
    var failure: WireError?
    change(id) { set in
      do throws(WireError) { try set.end(range, after: fields, at: key.path) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Changes the reads of a read-write transaction. Does nothing for a read-only transaction, or for one that is
  /// over. The commit reports the latter.
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

  /// Closes a transaction for its commit and returns its reads.
  /// - Throws: as ``use(_:by:)``, and ``CommitError/transactionReadOnly`` if `forWrites` is set for a read-only
  ///   transaction, which stays open then.
  package func close(
    _ id: TransactionID, forWrites: Bool, by owner: TransactionOwner
  ) throws(CommitError) -> ReadSet {
    let (mode, _) = try use(id, by: owner)
    if mode == .readOnly, forWrites { throw .transactionReadOnly }
    // Another request may have ended it in between.
    guard let open = state.withLock({ $0.remove(id) }) else { throw .transactionOver(isReadOnly: mode == .readOnly) }
    return open.reads
  }

  /// Ends a transaction without a commit. Does nothing if it is already over.
  /// - Throws: ``CommitError/transactionUnknown`` if the ID is invalid or belongs to another caller.
  package func rollback(_ id: TransactionID, by owner: TransactionOwner) throws(CommitError) {
    _ = try mode(of: id, owner)
    state.withLock { _ = $0.remove(id) }
  }

  /// The approximate memory for the reads of all open transactions, in bytes.
  package var bytes: Int { state.withLock { $0.bytes } }

  /// The number of open transactions, after removing expired ones. Cost: linear in their number.
  package var count: Int {
    let now = clock.now()
    return state.withLock { state in
      state.removeAll { Self.isOver($0, now: now) }
      return state.open.count
    }
  }

  /// Ends every transaction, because the database was cleared.
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

  /// Ends the transactions idle longest until an eighth of the memory is free, so that memory is not full again at
  /// once.
  private static func makeRoomInMemory(_ state: inout State, for id: TransactionID, now: Int64) {
    state.removeAll { isOver($0, now: now) }
    let idlestFirst = state.open.filter { $0.key != id }.sorted { $0.value.lastUsed < $1.value.lastUsed }
    for (idle, _) in idlestFirst where state.bytes > bytesMax / 8 * 7 { state.remove(idle) }
  }

  // MARK: IDs

  /// Returns a new ID: 24 bytes that other databases do not create by accident.
  ///
  /// The layout is: mode (1), the low seven bytes of a counter (7), read version (8), keyed hash (8). The hash covers
  /// the owner as well. It distinguishes an ID that is over from one that never existed or belongs to another caller,
  /// also after a restart, without remembering any.
  private func makeID(
    _ mode: Mode, counter: UInt64, readVersion: Int64, _ owner: TransactionOwner
  ) -> TransactionID {
    var bytes: [UInt8] = [mode.rawValue]
    withUnsafeBytes(of: counter.littleEndian) { bytes.append(contentsOf: $0.prefix(7)) }
    withUnsafeBytes(of: readVersion.littleEndian) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: hash(bytes + owner.bytes).littleEndian) { bytes.append(contentsOf: $0) }
    return TransactionID(bytes: bytes)
  }

  private func mode(of id: TransactionID, _ owner: TransactionOwner) throws(CommitError) -> Mode {
    guard id.bytes.count == 24, let mode = Mode(rawValue: id.bytes[0]),
      withUnsafeBytes(
        of: hash(id.bytes.prefix(16) + owner.bytes).littleEndian, { $0.elementsEqual(id.bytes.suffix(8)) })
    else { throw .transactionUnknown }
    return mode
  }

  private func hash(_ bytes: [UInt8]) -> UInt64 {
    XXH3_64bits_withSeed(bytes, bytes.count, seed.load(ordering: .relaxed))
  }
}
