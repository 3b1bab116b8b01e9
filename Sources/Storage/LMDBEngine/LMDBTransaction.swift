import CLMDB
import Glibc
import KeyValue

/// The write transaction. One object serves all writes of a store, one after the other.
///
/// If LMDB fails a write (a full map, a damaged page), the transaction cannot be committed. Even if the caller
/// ignores the error, ``finish()`` throws it again and nothing is written.
final class LMDBTransaction: KeyValueTransaction {
  /// The number of writes, by which a cursor detects that it is stale.
  private(set) var generation = 0

  private unowned(unsafe) var store: LMDBStore?
  private var writer: OpaquePointer?
  private var firstFailure: StorageError?
  private var cursors = CursorCache()
  private var removalCursor: LMDBCursor?
  /// The cursor for short keys; see ``putCursor()``.
  private var openPutCursor: OpaquePointer?
  private var nodeCounts: NodeCounts?
  private var nodeCountsChanged = false
  private var path: [UInt64] = []
  private let scratch = KeyScratch()

  /// The counts of continuation nodes in `meta`.
  struct NodeCounts {
    var next: UInt64 = 1
    var inUse: UInt64 = 0
  }

  deinit {
    scratch.deallocate()
  }

  // MARK: Life

  /// Starts to represent `writer`. `store` outlives the transaction, because it is inside `write(_:)`.
  func begin(_ writer: OpaquePointer, store: LMDBStore) {
    self.writer = writer
    self.store = store
  }

  /// Writes the node counts before the commit, or throws the error that prevents a commit.
  func finish() throws(StorageError) {
    if let firstFailure { throw firstFailure }
    try storeNodeCounts()
  }

  /// Releases the LMDB transaction, before it is committed or aborted.
  func end(of store: LMDBStore) {
    closePutCursor()
    cursors.detachAll(keep: 0)
    removalCursor = nil
    writer = nil
    self.store = nil
    firstFailure = nil
    nodeCounts = nil
    nodeCountsChanged = false
  }

  /// Does nothing: a write transaction ends with its closure.
  func end() {}

  private func current() -> (LMDBStore, OpaquePointer) {
    guard let store, let writer else { preconditionFailure("a write transaction was used after its closure") }
    return (store, writer)
  }

  // MARK: Reading

  func value(for key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer? {
    let (store, writer) = current()
    return try store.value(for: key, in: writer, scratch)
  }

  func makeCursor() throws(StorageError) -> any KeyValueCursor {
    let (store, writer) = current()
    return try cursors.cursor(of: store, in: writer, writer: self)
  }

  // MARK: Writing

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StorageError) {
    guard !key.isEmpty, key.count <= KeyValueLimits.keyBytesMax, value.count <= KeyValueLimits.valueBytesMax else {
      throw .oversized(keyBytes: key.count, valueBytes: value.count)
    }
    _ = current()
    generation += 1
    if key.count <= LongKeys.entryKeyBytesMax {
      var entry = MDB_val(key)
      var stored = MDB_val(value)
      return try note(mdb_cursor_put(putCursor(), &entry, &stored, 0), "mdb_cursor_put")
    }
    closePutCursor()
    try noting { () throws(StorageError) in try putLong(key, value) }
  }

  @discardableResult
  func remove(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    guard !key.isEmpty, key.count <= KeyValueLimits.keyBytesMax else { return false }
    let (store, writer) = current()
    generation += 1
    closePutCursor()
    if key.count <= LongKeys.entryKeyBytesMax {
      var entry = MDB_val(key)
      return try noteDeletion(mdb_del(writer, store.databases.entries, &entry, nil))
    }
    var removed = false
    try noting { () throws(StorageError) in removed = try removeLong(key) }
    return removed
  }

  @discardableResult
  func removeRange(
    from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer
  ) throws(StorageError) -> Int {
    var count = 0
    closePutCursor()
    try noting { () throws(StorageError) in
      let cursor = try cursorForRemoval()
      while try cursor.seek(atOrAfter: lower), precedes(cursor.key, upper) {
        if cursor.isInsideNode {
          try remove(cursor.key)
        } else {
          try cursor.removeShortEntry()
          generation += 1
          cursor.adoptGeneration()
        }
        count += 1
      }
    }
    return count
  }

  /// Returns the LMDB cursor that puts short keys.
  ///
  /// LMDB first inspects the page at its cursor. So ascending puts, anywhere in the key space, take a third of the
  /// time of `mdb_put`, which starts at the root each time. The cursor is closed before any other write, so LMDB
  /// never has to adjust it.
  private func putCursor() throws(StorageError) -> OpaquePointer {
    if let openPutCursor { return openPutCursor }
    let (store, writer) = current()
    var opened: OpaquePointer?
    let code = mdb_cursor_open(writer, store.databases.entries, &opened)
    guard code == 0, let opened else { throw store.failure(code, "mdb_cursor_open") }
    openPutCursor = opened
    return opened
  }

  private func closePutCursor() {
    guard let openPutCursor else { return }
    mdb_cursor_close(openPutCursor)
    self.openPutCursor = nil
  }

  private func cursorForRemoval() throws(StorageError) -> LMDBCursor {
    if let removalCursor { return removalCursor }
    let (store, writer) = current()
    let cursor = try cursors.cursor(of: store, in: writer, writer: self)
    removalCursor = cursor
    return cursor
  }

  private func precedes(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard let left = a.baseAddress, let right = b.baseAddress else { return a.count < b.count }
    let order = memcmp(left, right, min(a.count, b.count))
    return order == 0 ? a.count < b.count : order < 0
  }

  // MARK: Long keys

  private func putLong(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StorageError) {
    let (store, writer) = current()
    var node: UInt64 = 0
    var level = 0
    var rest = key
    while rest.count > LongKeys.chunkBytes(level: level) {
      let chunk = UnsafeRawBufferPointer(rebasing: rest.prefix(LongKeys.chunkBytes(level: level)))
      if let next = try store.node(after: chunk, of: node, in: writer, scratch) {
        node = next
      } else {
        let next = try takeNodeNumber()
        var pointer = scratch.pointerKey(node: node, chunk: chunk)
        try putNumber(next, under: &pointer, in: store.database(of: node))
        node = next
      }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(chunk.count))
      level += 1
    }
    var entry = scratch.entryKey(node: node, chunk: rest)
    var stored = MDB_val(value)
    try note(mdb_put(writer, store.databases.continuations, &entry, &stored, 0), "mdb_put")
  }

  private func putNumber(_ number: UInt64, under key: inout MDB_val, in database: MDB_dbi) throws(StorageError) {
    let code = withUnsafeBytes(of: number.bigEndian) { bytes in
      var stored = MDB_val(bytes)
      return mdb_put(writer, database, &key, &stored, 0)
    }
    try note(code, "mdb_put")
  }

  private func removeLong(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    let (store, writer) = current()
    path.removeAll(keepingCapacity: true)
    var rest = key
    while rest.count > LongKeys.chunkBytes(level: path.count) {
      let chunk = UnsafeRawBufferPointer(rebasing: rest.prefix(LongKeys.chunkBytes(level: path.count)))
      guard let next = try store.node(after: chunk, of: path.last ?? 0, in: writer, scratch) else { return false }
      path.append(next)
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(chunk.count))
    }
    var entry = scratch.entryKey(node: path.last ?? 0, chunk: rest)
    guard try noteDeletion(mdb_del(writer, store.databases.continuations, &entry, nil)) else { return false }

    while let node = path.last, try isEmpty(node) {
      path.removeLast()
      let level = path.count
      let start = LongKeys.prefixBytes(level: level)
      let chunk = UnsafeRawBufferPointer(rebasing: key[start..<start + LongKeys.chunkBytes(level: level)])
      let parent = path.last ?? 0
      var pointer = scratch.pointerKey(node: parent, chunk: chunk)
      guard try noteDeletion(mdb_del(writer, store.database(of: parent), &pointer, nil)) else {
        throw store.damagedPointer(in: parent)
      }
      var counts = try loadNodeCounts()
      counts.inUse -= min(1, counts.inUse)
      changeNodeCounts(to: counts)
    }
    return true
  }

  private func isEmpty(_ node: UInt64) throws(StorageError) -> Bool {
    let (store, writer) = current()
    var cursor: OpaquePointer?
    try note(mdb_cursor_open(writer, store.databases.continuations, &cursor), "mdb_cursor_open")
    defer { mdb_cursor_close(cursor) }
    var key = scratch.nodeStart(node)
    var stored = MDB_val()
    let code = mdb_cursor_get(cursor, &key, &stored, MDB_SET_RANGE)
    if code == MDB_NOTFOUND { return true }
    try note(code, "mdb_cursor_get")
    return key.leadingNumber != node
  }

  // MARK: Node numbers

  private func takeNodeNumber() throws(StorageError) -> UInt64 {
    var counts = try loadNodeCounts()
    let number = counts.next
    counts.next += 1
    counts.inUse += 1
    changeNodeCounts(to: counts)
    return number
  }

  private func loadNodeCounts() throws(StorageError) -> NodeCounts {
    if let nodeCounts { return nodeCounts }
    let (store, writer) = current()
    let counts = try store.nodeCounts(in: writer)
    nodeCounts = counts
    return counts
  }

  private func changeNodeCounts(to counts: NodeCounts) {
    nodeCounts = counts
    nodeCountsChanged = true
  }

  private func storeNodeCounts() throws(StorageError) {
    guard nodeCountsChanged, let nodeCounts else { return }
    let (store, writer) = current()
    try note(store.putNodeCounts(nodeCounts, in: writer), "mdb_put")
  }

  // MARK: Failures

  private func note(_ code: Int32, _ operation: StaticString) throws(StorageError) {
    guard code != 0 else { return }
    let error = current().0.failure(code, operation)
    if firstFailure == nil { firstFailure = error }
    throw error
  }

  private func noteDeletion(_ code: Int32) throws(StorageError) -> Bool {
    if code == MDB_NOTFOUND { return false }
    try note(code, "mdb_del")
    return true
  }

  /// Runs a change of several steps. If it fails between two of them, the transaction cannot be committed.
  private func noting(_ change: () throws(StorageError) -> Void) throws(StorageError) {
    do {
      try change()
    } catch {
      if firstFailure == nil { firstFailure = error }
      throw error
    }
  }
}
