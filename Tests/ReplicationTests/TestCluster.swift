import ClusterTesting
import Foundation
import KeyValue
import LMDBEngine
import LogEngine
@testable import Replication
import SharedLog
import Synchronization
import Testing
import TestSupport

/// The tables of a cluster in memory.
final class MemoryTables: Sendable {
  static let secret: UInt64 = 7
  let state = Mutex(TableState(secret: secret, skew: 500_000))

  func perform(_ request: TableRequest) -> TableReply? {
    state.withLock { state in
      state.now = Int64(Date().timeIntervalSince1970 * 1_000_000)
      return state.perform(request).0
    }
  }

  var entries: [SharedEntry] { state.withLock { $0.entries } }

  /// The batches of the log, decoded.
  var batches: [StoreBatch] { entries.filter { $0.kind == .batch }.compactMap { StoreBatch($0.body) } }
}

/// The connection of one node to the tables, which a test can cut and disturb.
final class Line: SharedTables {
  struct Faults: Sendable {
    /// No request arrives.
    var isCut = false
    /// The answers to appends are lost, after they were performed.
    var losesAppends = false
    /// One request or answer in so many is lost. Of observations, fewer are lost: an outage of the tables is no sign of a dead
    /// owner, so a node that often fails to observe does not take over.
    var lossIn: Int?
    var random: SplitMix
  }

  let faults: Mutex<Faults>
  private let other: @Sendable (TableRequest) -> TableReply?

  init(seed: UInt64 = 1, _ other: @escaping @Sendable (TableRequest) -> TableReply?) {
    faults = Mutex(Faults(random: SplitMix(seed: seed)))
    self.other = other
  }

  func perform(_ request: TableRequest) -> TableReply? {
    let isAppend = if case .append = request { true } else { false }
    let rarity = if case .observe = request { 4 } else { 1 }
    let (loses, losesAnswer) = faults.withLock { faults in
      let isLost = faults.lossIn.map { faults.random.chance(oneIn: $0 * rarity) } ?? false
      let isAnswer = faults.random.chance(oneIn: 2)
      return (faults.isCut || isLost && !isAnswer, isLost || isAppend && faults.losesAppends)
    }
    if loses { return nil }
    let reply = other(request)
    return losesAnswer || faults.withLock({ $0.isCut }) ? nil : reply
  }

  func cut(_ isCut: Bool) { faults.withLock { $0.isCut = isCut } }
}

/// A node of a test: its data directory, and the member in its present life.
final class TestNode {
  let number: UInt32
  let directory: TemporaryDirectory
  let line: Line
  let secret: UInt64
  var settings = Replica.Settings()
  var sealed: SealedStores?
  var patience = ClusterMember.Patience()
  /// The snapshots, if the node uses them.
  var snapshots: (any SnapshotTables)?
  /// How the node writes snapshots, if it does.
  var keeping: SnapshotSettings?
  private(set) var keeper: SnapshotKeeper?
  private(set) var kept = Observed<[SnapshotKeeper.Event]>([])
  var timing: ClusterTiming
  var now: @Sendable () -> Int64 = BootTime.now
  private(set) var member: ClusterMember?
  private(set) var replica: Replica?
  private(set) var events = Observed<[ClusterMember.Event]>([])

  init(_ number: UInt32, _ line: Line, secret: UInt64 = MemoryTables.secret) throws {
    self.number = number
    self.line = line
    self.secret = secret
    directory = try TemporaryDirectory()
    timing = ClusterTiming()
    (timing.lease, timing.silence, timing.renewal, timing.poll) = (1_500_000, 1_800_000, 200_000, 20_000)
    settings.store.memtableBytesMax = 4_000
    settings.store.quietFlushOperationsMax = 8
    settings.store.idleSeconds = 1
    settings.logBytesPerMark = 5_000
  }

  static let mapBytes = 1 << 30

  func options(_ store: StoreName) -> LMDBOptions {
    LMDBOptions(
      path: directory.file(store.text.replacingOccurrences(of: "/", with: "+") + ".mdb"), mapBytes: Self.mapBytes)
  }

  /// The stores whose files exist.
  var existing: [StoreName] {
    get throws {
      try directory.fileNames.filter { $0.hasSuffix(".mdb") }.compactMap {
        StoreName($0.dropLast(4).replacingOccurrences(of: "+", with: "/"))
      }
    }
  }

  /// The folder of the data files, as a node that joins uses it.
  var folder: ReplicaFolder {
    let directory = directory.path
    return ReplicaFolder(path: directory, mapBytes: Self.mapBytes) { () throws(StorageError) in
      let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
      return names.filter { $0.hasSuffix(".mdb") }.compactMap {
        StoreName($0.dropLast(4).replacingOccurrences(of: "+", with: "/"))
      }
    } place: { store, directory in
      "\(directory)/\(store.text.replacingOccurrences(of: "/", with: "+")).mdb"
    }
  }

  /// Writes a snapshot of the replica now.
  @discardableResult func writeSnapshot() throws -> SnapshotHead {
    let (replica, snapshots) = (try #require(replica), try #require(snapshots))
    return try SnapshotWriter(snapshots, sealed: sealed).write { replica.sources }
  }

  func openReplica() throws -> Replica {
    let (path, mapBytes) = (directory.path, Self.mapBytes)
    try folder.finishReplacement()
    let files = ReplicaFiles.onDisk(existing: try existing) { (store) throws(StorageError) in
      LMDBOptions(
        path: "\(path)/\(store.text.replacingOccurrences(of: "/", with: "+")).mdb", mapBytes: mapBytes)
    }
    return try Replica(files, secret: secret, sealed: sealed, settings: settings)
  }

  func start() throws {
    let replica = try openReplica()
    let events = Observed<[ClusterMember.Event]>([])
    self.events = events
    let member = ClusterMember(
      number: number, tables: line, replica: replica, timing: timing, patience: patience,
      joining: snapshots.map { ClusterMember.Joining(tables: $0, folder: folder) }, now: now
    ) { event in events.update { $0.append(event) } }
    (self.member, self.replica) = (member, replica)
    member.start()
    guard let keeping, let snapshots else { return }
    let kept = kept
    let keeper = SnapshotKeeper(member, snapshots, settings: keeping) { event in kept.update { $0.append(event) } }
    self.keeper = keeper
    keeper.start()
  }

  /// Stops the node with a handover.
  func stop() throws {
    defer { (member, replica, keeper) = (nil, nil, nil) }
    keeper?.stop()
    try member?.stop()
  }

  /// Ends the node without a word, as a crash.
  func kill() {
    keeper?.stop()
    member?.abandon()
    (member, replica, keeper) = (nil, nil, nil)
  }

  var isOwner: Bool { member.map { (try? $0.store(.files)) != nil && $0.status.leaseRemaining > 0 } ?? false }

  /// Waits until one of the nodes is the owner.
  static func owner(of nodes: [TestNode]) throws -> TestNode {
    var owner: TestNode?
    _ = OtherProcess.eventually {
      owner = nodes.first { $0.isOwner }
      return owner != nil
    }
    return try #require(owner)
  }

  func becomesOwner() throws {
    try #require(OtherProcess.eventually { isOwner }, "node \(number): \(String(describing: member?.status))")
  }

  func write(
    _ store: StoreName, _ body: (any KeyValueTransaction) throws(StorageError) -> Void
  ) throws {
    guard let member else { throw StorageError.notOwner(of: store.text, owner: nil) }
    let opened: ReplicatedStore
    do { opened = try member.store(store) } catch {
      if case .storage(let failure) = error { throw failure }
      throw error
    }
    try opened.write(body)
  }

  /// Adds 1 to a counter.
  func increment(_ store: StoreName) throws {
    try write(store) { (transaction) throws(StorageError) in try transaction.increment() }
  }

  /// The counter in the replica.
  func count(_ store: StoreName) throws -> UInt64 {
    guard let snapshot = try replica?.loggedStore(store)?.snapshot() else { return 0 }
    defer { snapshot.end() }
    return try snapshot.count()
  }

  /// All entries of the replica of a store.
  func contents(_ store: StoreName) throws -> [[UInt8]] { try replica?.loggedStore(store)?.contents() ?? [] }
}

/// A clock that can stand still.
final class StoppableClock: Sendable {
  private let frozen = Mutex<Int64?>(nil)

  func now() -> Int64 { frozen.withLock { $0 } ?? BootTime.now() }

  func freeze() { frozen.withLock { $0 = BootTime.now() } }

  func thaw() { frozen.withLock { $0 = nil } }
}

extension KeyValueSnapshot {
  func count() throws(StorageError) -> UInt64 {
    try withBytes([0]) { (key) throws(StorageError) in
      try value(for: key).map { $0.loadUnaligned(as: UInt64.self) } ?? 0
    }
  }
}

extension KeyValueStore {
  /// All keys and values in order.
  func contents() throws -> [[UInt8]] {
    let snapshot = try snapshot()
    defer { snapshot.end() }
    let cursor = try snapshot.makeCursor()
    var all: [[UInt8]] = []
    var isAtEntry = try withBytes([]) { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
    while isAtEntry {
      all += [[UInt8](cursor.key), [UInt8](cursor.value)]
      isAtEntry = try cursor.next()
    }
    return all
  }
}

extension KeyValueTransaction {
  func put(_ key: [UInt8], _ value: [UInt8]) throws(StorageError) {
    try withBytes(key) { (key) throws(StorageError) in
      try withBytes(value) { (value) throws(StorageError) in try put(key, value) }
    }
  }

  func remove(_ key: [UInt8]) throws(StorageError) {
    try withBytes(key) { (key) throws(StorageError) in _ = try remove(key) }
  }

  func removeRange(from lower: [UInt8], to upper: [UInt8]) throws(StorageError) {
    try withBytes(lower) { (lower) throws(StorageError) in
      try withBytes(upper) { (upper) throws(StorageError) in _ = try removeRange(from: lower, to: upper) }
    }
  }
}

/// Calls `body` with bytes.
func withBytes<R>(
  _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(StorageError) -> R
) throws(StorageError) -> R {
  var result: Result<R, StorageError>?
  bytes.withUnsafeBytes { bytes in
    do throws(StorageError) { result = .success(try body(bytes)) } catch { result = .failure(error) }
  }
  guard let result else { preconditionFailure("the closure ran") }
  return try result.get()
}

extension ReplicatedStore {
  /// Adds 1 to the counter of ``TestNode/increment(_:)``.
  func increment() throws(StorageError) {
    try write { (transaction) throws(StorageError) in try transaction.increment() }
  }
}

extension KeyValueTransaction {
  /// Adds 1 to a counter.
  fileprivate func increment() throws(StorageError) {
    let count = try count()
    try put([0], withUnsafeBytes(of: count + 1) { [UInt8]($0) })
    // Something that fills the memtables.
    try put([1, UInt8(count % 50)], [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: 300))
  }
}
