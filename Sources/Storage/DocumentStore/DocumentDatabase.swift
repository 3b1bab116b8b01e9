package import Basics
package import DocumentModel
package import KeyValue
import Synchronization

/// One database: its documents, transactions, indexes and writer.
///
/// 1. Reads run on snapshots on the caller's thread and never wait.
/// 2. Commits are planned on the caller's thread. The single writer validates and writes them, many with one sync;
///    see ``CommitQueue``.
/// 3. The version of a commit is its time in microseconds. Versions strictly increase. Update times, read times and
///    positions in the change log are versions.
/// 4. Past states are read from before-images, which are kept as long as ``Retention`` says.
/// 5. Background work builds and removes index entries, deletes expired documents, and trims the history and the log.
package final class DocumentDatabase: Sendable {
  package let id: DatabaseID
  package let edition: Edition
  package let store: any KeyValueStore
  package let transactions: TransactionTable

  package let clock: Clock
  /// The memory and the temporary files for queries on this database.
  package let scratch: ScratchSpace
  private let retention: Retention
  private let versionAges = Mutex(VersionAges())
  let queue: CommitQueue
  let inFlight = CommitsInFlight()
  private let lineage: Mutex<DatabaseLineage>
  private let latestServerTimestamp = Mutex<Int64>(0)
  let indexCache = IndexCatalogCache()
  let background: BackgroundWork
  /// The queues of this database and of what follows it.
  package let queues: WorkQueues
  private let adopted = Atomic(false)
  /// Waits for the commits of the node that writes to the database, or `nil` if that is this process.
  package let freshness: (any FreshnessGate)?
  /// The bytes of the documents in the quota of the project.
  package let use: DocumentUse

  /// Opens a database in an engine for reading. Writes nothing, also if the engine is empty.
  ///
  /// Before the first write, call ``adopt(indexes:origin:floor:)``. `use` limits the growth of the documents, and `commitMemory`
  /// the unfinished commits; by default, all databases of the process share it. If another process writes to the database,
  /// `freshness` waits for its commits.
  /// - Throws: ``StorageError/unsupportedFormat(path:found:supported:)`` if a newer version wrote the data, and
  ///   other ``StorageError``s if the engine fails.
  package init(
    id: DatabaseID, edition: Edition = .standard, store: any KeyValueStore, retention: Retention = Retention(),
    clock: Clock = .system, indexBatch: IndexBatch = IndexBatch(), indexObserver: IndexObserver? = nil,
    counters: CommitCounters = CommitCounters(), scratch: ScratchSpace = .process, use: DocumentUse? = nil,
    commitMemory: MemoryShare? = nil, queues: WorkQueues = .threads, freshness: (any FreshnessGate)? = nil
  ) throws(StorageError) {
    self.id = id
    self.edition = edition
    self.store = store
    self.clock = clock
    self.scratch = scratch
    self.retention = retention
    let lineage = try Self.checkFormat(store)
    self.lineage = Mutex(lineage)
    transactions = TransactionTable(seed: lineage.incarnation, clock: clock)
    self.use = use ?? DocumentUse(Quota(.documents, of: id.project))
    self.queues = queues
    self.freshness = freshness
    queue = CommitQueue(
      store: store, indexCache: indexCache, queue: queues.serial("hearth.writer.\(id.name)"), counters: counters,
      use: self.use, memory: commitMemory ?? CommitQueue.processMemory)
    background = BackgroundWork(batch: indexBatch, observer: indexObserver)
  }

  /// Takes over the writing of the database: initializes an empty engine, and replaces the stored index configuration if
  /// `indexes` is given. Call it once, when this process may write to the store, before the first write.
  ///
  /// Index entries are built in the background, starting with ``continueBackgroundWork()``. A new database exists, empty,
  /// since `origin`, in microseconds since 1970; by default since now. The versions of all commits are above `floor`, because
  /// another writer may have promised readers that no commit comes at or below it.
  /// - Throws: as ``init(id:edition:store:retention:clock:indexBatch:indexObserver:counters:scratch:use:commitMemory:queues:freshness:)``. The
  ///   database can still be read.
  package func adopt(
    indexes: IndexConfiguration? = nil, origin: Int64? = nil, floor: Int64? = nil
  ) throws(StorageError) {
    if let floor { queue.settle(upTo: floor) }
    // The store may have changed since it was opened.
    let found = try Self.format(store, origin: origin ?? clock.now())
    lineage.withLock { $0 = found }
    transactions.setSeed(found.incarnation)
    if let indexes {
      try store.write { (transaction) throws(StorageError) in
        _ = try IndexReconciliation.apply(indexes, transaction)
      }
    }
    queue.forgetCatalog()
    try countUse()
    adopted.store(true, ordering: .sequentiallyConsistent)
    // Listeners that waited for the commits of another writer must not wait any longer.
    changes.send()
  }

  /// Whether this process writes to the database. If not, its writes fail with ``StorageError/notOwner(of:owner:)``, and
  /// nothing runs in the background.
  package var isAdopted: Bool { adopted.load(ordering: .sequentiallyConsistent) }

  /// Notes that commits of another node were applied to the store: notifies observers, and reads again what this object
  /// keeps of the store. Call it from one thread at a time.
  ///
  /// Returns `false` if the other node renewed the incarnation (``renewIncarnation(_:)``), because its log had lost commits. This
  /// object keeps the former one: a client may have a state with the lost commits, and must not get a token of the new
  /// incarnation for it. Open the database again then.
  /// - Throws: ``StorageError`` if the read fails.
  package func noteApplied() throws(StorageError) -> Bool {
    let found = try Self.checkFormat(store)
    let (before, isRenewed) = lineage.withLock { lineage in
      let before = lineage
      let isRenewed = found.isRenewal(of: before)
      if !isRenewed { lineage = found }
      return (before, isRenewed)
    }
    if found.incarnation != before.incarnation, !isRenewed {
      transactions.endAll()
      transactions.setSeed(found.incarnation)
    }
    changes.send()
    return !isRenewed
  }

  /// - Throws: ``StorageError/notOwner(of:owner:)`` before ``adopt(indexes:origin:floor:)``.
  func requireAdopted() throws(StorageError) {
    guard isAdopted else { throw .notOwner(of: id.name, owner: nil) }
  }

  /// Notifies observers of new durable commits.
  package var changes: ChangeSignal { queue.changes }

  /// A random number that identifies the content's lineage. Creating, forking and clearing a database assign a new one.
  package var incarnation: UInt64 { lineage.withLock { $0.incarnation } }

  // MARK: Reading

  /// Runs `body` on the newest snapshot, which ends when `body` returns.
  /// - Throws: the error of `body`, or ``StorageError`` if no snapshot is available.
  package func read<R>(_ body: (inout SnapshotReader) throws -> R) throws -> R {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    return try body(&reader)
  }

  /// Runs `body` on a snapshot that contains the state at `readTime`. `body` gets the version to read at, or `nil`
  /// if the newest state of the snapshot is the state at `readTime`.
  ///
  /// If `readTime` is after the last commit, the state cannot change any more: this function waits for the group
  /// being written, and all later commits take later versions.
  /// - Throws: the error of `body`; ``CommitError`` if `readTime` is in the future, before the creation of the
  ///   database, or older than the history; ``StorageError`` if the engine fails.
  package func read<R>(at readTime: Timestamp, _ body: (inout SnapshotReader, Int64?) throws -> R) throws -> R {
    let version = readTime.microseconds
    if try read({ try $0.lastVersion() }) < version, queue.settledVersion < version {
      guard version <= clock.now() else { throw CommitError.readTimeInFuture }
      // Only the node that writes to the database can promise that no commit comes at or below the version.
      if freshness != nil, !isAdopted { throw StorageError.notOwner(of: id.name, owner: nil) }
      queue.settle(upTo: version)
    }
    return try read { reader in
      if version >= (try reader.lastVersion()) { return try body(&reader, nil) }
      if version < Int64(bitPattern: try reader.meta(.created)) { throw CommitError.readTimeBeforeDatabase }
      try checkReadable(version, &reader)
      return try body(&reader, version)
    }
  }

  /// Checks that the before-images for a read at `version` still exist.
  /// - Throws: ``CommitError/readTimeTooOld`` if they do not, or ``StorageError`` if the read fails.
  package func checkReadable(_ version: Int64, _ reader: inout SnapshotReader) throws {
    if version < Int64(bitPattern: try reader.meta(.historyFrom)) { throw CommitError.readTimeTooOld }
  }

  /// Returns the oldest version that can be read.
  /// - Throws: ``StorageError`` if the read fails.
  package func oldestVersion() throws -> Int64 {
    try read { reader in
      try Int64(bitPattern: max(reader.meta(.historyFrom), reader.meta(.created)))
    }
  }

  // MARK: Writing

  /// Commits writes atomically. `completion` is called once, on the writer's thread, the calling thread, or the
  /// thread that plans a large commit.
  ///
  /// A commit succeeds only when it is durable. Cost on the calling thread: planning the commit, if it is small.
  package func commit(
    _ request: CommitRequest, completion: @escaping @Sendable (Result<CommitOutcome, CommitError>) -> Void
  ) {
    guard request.id == nil else { return commit(request, preparing: { request.reads }, completion: completion) }
    submit([request], completions: [completion])
  }

  /// Commits each write on its own, in any order. `completion` gets one result per write, in the order of `writes`. With
  /// the ID of a request that may arrive again, each write has an ID of its own; see ``RequestID/part(_:)``.
  package func commitEach(
    _ writes: [Write], id: RequestID? = nil,
    completion: @escaping @Sendable ([Result<CommitOutcome, CommitError>]) -> Void
  ) {
    guard !writes.isEmpty else { return completion([]) }
    let gathering = CommitBarrier(count: writes.count, completion: completion)
    let completions = writes.indices.map { index -> CommitQueue.Completion in { gathering.set($0, at: index) } }
    guard let id else { return submit(writes.map { CommitRequest([$0]) }, completions: completions) }
    let begun = begin(
      writes.indices.map { index in
        var request = CommitRequest([writes[index]])
        request.id = id.part(index)
        return (request, completions[index])
      })
    if !begun.isEmpty { submit(begun.map(\.request), completions: begun.map(\.completion)) }
  }

  /// Plans the requests and queues them: small ones on the calling thread, large ones on another thread, so the
  /// caller's event loop is not blocked. A small one whose rules take long also moves to another thread.
  func submit(_ requests: [CommitRequest], completions: [CommitQueue.Completion]) {
    do throws(StorageError) { try requireAdopted() } catch {
      for completion in completions { completion(.failure(.storage(error))) }
      return
    }
    let bytes = requests.reduce(0) { $0 + $1.bytes }
    guard queue.memory.take(bytes) else { return queue.refuse(completions) }
    if bytes > Self.plannedAtOnceBytesMax {
      LargeCommits.line.run(bytes: bytes, completions) { completions in
        self.queues.urgent { self.planAndSubmit(requests, completions, areLarge: true) }
      }
    } else if requests.contains(where: isCheckLong) {
      queues.urgent { self.planAndSubmit(requests, completions) }
    } else {
      planAndSubmit(requests, completions, isOnLoop: true)
    }
  }

  /// Plans commits whose rules take long.
  private static let planners = BoundedWorkers(
    "planners", threads: WorkerLimits.processors, unfinishedMax: WorkerLimits.plannersUnfinishedMax)

  /// The largest request planned on the caller's thread, in bytes: about ten milliseconds of work.
  static let plannedAtOnceBytesMax = 512 << 10
  /// The longest part of the change log searched on the caller's thread, in microseconds: about a thousand commits.
  private static let checkedAtOnceMicroseconds: Int64 = 100_000

  /// Whether the conflict check may have to search a long part of the change log.
  private func isCheckLong(_ request: CommitRequest) -> Bool {
    guard let reads = request.reads, reads.searchesLog else { return false }
    let lastVersion = try? read { try $0.lastVersion() }
    // If the store cannot be read, planning fails at once and reports why.
    return lastVersion.map { $0 - reads.readVersion > Self.checkedAtOnceMicroseconds } ?? false
  }

  /// Plans requests whose bytes are taken from the memory of unfinished commits.
  private func planAndSubmit(
    _ requests: [CommitRequest], _ completions: [CommitQueue.Completion], areLarge: Bool = false,
    isOnLoop: Bool = false
  ) {
    let arrival = clock.now()
    var members: [CommitWriter.Member] = []
    var waiting: [CommitQueue.Completion] = []
    for (var request, completion) in zip(requests, completions) {
      request.edition = edition
      do throws(CommitError) {
        members.append(try member(request, arrival: arrival, isOnLoop: isOnLoop))
        waiting.append(completion)
      } catch .tooLongForLoop {
        planLater(request, completion)
      } catch {
        queue.memory.give(request.bytes)
        completion(.failure(error))
      }
    }
    if !members.isEmpty { queue.submit(members, completions: waiting, areLarge: areLarge) }
  }

  /// Plans a commit on another thread. If too many wait there, it is planned here, which holds back the client that
  /// sends them.
  private func planLater(_ request: CommitRequest, _ completion: @escaping CommitQueue.Completion) {
    let isTaken = Self.planners.run { self.planAndSubmit([request], [completion]) }
    if !isTaken { planAndSubmit([request], [completion]) }
  }

  /// Returns the time that server timestamps of a commit carry: the millisecond of its arrival, as in production, or
  /// one microsecond after the latest one assigned, whichever is later. So successive commits have ascending
  /// timestamps.
  private func requestTime(of request: CommitRequest, arrival: Int64) -> Timestamp {
    let millisecond = arrival / 1000 * 1000
    guard request.hasServerTimestamps else { return Timestamp(uncheckedMicroseconds: millisecond) }
    return latestServerTimestamp.withLock { latest in
      latest = max(millisecond, latest + 1)
      return Timestamp(uncheckedMicroseconds: latest)
    }
  }

  /// Plans a commit on the newest snapshot, and checks its transaction's reads for conflicts up to that snapshot.
  private func member(
    _ request: CommitRequest, arrival: Int64, isOnLoop: Bool
  ) throws(CommitError) -> CommitWriter.Member {
    let requestTime = requestTime(of: request, arrival: arrival)
    do {
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      var reader = SnapshotReader(snapshot)
      let plan = try plan(request, requestTime: requestTime, isOnLoop: isOnLoop, &reader)
      if let reads = request.reads { try ConflictCheck.run(reads, on: snapshot) }
      return CommitWriter.Member(
        request: request, plan: plan, checkedVersion: try reader.lastVersion(), requestTime: requestTime,
        arrival: arrival)
    } catch let error as CommitError {
      throw error
    } catch let error as StorageError {
      throw .storage(error)
    } catch {
      preconditionFailure("planning a commit threw an unexpected error: \(error)")
    }
  }

  private func plan(
    _ request: CommitRequest, requestTime: Timestamp, isOnLoop: Bool, _ reader: inout SnapshotReader
  ) throws(CommitError) -> CommitPlan? {
    let indexes: IndexCatalog
    do throws(StorageError) { indexes = try indexCache.catalog(&reader) } catch { throw .storage(error) }
    do throws(CommitError) {
      return try CommitPlan(request, reader: &reader, indexes: indexes, requestTime: requestTime, isOnLoop: isOnLoop)
    } catch {
      switch error {
      // A commit ahead in the queue may make this precondition hold, so the writer decides.
      case .documentMissing, .documentExists, .versionMismatch, .updateTimeInFuture: return nil
      default: throw error
      }
    }
  }

  /// Returns the mark of the last commit that had one, as ``lastMark(in:)``.
  /// - Throws: ``StorageError/outcomeUnknown(path:detail:)`` if that of a commit since the opening is unknown;
  ///   ``StorageError`` if the read fails.
  package func lastMark() throws(StorageError) -> UInt64 {
    if let doubt = queue.lastDoubt { throw doubt }
    return try Self.lastMark(in: store)
  }

  /// Returns the mark of the last commit that had one, or 0 if none had; see ``CommitRequest/mark``.
  /// - Throws: ``StorageError`` if the read fails.
  package static func lastMark(in store: any KeyValueStore) throws(StorageError) -> UInt64 {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    return try reader.meta(.lastMark)
  }

  // MARK: Loading and clearing

  /// Returns a loader that fills this database, which must be empty and not in use; see ``BulkLoader``.
  /// - Throws: ``StorageError`` if the read fails.
  package func makeLoader() throws(StorageError) -> BulkLoader {
    try requireAdopted()
    return try BulkLoader(store: store, version: clock.now())
  }

  /// Assigns a new incarnation, so ETags and resume tokens of the original do not match the copy, and those of lost
  /// commits do not match the commits in their place. A store that is empty stays so.
  /// - Throws: ``StorageError`` if the write fails.
  package static func renewIncarnation(_ store: any KeyValueStore) throws(StorageError) {
    guard try !checkFormat(store).isEmpty else { return }
    try store.write { (transaction) throws(StorageError) in
      try transaction.put(.incarnation, newIncarnation())
    }
  }

  /// Removes every document, the history and the change log. Versions keep increasing. The outcomes of recent commits
  /// stay, so that a commit from before is not done again. `completion` runs on the writer's thread.
  package func clear(completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
    queue.perform { [self] in
      do throws(StorageError) {
        try requireAdopted()
        let incarnation = Self.newIncarnation()
        var version: Int64 = 0
        try store.write { (transaction) throws(StorageError) in
          var reader = SnapshotReader(transaction)
          version = max(clock.now(), try reader.lastVersion() + 1, queue.settledVersion + 1)
          let kept: Set<Table> = [.meta, .indexes, .fieldSettings, .recentCommits]
          for table in Table.allCases where !kept.contains(table) { try transaction.removeAll(of: table) }
          try IndexReconciliation.finishAll(transaction)
          try Self.writeOrigin(transaction, version: version, incarnation: incarnation)
        }
        queue.forgetCatalog()
        use.set(0)
        transactions.endAll()
        lineage.withLock { $0 = DatabaseLineage(incarnation: incarnation, created: version) }
        changes.send()
        completion(.success(()))
      } catch { completion(.failure(error)) }
    }
  }

  /// Runs the background work that is due: removes expired history, log entries and documents, and resumes
  /// unfinished work on indexes. Call it regularly. Does nothing before ``adopt(indexes:origin:floor:)``.
  package func maintain() {
    guard isAdopted else { return }
    trim()
    continueBackgroundWork()
    removeExpired()
  }

  /// Removes expired history and log entries, in batches between commits.
  private func trim() {
    queue.perform { [self] in
      do throws(StorageError) {
        let snapshot = try store.snapshot()
        var reader = SnapshotReader(snapshot)
        let (now, version) = (clock.now(), try reader.lastVersion())
        let ages = versionAges.withLock { ages in
          ages.note(version, at: now, retention)
          return ages
        }
        let trimmer = Trimmer(retention: retention, ages: ages)
        let isDue = try trimmer.isDue(&reader, now: now)
        snapshot.end()
        guard isDue else { return }
        var hasMore = false
        try store.write { (transaction) throws(StorageError) in
          hasMore = try trimmer.trim(transaction, now: clock.now())
        }
        if hasMore { trim() }
      } catch {
        // Nothing was removed. The next call retries, and the next commit reports any failure of the store.
      }
    }
  }

  /// Whether nothing was committed since the database was created or cleared, so that closing it loses nothing that a
  /// new database would not have.
  var isPristine: Bool {
    (try? read { reader in try reader.lastVersion() == Int64(bitPattern: reader.meta(.created)) }) ?? false
  }

  /// Waits until no background work or writer holds the store, so that releasing the database closes its engine.
  func drain() {
    background.stop()
    background.waitForExpiring()
    background.waitForCounting()
    queue.drain()
  }

  // MARK: Format

  /// Returns the lineage of the content. Checks that this version knows its format.
  private static func checkFormat(_ store: any KeyValueStore) throws(StorageError) -> DatabaseLineage {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    let format = try reader.meta(.format)
    if (DocumentStoreFormat.plain...DocumentStoreFormat.current).contains(format) {
      return DatabaseLineage(
        incarnation: try reader.meta(.incarnation), created: Int64(bitPattern: try reader.meta(.created)))
    }
    guard format == 0 else {
      throw .unsupportedFormat(
        path: "database", found: String(format), supported: "up to \(DocumentStoreFormat.current)")
    }
    return .none
  }

  /// Initializes a store that is empty. Returns its lineage.
  private static func format(_ store: any KeyValueStore, origin: Int64) throws(StorageError) -> DatabaseLineage {
    let found = try checkFormat(store)
    guard found.isEmpty else { return found }
    let fresh = DatabaseLineage(incarnation: newIncarnation(), created: origin)
    try store.write { (transaction) throws(StorageError) in
      try transaction.put(.format, DocumentStoreFormat.plain)
      try writeOrigin(transaction, version: fresh.created, incarnation: fresh.incarnation)
    }
    return fresh
  }

  private static func writeOrigin(
    _ transaction: any KeyValueTransaction, version: Int64, incarnation: UInt64
  ) throws(StorageError) {
    let bits = UInt64(bitPattern: version)
    try transaction.put(.incarnation, incarnation)
    for name in [MetaKey.created, .lastVersion, .historyFrom, .changeLogFrom] { try transaction.put(name, bits) }
    for name in [MetaKey.collectionNumber, .fieldNumber, .changeLogCount] { try transaction.put(name, 0) }
    try DocumentUse.store(0, version: version, transaction)
  }

  private static func newIncarnation() -> UInt64 { UInt64.random(in: 1...UInt64.max) }
}

/// Collects the results of commits that were submitted together.
private final class CommitBarrier: Sendable {
  private let state: Mutex<(results: [Result<CommitOutcome, CommitError>?], missing: Int)>
  private let completion: @Sendable ([Result<CommitOutcome, CommitError>]) -> Void

  init(count: Int, completion: @escaping @Sendable ([Result<CommitOutcome, CommitError>]) -> Void) {
    state = Mutex((Array(repeating: nil, count: count), count))
    self.completion = completion
  }

  func set(_ result: Result<CommitOutcome, CommitError>, at index: Int) {
    let all = state.withLock { state -> [Result<CommitOutcome, CommitError>]? in
      state.results[index] = result
      state.missing -= 1
      return state.missing == 0 ? state.results.compactMap { $0 } : nil
    }
    if let all { completion(all) }
  }
}
