import CXXHash
package import DocumentModel
import Synchronization

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
/// Optimistic: nothing is locked. The table only remembers; the writer decides (design, section 5). Bounded: the
/// transaction idle longest gives way to a new one.
package final class TransactionTable: Sendable {
  /// What a transaction may do.
  package enum Mode: UInt8, Sendable {
    case readOnly = 1
    case readWrite = 2
  }

  private struct Open {
    var mode: Mode
    var readVersion: Int64
    var started: Int64
    var lastUsed: Int64
    var reads: [DocumentKey: Int64] = [:]
    var listedCollections: Set<ResourcePath> = []
  }

  /// What a transaction that goes to its commit had read.
  package struct Ended: Sendable {
    var reads: [DocumentKey: Int64]
    var listedCollections: Set<ResourcePath>
    var readVersion: Int64
  }

  private struct State {
    var open: [TransactionID: Open] = [:]
    var counter: UInt64
  }

  /// Documents one transaction may read.
  private static let readsMax = 100_000

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
      state.open[id] = Open(mode: mode, readVersion: readVersion, started: now, lastUsed: now)
      return id
    }
  }

  /// The mode and version of an open transaction; counts as use.
  /// - Throws: ``CommitError/transactionUnknown`` or ``CommitError/transactionOver(isReadOnly:)``.
  package func use(_ id: TransactionID) throws(CommitError) -> (mode: Mode, readVersion: Int64) {
    let mode = try mode(of: id)
    let now = clock.now()
    let found = state.withLock { state -> (Mode, Int64)? in
      guard var open = state.open[id] else { return nil }
      guard !Self.isOver(open, now: now) else {
        state.open[id] = nil
        return nil
      }
      open.lastUsed = now
      state.open[id] = open
      return (open.mode, open.readVersion)
    }
    guard let found else { throw .transactionOver(isReadOnly: mode == .readOnly) }
    return found
  }

  /// Notes that a read-write transaction saw documents at these versions (0 for a missing one).
  /// - Throws: ``CommitError/transactionTooLarge`` past the number of documents one may read.
  package func noteReads(_ reads: [(key: DocumentKey, version: Int64)], in id: TransactionID) throws(CommitError) {
    let fits = state.withLock { state in
      guard state.open[id]?.mode == .readWrite else { return true }
      // The first sight of a document counts; all reads of one transaction see one version anyway.
      for (key, version) in reads { state.open[id]?.reads[key] = version }
      return (state.open[id]?.reads.count ?? 0) <= Self.readsMax
    }
    guard fits else { throw .transactionTooLarge }
  }

  /// Notes that a read-write transaction listed documents of a collection.
  package func noteListing(of collection: ResourcePath, in id: TransactionID) throws(CommitError) {
    let fits = state.withLock { state in
      guard state.open[id]?.mode == .readWrite else { return true }
      state.open[id]?.listedCollections.insert(collection)
      return (state.open[id]?.listedCollections.count ?? 0) <= Self.readsMax
    }
    guard fits else { throw .transactionTooLarge }
  }

  /// Closes a transaction for its commit and returns what it read.
  /// - Throws: as ``use(_:)``, and ``CommitError/transactionReadOnly`` when it has writes but may not; it stays open then.
  package func close(_ id: TransactionID, forWrites: Bool) throws(CommitError) -> Ended {
    let (mode, readVersion) = try use(id)
    if mode == .readOnly, forWrites { throw .transactionReadOnly }
    let open = state.withLock { $0.open.removeValue(forKey: id) }
    // Another request may have ended it in between.
    guard let open else { throw .transactionOver(isReadOnly: mode == .readOnly) }
    return Ended(reads: open.reads, listedCollections: open.listedCollections, readVersion: readVersion)
  }

  /// Ends a transaction without a commit.
  /// - Throws: ``CommitError/transactionUnknown`` for bytes that are no id; ending one that is over is no error.
  package func rollback(_ id: TransactionID) throws(CommitError) {
    _ = try mode(of: id)
    state.withLock { _ = $0.open.removeValue(forKey: id) }
  }

  /// How many are open; those that ran out of time are let go of first. Cost: linear in them.
  package var count: Int {
    let now = clock.now()
    return state.withLock { state in
      state.open = state.open.filter { !Self.isOver($0.value, now: now) }
      return state.open.count
    }
  }

  /// Ends every transaction; for a database that was cleared.
  func endAll() { state.withLock { $0.open.removeAll() } }

  private static func isOver(_ open: Open, now: Int64) -> Bool {
    now - open.started > Int64(Limits.transactionSecondsMax) * 1_000_000
      || now - open.lastUsed > Int64(Limits.transactionIdleSecondsMax) * 1_000_000
  }

  private static func makeRoom(_ state: inout State, now: Int64) {
    state.open = state.open.filter { !isOver($0.value, now: now) }
    guard state.open.count >= Limits.transactionsMax,
      let idlest = state.open.min(by: { $0.value.lastUsed < $1.value.lastUsed })?.key
    else { return }
    state.open[idlest] = nil
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
