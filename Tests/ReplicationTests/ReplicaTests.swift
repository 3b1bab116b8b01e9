import ClusterTesting
import KeyValue
import LMDBEngine
import LogEngine
@testable import Replication
import SharedLog
import Testing
import TestSupport

/// Replicas without members: marks, missing files and entries that are not readable.
@Suite struct ReplicaTests {
  /// A log of which a test appends entries.
  private struct Log {
    private(set) var entries: [SharedEntry] = []
    private var known: Set<StoreName> = []

    mutating func put(_ store: StoreName, _ key: UInt8, bytes: Int = 100) {
      var batch = CommitBatch()
      [key].withUnsafeBytes { key in [UInt8](repeating: 1, count: bytes).withUnsafeBytes { batch.put(key, $0) } }
      let isFirst = known.insert(store).inserted
      append(StoreBatch(store: store, isFirst: isFirst, isSealed: false, content: batch.bytes[...]).body)
    }

    mutating func append(_ body: [UInt8], _ kind: SharedEntry.Kind = .batch) {
      let previous = entries.last?.position ?? LogPosition()
      entries.append(SharedEntry(kind, body, after: previous, epoch: 1, secret: MemoryTables.secret))
    }
  }

  private func node() throws -> TestNode { try TestNode(1, Line { _ in nil }) }

  private func mark(_ store: StoreName, _ node: TestNode) throws -> LogMark? {
    var options = node.options(store)
    options.acceptsOpenLog = true
    return try LMDBStore.open(options).logMark()
  }

  /// Applies a log with a crash after each few entries. Nothing is missing at the end.
  @Test func aCrashContinuesAtTheMarks() throws {
    let node = try node()
    var log = Log()
    var random = SplitMix(seed: 3)
    for index in 0..<400 { log.put(index % 7 == 0 ? .accounts : .files, UInt8.random(in: 0...90, using: &random)) }
    var isAhead = false
    var last: UInt64 = 0
    while last < 400 {
      let replica = try node.openReplica()
      let from = replica.applied.sequence
      isAhead = isAhead || replica.stores.contains { (replica.loggedStore($0)?.position.sequence ?? 0) > from }
      last = min(400, last + UInt64.random(in: 1...60, using: &random))
      try replica.apply(Array(log.entries[Int(from)..<Int(last)]))
      replica.abandon()
    }
    #expect(isAhead, "no store was ahead of another")
    let replica = try node.openReplica()
    try replica.apply(Array(log.entries[Int(replica.applied.sequence)...]))
    let whole = try self.node()
    let other = try whole.openReplica()
    try other.apply(log.entries)
    for store in [StoreName.accounts, .files] {
      #expect(try replica.loggedStore(store)?.contents() == other.loggedStore(store)?.contents())
    }
    try replica.close()
    try other.close()
  }

  /// A store that nobody writes to does not make a restart read the whole log.
  @Test func theMarksOfIdleStoresMove() throws {
    let node = try node()
    var log = Log()
    log.put(.accounts, 1)
    for index in 0..<200 { log.put(.files, UInt8(index % 100)) }
    let replica = try node.openReplica()
    for entry in log.entries { try replica.apply([entry]) }
    // The first move finds the commit in memory, and flushes it on another thread.
    replica.abandon()
    let again = try node.openReplica()
    #expect(again.loggedStore(.accounts).map { $0.position.sequence > 100 } == true)
    #expect(again.applied.sequence > 100)
    again.abandon()
  }

  @Test func aCleanStopClosesTheMarksAtOnePosition() throws {
    let node = try node()
    var log = Log()
    for store in [StoreName.accounts, .files] { for key in 0..<9 { log.put(store, UInt8(key)) } }
    log.append([], .handover)
    let replica = try node.openReplica()
    try replica.apply(log.entries)
    do {
      let store = try #require(replica.loggedStore(.files))
      try replica.close()
      #expect(throws: StorageError.self) {
        try store.write { (transaction) throws(StorageError) in try transaction.put([1], [1]) }
      }
    }
    let origin = LogOrigin(position: log.entries[18].position, secret: MemoryTables.secret)
    for store in [StoreName.accounts, .files] {
      #expect(try mark(store, node) == LogMark(isOpen: false, position: origin.bytes))
    }
  }

  @Test func aReplicaOfAnotherLogIsRefused() throws {
    let node = try node()
    var log = Log()
    log.put(.files, 1)
    let replica = try node.openReplica()
    try replica.apply(log.entries)
    try replica.close()
    let options = node.options(.files)
    let files = ReplicaFiles.onDisk(existing: [.files]) { _ throws(StorageError) in options }
    #expect(throws: ReplicaError.notAReplica(path: options.path)) { try Replica(files, secret: 8) }
    // The same secret, but another history up to the mark.
    var stranger = Log()
    stranger.put(.files, 2)
    let again = try node.openReplica()
    #expect(throws: ReplicaError.diverged) { try again.apply(stranger.entries) }
    again.abandon()
  }

  /// The file of a store was deleted.
  @Test func aMissingFileIsNoticed() throws {
    let node = try node()
    var log = Log()
    for _ in 0..<2 { for store in [StoreName.accounts, .files] { log.put(store, 1) } }
    let replica = try node.openReplica()
    try replica.apply(Array(log.entries.prefix(3)))
    try replica.close()
    let path = node.options(.files).path
    let files = ReplicaFiles.onDisk(existing: [.files]) { _ throws(StorageError) in LMDBOptions(path: path) }
    let lacking = try Replica(files, secret: MemoryTables.secret)
    log.put(.accounts, 2)
    #expect(throws: ReplicaError.missingStore(.accounts, sequence: 5)) {
      try lacking.apply(Array(log.entries.suffix(2)))
    }
    lacking.abandon()
  }

  @Test func entriesThatAreNotReadableAreNotApplied() throws {
    let node = try node()
    var log = Log()
    log.put(.files, 1)
    let replica = try node.openReplica()
    try replica.apply(log.entries)
    let contents = try replica.loggedStore(.files)?.contents()
    for body in [[], [0, 5], [1, 3, 65, 66, 67, 1]] as [[UInt8]] {
      var bad = log
      bad.append(body)
      #expect(throws: ReplicaError.self) { try replica.apply(Array(bad.entries.suffix(1))) }
    }
    // The second operation is cut short, so the first is not applied either.
    var batch = CommitBatch()
    [9].withUnsafeBytes { batch.put($0, $0) }
    var bad = log
    bad.append(StoreBatch(store: .files, isFirst: false, isSealed: false, content: (batch.bytes + [1, 9])[...]).body)
    #expect {
      try replica.apply(Array(bad.entries.suffix(1)))
    } throws: { error in
      if case .malformed(2, _)? = error as? ReplicaError { true } else { false }
    }
    #expect(try replica.loggedStore(.files)?.contents() == contents)
    log.put(.files, 2)
    try replica.apply(Array(log.entries.suffix(1)))
    #expect(replica.applied.sequence == 2)
    try replica.close()
  }

  // MARK: Sealed batches

  /// Turns each byte around, with a byte for the store.
  private struct TurningSeal: BatchSeal {
    func seal(_ batch: [UInt8], of store: StoreName) -> [UInt8] { [UInt8(store.text.utf8.count)] + batch.map { ~$0 } }

    func open(_ sealed: ArraySlice<UInt8>, of store: StoreName) -> [UInt8]? {
      guard let first = sealed.first, Int(first) == store.text.utf8.count else { return nil }
      return sealed.dropFirst().map { ~$0 }
    }
  }

  @Test func batchesAreSealed() throws {
    let tables = MemoryTables()
    let nodes = try [1, 2, 3].map { try TestNode($0, Line { tables.perform($0) }) }
    for node in nodes.prefix(2) { node.sealed = SealedStores(seal: TurningSeal()) }
    try nodes[0].start()
    try nodes[0].becomesOwner()
    let word = Array("password".utf8)
    for store in [StoreName.accounts, .files] {
      try nodes[0].write(store) { (transaction) throws(StorageError) in try transaction.put(word, word) }
    }
    try nodes[0].increment(.files)
    let bodies = tables.batches.map { ($0.store, $0.isSealed, String(decoding: $0.content, as: UTF8.self)) }
    #expect(bodies.count == 3 && bodies.allSatisfy { $0.1 == ($0.0 == .accounts) })
    #expect(bodies.allSatisfy { $0.0 == .accounts ? !$0.2.contains("password") : true })
    try nodes[1].start()
    let isApplied = OtherProcess.eventually { (try? nodes[1].contents(.accounts).isEmpty) == false }
    try #require(isApplied)
    #expect(try nodes[1].contents(.accounts) == nodes[0].contents(.accounts))
    // A node without the key stops.
    try nodes[2].start()
    let sequence = try #require(tables.entries.first { $0.kind == .batch }?.position.sequence)
    try #require(
      nodes[2].events.wait(secondsMax: 20) { $0.contains(.broken(.notSealedHere(.accounts, sequence: sequence))) })
    for node in nodes.prefix(2) { try node.stop() }
    nodes[2].kill()
  }
}
