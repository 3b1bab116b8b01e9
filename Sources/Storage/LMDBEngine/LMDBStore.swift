import CLMDB
import Glibc
package import KeyValue
import Synchronization

/// The embedded storage engine: one LMDB environment as an ordered key-value store.
///
/// The environment is closed when the store and all its open snapshots are gone. Until then, this process cannot
/// open the same file a second time.
///
/// `@unchecked Sendable`: the stored properties are constants. LMDB itself serializes what threads do with an
/// environment, the pool of snapshots has a lock, and only the thread that holds LMDB's writer lock uses `transaction`.
package final class LMDBStore: KeyValueStore, @unchecked Sendable {
  /// The data file. For an in-memory store, its former name; the file has no name any more.
  package let path: String
  /// The size to which the data file may grow, in bytes.
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
  /// Whether the file may have a mark that the next write removes, because that write is not in the log of the mark.
  private let mayHaveOldMark: Atomic<Bool>

  /// The handles of the named databases described in ``LongKeys``.
  struct Databases {
    var entries: MDB_dbi = 0
    var continuations: MDB_dbi = 0
    var meta: MDB_dbi = 0
  }

  /// The most ended snapshots kept for reuse. Each occupies a reader slot.
  private static let idleSnapshotsMax = 64

  /// Takes ownership of an environment that is open and checked; see `LMDBStore+Open.swift`.
  init(_ opened: OpenedEnvironment, readOnly: Bool, acceptsOpenLog: Bool = false, registered: FileIdentity?) {
    mayHaveOldMark = Atomic(!acceptsOpenLog)
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
    // No snapshot or write can be open: each holds a reference to the store.
    idle.withLock { snapshots in
      for snapshot in snapshots { snapshot.discard() }
      snapshots.removeAll()
    }
    guard let registered else { return mdb_env_close(environment) }
    // The descriptor keeps the inode. If the file was removed, another file could get its number and be refused as open.
    var descriptor: Int32 = -1
    mdb_env_get_fd(environment, &descriptor)
    let kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    mdb_env_close(environment)
    OpenFiles.remove(registered)
    if kept >= 0 { close(kept) }
  }

  /// Takes a snapshot as ``KeyValueStore/snapshot()``, reusing an idle one from the pool if possible.
  /// - Throws: ``StorageError/tooManyReaders(limit:)`` if all reader slots are in use.
  package func snapshot() throws(StorageError) -> any KeyValueSnapshot {
    if var snapshot = idle.withLock({ $0.popLast() }) {
      if !isKnownUniquelyReferenced(&snapshot) {
        // Other code still holds the ended snapshot and may end it again, so only its read transaction is reused.
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
      // Slots of processes that died stay in use until a reader check frees them.
      mdb_reader_check(environment, nil)
      code = mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &reader)
    }
    guard code == 0, let reader else { throw failure(code, "mdb_txn_begin") }
    return reader
  }

  /// Keeps an ended snapshot for the next caller. Returns `false` if the pool is full.
  func keep(_ snapshot: LMDBSnapshot) -> Bool {
    idle.withLock { snapshots in
      guard snapshots.count < Self.idleSnapshotsMax else { return false }
      snapshots.append(snapshot)
      return true
    }
  }

  /// Runs a write transaction as ``KeyValueStore/write(_:)``. Waits for the writer lock.
  /// - Throws: the error of `body`, or ``StorageError`` if the store is read-only or the commit fails.
  package func write(
    _ body: (any KeyValueTransaction) throws(StorageError) -> Void
  ) throws(StorageError) {
    try writeMarked { (transaction) throws(StorageError) in
      try body(transaction)
      return nil
    }
  }

  /// Runs a write transaction as ``write(_:)``, and stores the mark that `body` returns, if any, in the same transaction.
  /// - Throws: the error of `body`, or ``StorageError`` if the store is read-only or the commit fails. Neither entries nor
  ///   mark change then.
  package func writeMarked(
    _ body: (any KeyValueTransaction) throws(StorageError) -> LogMark?
  ) throws(StorageError) {
    guard !readOnly else { throw .system(operation: "write", path: path, code: EROFS) }
    let thread = UInt(pthread_self())
    precondition(writerThread.load(ordering: .relaxed) != thread, "a write transaction was started inside another one")
    var writer: OpaquePointer?
    let begun = mdb_txn_begin(environment, nil, 0, &writer)
    guard begun == 0, let writer else { throw failure(begun, "mdb_txn_begin") }

    writerThread.store(thread, ordering: .relaxed)
    transaction.begin(writer, store: self)
    do throws(StorageError) {
      let mark = try body(transaction)
      try transaction.finish()
      if let mark {
        try put(mark, in: writer)
      } else if mayHaveOldMark.load(ordering: .relaxed) {
        try removeMark(in: writer)
      }
    } catch {
      leaveWriter()
      mdb_txn_abort(writer)
      throw error
    }
    leaveWriter()
    let committed = mdb_txn_commit(writer)
    guard committed == 0 else { throw failure(committed, "mdb_txn_commit") }
    mayHaveOldMark.store(false, ordering: .relaxed)
  }

  /// Releases `transaction` before the commit: once LMDB releases its writer lock, another thread uses it.
  private func leaveWriter() {
    transaction.end(of: self)
    writerThread.store(0, ordering: .relaxed)
  }
}
