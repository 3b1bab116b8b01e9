import CLMDB
import Glibc
import KeyValue

/// A cursor over `entries` that enters a continuation node at its pointer.
///
/// The stack `nodes` contains the entered nodes. If it is empty, the current key is short and is returned in place.
/// Inside a node, the whole key is assembled in `assembled`. One LMDB cursor serves all nodes: to leave a node, it
/// seeks the parent's pointer again, whose key is known.
///
/// After a write, a cursor of a write transaction must seek before it steps. LMDB adjusts its own cursors, but the
/// stack and the assembled key would be stale. Stepping without a seek is an error in the calling code.
final class LMDBCursor: KeyValueCursor {
  private enum Direction {
    case forward
    case backward
  }

  private unowned let store: LMDBStore
  private var attached: OpaquePointer?
  private var writer: LMDBTransaction?
  private var generation = 0
  private var entries: OpaquePointer?
  private var continuations: OpaquePointer?

  private var isAtEntry = false
  private var nodes: [UInt64] = []
  /// LMDB's key and value. They are allocated outside the object because LMDB writes to them: passing stored
  /// properties to C costs two exclusivity checks per step.
  private let entryKey = UnsafeMutablePointer<MDB_val>.allocate(capacity: 2)
  private var entryValue: UnsafeMutablePointer<MDB_val> { entryKey + 1 }
  private var assembled: UnsafeMutableRawPointer?
  private var assembledBytes = 0
  private let scratch = KeyScratch()

  init(store: LMDBStore) {
    self.store = store
    entryKey.initialize(repeating: MDB_val(), count: 2)
  }

  deinit {
    // Handles of a write transaction were closed before its end. Those of a read transaction may be closed after it.
    closeHandles()
    assembled?.deallocate()
    entryKey.deallocate()
    scratch.deallocate()
  }

  // MARK: Life inside a transaction

  /// Attaches the cursor to a transaction. `writer` is set for a write transaction.
  func attach(to transaction: OpaquePointer, writer: LMDBTransaction?) throws(StorageError) {
    for handle in [entries, continuations] {
      guard let handle else { continue }
      try check(mdb_cursor_renew(transaction, handle), "mdb_cursor_renew")
    }
    if entries == nil {
      entries = try openHandle(store.databases.entries, in: transaction)
    }
    attached = transaction
    self.writer = writer
    generation = writer?.generation ?? 0
    isAtEntry = false
  }

  /// Detaches the cursor from its transaction, before the transaction ends.
  func detach() {
    if writer != nil { closeHandles() }
    attached = nil
    writer = nil
    isAtEntry = false
  }

  /// Resets the cursor for its next user in the same transaction.
  func forgetPosition() {
    isAtEntry = false
  }

  private func openHandle(_ database: MDB_dbi, in transaction: OpaquePointer) throws(StorageError) -> OpaquePointer {
    var handle: OpaquePointer?
    let code = mdb_cursor_open(transaction, database, &handle)
    guard code == 0, let handle else { throw store.failure(code, "mdb_cursor_open") }
    return handle
  }

  private func closeHandles() {
    if let entries { mdb_cursor_close(entries) }
    if let continuations { mdb_cursor_close(continuations) }
    entries = nil
    continuations = nil
  }

  /// Prepares the LMDB cursor for a seek. After writes it opens a new one, which has no stale pages.
  private func prepareToSeek() throws(StorageError) {
    guard let attached else { preconditionFailure("a cursor was used after the end of its snapshot") }
    isAtEntry = false
    nodes.removeAll(keepingCapacity: true)
    guard let writer, generation != writer.generation else { return }
    closeHandles()
    entries = try openHandle(store.databases.entries, in: attached)
    generation = writer.generation
  }

  // MARK: Seeking and stepping

  func seek(atOrAfter key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    try prepareToSeek()
    guard key.count > LongKeys.entryKeyBytesMax else {
      guard !key.isEmpty else { return try settle(moveEntries(MDB_FIRST), .forward) }
      entryKey.pointee = MDB_val(key)
      return try settle(moveEntries(MDB_SET_RANGE), .forward)
    }
    return try seekLong(key)
  }

  func seek(before key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    if try seek(atOrAfter: key) { return try previous() }
    return try settle(moveEntries(MDB_LAST), .backward)
  }

  func next() throws(StorageError) -> Bool {
    guard isReadyToStep() else { return false }
    return try settle(step(.forward), .forward)
  }

  func previous() throws(StorageError) -> Bool {
    guard isReadyToStep() else { return false }
    return try settle(step(.backward), .backward)
  }

  private func isReadyToStep() -> Bool {
    precondition(attached != nil, "a cursor was used after the end of its snapshot")
    guard isAtEntry else { return false }
    precondition(generation == writer?.generation ?? 0, "a cursor was stepped after a write without a seek in between")
    isAtEntry = false
    return true
  }

  var key: UnsafeRawBufferPointer {
    precondition(isAtEntry, "the cursor is not at an entry")
    guard nodes.isEmpty else { return UnsafeRawBufferPointer(start: assembled, count: assembledBytes) }
    return entryKey.pointee.bytes
  }

  var value: UnsafeRawBufferPointer {
    precondition(isAtEntry, "the cursor is not at an entry")
    return entryValue.pointee.bytes
  }

  // MARK: Removing, for `removeRange`

  /// Whether the current key is longer than LMDB's limit.
  var isInsideNode: Bool { !nodes.isEmpty }

  /// Removes the current entry, whose key is short. The caller must seek afterwards.
  func removeShortEntry() throws(StorageError) {
    try check(mdb_cursor_del(entries, 0), "mdb_cursor_del")
    isAtEntry = false
  }

  /// Marks a write through this cursor's own handle as known, so that the next seek keeps the handle.
  func adoptGeneration() {
    generation = writer?.generation ?? 0
  }

  // MARK: Levels

  /// The current level, which is also the number of levels above it.
  private var level: Int { nodes.count }

  /// Enters the nodes whose pointers lie along `key`, and seeks inside the last one.
  private func seekLong(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    var rest = key
    while rest.count > LongKeys.chunkBytes(level: level) {
      let chunk = UnsafeRawBufferPointer(rebasing: rest.prefix(LongKeys.chunkBytes(level: level)))
      let wanted = scratch.pointerKey(node: nodes.last ?? 0, chunk: chunk)
      entryKey.pointee = wanted
      let code = moveInLevel(MDB_SET_RANGE)
      let found = entryKey.pointee
      guard code == 0, found.mv_size == wanted.mv_size, memcmp(found.mv_data, wanted.mv_data, wanted.mv_size) == 0
      else { return try settle(code, .forward) }
      try enterNode()
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(chunk.count))
    }
    entryKey.pointee = scratch.entryKey(node: nodes.last ?? 0, chunk: rest)
    return try settle(moveInLevel(MDB_SET_RANGE), .forward)
  }

  /// Continues from the position of LMDB's cursor to an entry: leaves nodes at their end, and enters the nodes of
  /// pointers. Returns `false` at the end of the key space.
  private func settle(_ outcome: Int32, _ direction: Direction) throws(StorageError) -> Bool {
    var code = outcome
    while true {
      if code == MDB_NOTFOUND || (code == 0 && hasLeftNode) {
        guard !nodes.isEmpty else { return false }
        code = try leaveNode(direction)
      } else if code != 0 {
        throw store.failure(code, "mdb_cursor_get")
      } else if entryKey.pointee.isPointerKey {
        try enterNode()
        code = try moveToEdge(direction)
      } else {
        if !nodes.isEmpty { try assemble() }
        isAtEntry = true
        return true
      }
    }
  }

  /// Whether LMDB's cursor is at an entry of another node than the current one.
  private var hasLeftNode: Bool {
    guard let node = nodes.last else { return false }
    return entryKey.pointee.leadingNumber != node
  }

  /// Enters the node of the pointer at LMDB's cursor.
  private func enterNode() throws(StorageError) {
    let parent = nodes.last ?? 0
    guard let node = entryValue.pointee.nodeNumber, node > parent else { throw store.damagedPointer(in: parent) }
    let chunkStart = parent == 0 ? 0 : LongKeys.nodeNumberBytes
    try copyChunk(from: chunkStart, count: LongKeys.chunkBytes(level: level))
    nodes.append(node)
    if continuations == nil, let attached {
      continuations = try openHandle(store.databases.continuations, in: attached)
    }
  }

  /// Moves to the first or last entry of the current node.
  private func moveToEdge(_ direction: Direction) throws(StorageError) -> Int32 {
    let node = nodes.last ?? 0
    entryKey.pointee = scratch.nodeStart(direction == .forward ? node : node + 1)
    var code = moveInLevel(MDB_SET_RANGE)
    if direction == .backward, code == 0 || code == MDB_NOTFOUND {
      code = moveInLevel(code == 0 ? MDB_PREV : MDB_LAST)
    }
    if code == MDB_NOTFOUND || (code == 0 && hasLeftNode) {
      throw .corruption(path: store.path, detail: "continuation node \(node) is empty")
    }
    return code
  }

  /// Returns to the pointer of the current node and steps past it.
  private func leaveNode(_ direction: Direction) throws(StorageError) -> Int32 {
    let left = nodes.removeLast()
    if let node = nodes.last {
      let chunk = UnsafeRawBufferPointer(
        start: assembled.map { $0 + LongKeys.prefixBytes(level: level) }, count: LongKeys.chunkBytesMax)
      entryKey.pointee = scratch.pointerKey(node: node, chunk: chunk)
      let code = moveInLevel(MDB_SET_KEY)
      if code == MDB_NOTFOUND {
        throw .corruption(path: store.path, detail: "continuation node \(left) lost its pointer")
      }
      try check(code, "mdb_cursor_get")
    }
    return step(direction)
  }

  /// Appends the rest of the key at LMDB's cursor to the parts from the levels above.
  private func assemble() throws(StorageError) {
    let rest = entryKey.pointee.mv_size - LongKeys.nodeNumberBytes
    guard rest > 0 else {
      throw .corruption(path: store.path, detail: "continuation node \(nodes.last ?? 0) has an entry without a key")
    }
    try copyChunk(from: LongKeys.nodeNumberBytes, count: rest)
    assembledBytes = LongKeys.prefixBytes(level: level) + rest
  }

  /// Copies a part of LMDB's key to its position in the assembled key.
  private func copyChunk(from start: Int, count: Int) throws(StorageError) {
    let position = LongKeys.prefixBytes(level: level)
    guard position + count <= KeyValueLimits.keyBytesMax, let source = entryKey.pointee.mv_data else {
      throw .corruption(path: store.path, detail: "a stored key is longer than \(KeyValueLimits.keyBytesMax) bytes")
    }
    let memory = assembled ?? UnsafeMutableRawPointer.allocate(byteCount: KeyValueLimits.keyBytesMax, alignment: 16)
    assembled = memory
    memcpy(memory + position, source + start, count)
  }

  // MARK: LMDB's cursors

  private func step(_ direction: Direction) -> Int32 {
    moveInLevel(direction == .forward ? MDB_NEXT : MDB_PREV)
  }

  private func moveInLevel(_ move: MDB_cursor_op) -> Int32 {
    nodes.isEmpty ? moveEntries(move) : mdb_cursor_get(continuations, entryKey, entryValue, move)
  }

  private func moveEntries(_ move: MDB_cursor_op) -> Int32 {
    mdb_cursor_get(entries, entryKey, entryValue, move)
  }

  private func check(_ code: Int32, _ operation: StaticString) throws(StorageError) {
    guard code == 0 else { throw store.failure(code, operation) }
  }
}

/// The cursors of one snapshot or write transaction, kept for reuse and for detaching them at its end.
struct CursorCache {
  /// The number of idle cursors that an ended snapshot keeps.
  static let idleCursorsMax = 4

  private var cursors: [LMDBCursor] = []
  /// The number of idle cursors, which come first. The others are attached to the current transaction.
  private var idleCount = 0

  /// Returns an idle cursor or a new one, not at an entry.
  mutating func cursor(
    of store: LMDBStore, in transaction: OpaquePointer, writer: LMDBTransaction? = nil
  ) throws(StorageError) -> LMDBCursor {
    for index in cursors.indices where isKnownUniquelyReferenced(&cursors[index]) {
      if index < idleCount {
        idleCount -= 1
        cursors.swapAt(index, idleCount)
        try cursors[idleCount].attach(to: transaction, writer: writer)
        return cursors[idleCount]
      }
      // Its user released it, so only the position is stale.
      cursors[index].forgetPosition()
      return cursors[index]
    }
    let cursor = LMDBCursor(store: store)
    try cursor.attach(to: transaction, writer: writer)
    cursors.append(cursor)
    return cursor
  }

  /// Detaches all cursors before their transaction ends, and keeps at most `keep` of them.
  mutating func detachAll(keep: Int) {
    for index in idleCount..<cursors.count { cursors[index].detach() }
    if cursors.count > keep { cursors.removeLast(cursors.count - keep) }
    idleCount = cursors.count
  }
}
