import CLMDB
import KeyValue

/// One LMDB read transaction.
///
/// Ended snapshots wait in the store's pool with their read transaction reset. So the next snapshot needs neither
/// an LMDB lock nor an allocation.
///
/// `@unchecked Sendable`: a snapshot passes between threads only through the pool's lock. Outside the pool, one
/// thread at a time uses it, as ``KeyValueStore/snapshot()`` requires. The pool reuses a snapshot only if no other
/// code holds a reference.
final class LMDBSnapshot: KeyValueSnapshot, @unchecked Sendable {
  /// Set while the snapshot is open, and only then.
  private var store: LMDBStore?
  private var readTransaction: OpaquePointer?
  private var cursors = CursorCache()
  private let scratch = KeyScratch()

  /// Wraps a read transaction that has just begun.
  init(store: LMDBStore, readTransaction: OpaquePointer) {
    self.store = store
    self.readTransaction = readTransaction
  }

  /// Wraps a reset read transaction, for ``renew(store:)``.
  private init(resetTransaction: OpaquePointer?) {
    readTransaction = resetTransaction
  }

  deinit {
    if store != nil { cursors.detachAll(keep: 0) }
    if let readTransaction { mdb_txn_abort(readTransaction) }
    scratch.deallocate()
  }

  /// Moves the read transaction to a new object. This one remains ended.
  func handOver() -> LMDBSnapshot {
    defer { readTransaction = nil }
    return LMDBSnapshot(resetTransaction: readTransaction)
  }

  /// Opens an ended snapshot again, at the newest state.
  func renew(store: LMDBStore) throws(StorageError) {
    let code = mdb_txn_renew(readTransaction)
    guard code == 0 else {
      discard()
      throw store.failure(code, "mdb_txn_renew")
    }
    self.store = store
  }

  /// Releases the read transaction of an ended snapshot.
  func discard() {
    if let readTransaction { mdb_txn_abort(readTransaction) }
    readTransaction = nil
  }

  func value(for key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer? {
    guard let store, let readTransaction else { preconditionFailure("a snapshot was used after its end") }
    return try store.value(for: key, in: readTransaction, scratch)
  }

  func makeCursor() throws(StorageError) -> any KeyValueCursor {
    guard let store, let readTransaction else { preconditionFailure("a snapshot was used after its end") }
    return try cursors.cursor(of: store, in: readTransaction)
  }

  func end() {
    guard let store, let readTransaction else { return }
    cursors.detachAll(keep: CursorCache.idleCursorsMax)
    mdb_txn_reset(readTransaction)
    self.store = nil
    if !store.keep(self) { discard() }
  }
}

extension LMDBStore {
  /// Looks up `key` in a read or write transaction.
  func value(
    for key: UnsafeRawBufferPointer, in transaction: OpaquePointer, _ scratch: KeyScratch
  ) throws(StorageError) -> UnsafeRawBufferPointer? {
    var stored = MDB_val()
    if key.count <= LongKeys.entryKeyBytesMax {
      guard !key.isEmpty else { return nil }
      var entry = MDB_val(key)
      return try found(mdb_get(transaction, databases.entries, &entry, &stored)) ? stored.bytes : nil
    }
    guard key.count <= KeyValueLimits.keyBytesMax else { return nil }
    var node: UInt64 = 0
    var level = 0
    var rest = key
    while rest.count > LongKeys.chunkBytes(level: level) {
      let chunk = UnsafeRawBufferPointer(rebasing: rest.prefix(LongKeys.chunkBytes(level: level)))
      guard let next = try self.node(after: chunk, of: node, in: transaction, scratch) else { return nil }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(chunk.count))
      node = next
      level += 1
    }
    var entry = scratch.entryKey(node: node, chunk: rest)
    return try found(mdb_get(transaction, databases.continuations, &entry, &stored)) ? stored.bytes : nil
  }

  /// Returns the node of the pointer with `chunk` in `node`, or `nil` if that pointer does not exist.
  func node(
    after chunk: UnsafeRawBufferPointer, of node: UInt64, in transaction: OpaquePointer, _ scratch: KeyScratch
  ) throws(StorageError) -> UInt64? {
    var pointer = scratch.pointerKey(node: node, chunk: chunk)
    var stored = MDB_val()
    guard try found(mdb_get(transaction, database(of: node), &pointer, &stored)) else { return nil }
    guard let next = stored.nodeNumber, next > node else { throw damagedPointer(in: node) }
    return next
  }

  /// Returns the named database that contains a node's entries. Node 0 means `entries`.
  func database(of node: UInt64) -> MDB_dbi {
    node == 0 ? databases.entries : databases.continuations
  }

  func damagedPointer(in node: UInt64) -> StorageError {
    .corruption(path: path, detail: "a pointer in continuation node \(node) leads to no node")
  }

  /// Returns whether LMDB found an entry. Throws for every code other than "found" and "not found".
  private func found(_ code: Int32) throws(StorageError) -> Bool {
    if code == 0 { return true }
    if code == MDB_NOTFOUND { return false }
    throw failure(code, "mdb_get")
  }
}
