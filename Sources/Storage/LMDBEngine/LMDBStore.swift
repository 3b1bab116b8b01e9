import CLMDB
import Glibc
package import KeyValue
import Synchronization

/// The embedded storage engine: one LMDB environment behind the ordered key-value seam.
///
/// The environment is closed when the store and every snapshot that has not ended are gone. Until then the same
/// file cannot be opened a second time in this process.
///
/// `@unchecked Sendable`: the stored properties are constants. LMDB itself serialises what threads do with an
/// environment; the pool of snapshots has a lock; `transaction` is touched only by the thread that holds LMDB's
/// writer lock.
package final class LMDBStore: KeyValueStore, @unchecked Sendable {
  /// The data file. That of an in-memory store has no name any more; this is the one it had.
  package let path: String
  /// The size the data file may grow to, in bytes.
  package let mapBytes: Int

  let environment: OpaquePointer
  let databases: Databases
  let readersMax: Int
  let readOnly: Bool
  let fileDescriptor: Int32
  private let registered: FileIdentity?
  private let idle: Mutex<[LMDBSnapshot]>
  private let transaction: LMDBTransaction
  private let writerThread = Atomic<UInt>(0)

  /// The handles of the named databases described in ``LongKeys``.
  struct Databases {
    var entries: MDB_dbi = 0
    var continuations: MDB_dbi = 0
    var meta: MDB_dbi = 0
  }

  /// How many ended snapshots are kept for reuse; each holds a reader slot.
  private static let idleSnapshotsMax = 64

  /// Takes over an environment that is open and checked; see `LMDBStore+Open.swift`.
  init(_ opened: OpenedEnvironment, readOnly: Bool, registered: FileIdentity?) {
    path = opened.path
    mapBytes = opened.mapBytes
    environment = opened.environment
    databases = opened.databases
    readersMax = opened.readersMax
    fileDescriptor = opened.fileDescriptor
    self.readOnly = readOnly
    self.registered = registered
    transaction = LMDBTransaction()
    var snapshots: [LMDBSnapshot] = []
    snapshots.reserveCapacity(Self.idleSnapshotsMax)
    idle = Mutex(snapshots)
  }

  deinit {
    // Nobody is inside a snapshot or a write: each of them holds a reference to the store.
    idle.withLock { snapshots in
      for snapshot in snapshots { snapshot.discard() }
      snapshots.removeAll()
    }
    mdb_env_close(environment)
    if let registered { OpenFiles.remove(registered) }
  }

  /// The store as it is now: ``KeyValueStore/snapshot()``, from the pool where one is idle.
  package func snapshot() throws(StorageError) -> any KeyValueSnapshot {
    if var snapshot = idle.withLock({ $0.popLast() }) {
      if !isKnownUniquelyReferenced(&snapshot) {
        // Whoever ended it still holds it and may end it again; only its read transaction can be reused.
        snapshot = snapshot.handOver()
      }
      try snapshot.renew(store: self)
      return snapshot
    }
    return try LMDBSnapshot(store: self, readTransaction: beginRead())
  }

  private func beginRead() throws(StorageError) -> OpaquePointer {
    var reader: OpaquePointer?
    var code = mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &reader)
    if code == MDB_READERS_FULL {
      // Slots of processes that died stay taken until somebody looks.
      mdb_reader_check(environment, nil)
      code = mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &reader)
    }
    guard code == 0, let reader else { throw failure(code, "mdb_txn_begin") }
    return reader
  }

  /// Keeps an ended snapshot for the next caller. Returns `false` when enough are kept already.
  func keep(_ snapshot: LMDBSnapshot) -> Bool {
    idle.withLock { snapshots in
      guard snapshots.count < Self.idleSnapshotsMax else { return false }
      snapshots.append(snapshot)
      return true
    }
  }

  /// One write transaction: ``KeyValueStore/write(_:)``. Waits for the writer lock.
  package func write(
    _ body: (any KeyValueTransaction) throws(StorageError) -> Void
  ) throws(StorageError) {
    guard !readOnly else { throw .system(operation: "write", path: path, code: EROFS) }
    let thread = UInt(pthread_self())
    precondition(writerThread.load(ordering: .relaxed) != thread, "a write transaction inside a write transaction")
    var writer: OpaquePointer?
    let begun = mdb_txn_begin(environment, nil, 0, &writer)
    guard begun == 0, let writer else { throw failure(begun, "mdb_txn_begin") }

    writerThread.store(thread, ordering: .relaxed)
    transaction.begin(writer, store: self)
    do throws(StorageError) {
      try body(transaction)
      try transaction.finish()
    } catch {
      leaveWriter()
      mdb_txn_abort(writer)
      throw error
    }
    leaveWriter()
    let committed = mdb_txn_commit(writer)
    guard committed == 0 else { throw failure(committed, "mdb_txn_commit") }
  }

  /// Must come before the commit: as soon as LMDB lets go of its writer lock another thread uses `transaction`.
  private func leaveWriter() {
    transaction.end(of: self)
    writerThread.store(0, ordering: .relaxed)
  }
}
