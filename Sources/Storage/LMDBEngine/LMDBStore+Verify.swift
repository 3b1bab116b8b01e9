import CLMDB
package import KeyValue

/// The counts of ``LMDBStore/verify(progress:)``.
package struct VerifyReport: Equatable, Sendable {
  /// The number of entries in the key space.
  package var entries = 0
  /// The number of entries whose key is longer than LMDB's limit and continues in nodes.
  package var longEntries = 0
  /// The number of continuation nodes.
  package var nodes = 0
  /// The total size of all values, in bytes.
  package var valueBytes = 0

  /// Creates a report of an empty store.
  package init() {}
}

extension LMDBStore {
  /// Reads everything in the store and checks the invariants of LMDB and of ``LongKeys``.
  ///
  /// It checks that keys ascend; every page of every value is readable; each pointer leads to a distinct node that
  /// is not empty; every node has a pointer; a node's number is above its parent's and below the next number to
  /// assign; and the counts in `meta` and in LMDB's own records are right. It does not check the bytes of values
  /// (LMDB has no checksums) or LMDB's list of free pages.
  ///
  /// Run it in a process that may crash. LMDB reports some damage as an error. But a tree page overwritten with
  /// other bytes can make it read outside the map (`SIGSEGV`, `SIGBUS`), fail an assertion (`SIGABRT`) or, if pages
  /// refer to each other in a circle, never return.
  ///
  /// `progress` is called regularly with the number of entries read so far. One snapshot is held for the whole
  /// time. Cost: reads the whole store, and uses 8 bytes of memory for each continuation node.
  /// - Throws: ``StorageError/corruption(path:detail:)`` for the first problem found.
  package func verify(progress: (Int) -> Void = { _ in }) throws(StorageError) -> VerifyReport {
    try withReadTransaction { transaction throws(StorageError) in
      var verifier = PageVerifier(store: self, transaction: transaction)
      return try verifier.run(progress)
    }
  }
}

/// One run of ``LMDBStore/verify(progress:)``.
private struct PageVerifier {
  let store: LMDBStore
  let transaction: OpaquePointer
  private var report = VerifyReport()
  private var entriesRead = 0
  /// The nodes that pointers refer to, in the order in which the pointers were read.
  private var pointedTo: [UInt64] = []
  private var nodes: [UInt64] = []

  /// The number of entries between two calls of `progress`.
  private static let progressStep = 65_536

  init(store: LMDBStore, transaction: OpaquePointer) {
    self.store = store
    self.transaction = transaction
  }

  mutating func run(_ progress: (Int) -> Void) throws(StorageError) -> VerifyReport {
    try walk(store.databases.entries, "entries", progress) { verifier, key, value throws(StorageError) in
      try verifier.visit(key, value, node: 0, chunkBytes: key.mv_size)
    }
    try walk(store.databases.continuations, "continuations", progress) { verifier, key, value throws(StorageError) in
      guard let node = key.leadingNumber, node != 0, key.mv_size > LongKeys.nodeNumberBytes else {
        throw verifier.damage("a key of \(key.mv_size) bytes in continuations has no node number")
      }
      if verifier.nodes.last != node { verifier.nodes.append(node) }
      try verifier.visit(key, value, node: node, chunkBytes: key.mv_size - LongKeys.nodeNumberBytes)
    }
    try compareNodes()
    progress(entriesRead)
    report.nodes = nodes.count
    return report
  }

  /// Reads one named database in key order.
  private mutating func walk(
    _ database: MDB_dbi, _ name: String, _ progress: (Int) -> Void,
    _ visit: (inout PageVerifier, MDB_val, MDB_val) throws(StorageError) -> Void
  ) throws(StorageError) {
    var opened: OpaquePointer?
    let code = mdb_cursor_open(transaction, database, &opened)
    guard code == 0, let cursor = opened else { throw store.failure(code, "mdb_cursor_open") }
    defer { mdb_cursor_close(cursor) }
    var count = 0
    var previous: MDB_val?
    while true {
      var key = MDB_val()
      var value = MDB_val()
      let code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
      if code == MDB_NOTFOUND { break }
      guard code == 0 else { throw store.failure(code, "mdb_cursor_get") }
      guard (1...LongKeys.pointerKeyBytes).contains(key.mv_size) else {
        throw damage("a key in \(name) has \(key.mv_size) bytes")
      }
      if var last = previous, mdb_cmp(transaction, database, &last, &key) >= 0 {
        throw damage("entry \(count) of \(name) is not above the one before it")
      }
      previous = key
      touchPages(of: value)
      try visit(&self, key, value)
      count += 1
      entriesRead += 1
      if entriesRead.isMultiple(of: Self.progressStep) { progress(entriesRead) }
    }
    let recorded = try store.counts(of: database, in: transaction).ms_entries
    guard count == recorded else { throw damage("\(name) has \(count) entries, but its record says \(recorded)") }
  }

  private mutating func visit(
    _ key: MDB_val, _ value: MDB_val, node: UInt64, chunkBytes: Int
  ) throws(StorageError) {
    guard key.isPointerKey else {
      guard value.mv_size <= KeyValueLimits.valueBytesMax else {
        throw damage("a value has \(value.mv_size) bytes")
      }
      report.entries += 1
      report.longEntries += node == 0 ? 0 : 1
      report.valueBytes += value.mv_size
      return
    }
    guard key.bytes.last == LongKeys.pointerMarker, let next = value.nodeNumber, next > node else {
      throw store.damagedPointer(in: node)
    }
    pointedTo.append(next)
  }

  /// Reads a byte of each page of a value, to detect pages that the disk cannot read.
  private func touchPages(of value: MDB_val) {
    for offset in stride(from: 0, to: value.mv_size, by: 4096) {
      _ = value.bytes.load(fromByteOffset: offset, as: UInt8.self)
    }
  }

  /// Checks that pointers and nodes match one to one.
  private mutating func compareNodes() throws(StorageError) {
    pointedTo.sort()
    for (pointed, node) in zip(pointedTo, nodes) where pointed != node {
      throw pointed < node
        ? damage("a pointer leads to continuation node \(pointed), which does not exist or has another pointer")
        : damage("continuation node \(node) has no pointer")
    }
    if nodes.count != pointedTo.count {
      throw damage("there are \(pointedTo.count) pointers to \(nodes.count) continuation nodes")
    }
    let counts = try store.nodeCounts(in: transaction)
    guard counts.inUse == nodes.count else {
      throw damage("there are \(nodes.count) continuation nodes, but their count says \(counts.inUse)")
    }
    if let last = nodes.last, last >= counts.next {
      throw damage("continuation node \(last) exists, but the next number to assign is \(counts.next)")
    }
  }

  private func damage(_ detail: String) -> StorageError {
    .corruption(path: store.path, detail: detail)
  }
}
