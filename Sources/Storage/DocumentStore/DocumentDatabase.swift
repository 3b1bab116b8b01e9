import Dispatch
package import DocumentModel
package import KeyValue
import Synchronization

/// One database: its documents, its transactions, its writer.
///
/// 1. Reads run on snapshots on the caller's thread and never wait.
/// 2. Commits are worked out on the caller's thread, then validated and written by the one writer, many with one sync.
/// 3. A commit's version is its time in microseconds, strictly increasing; everything that speaks of time uses it.
/// 4. Past states are read through before-images, for as long as ``Retention`` says.
package final class DocumentDatabase: Sendable {
  /// Which database this is.
  package let id: DatabaseID
  /// Which kind of database it is.
  package let edition: Edition
  /// The engine that holds it.
  package let store: any KeyValueStore
  /// Its open transactions.
  package let transactions: TransactionTable

  /// The time of day.
  package let clock: Clock
  private let retention: Retention
  let queue: CommitQueue
  private let identity: Mutex<UInt64>
  private let latestServerTimestamp = Mutex<Int64>(0)
  let indexCache = IndexCatalogCache()
  let background: BackgroundWork

  /// Opens a database in an engine, creating its tables where the engine is empty.
  ///
  /// With `indexes` the database is made to follow that configuration; without, it keeps the one it has. Entries
  /// follow in the background, from ``continueBackgroundWork()`` on.
  /// - Throws: ``StorageError/unsupportedFormat(path:found:supported:)`` for data of a newer version.
  package init(
    id: DatabaseID, edition: Edition = .standard, store: any KeyValueStore, retention: Retention = Retention(),
    clock: Clock = .system, indexes: IndexConfiguration? = nil, indexBatch: IndexBatch = IndexBatch(),
    indexObserver: IndexObserver? = nil, counters: CommitCounters = CommitCounters()
  ) throws(StorageError) {
    self.id = id
    self.edition = edition
    self.store = store
    self.clock = clock
    self.retention = retention
    let incarnation = try Self.format(store, clock: clock)
    identity = Mutex(incarnation)
    transactions = TransactionTable(seed: incarnation, clock: clock)
    queue = CommitQueue(store: store, indexCache: indexCache, label: "hearth.writer.\(id.name)", counters: counters)
    background = BackgroundWork(batch: indexBatch, observer: indexObserver)
    if let indexes {
      try store.write { (transaction) throws(StorageError) in
        _ = try IndexReconciliation.apply(indexes, transaction)
      }
    }
  }

  /// Tells of commits that became durable.
  package var changes: ChangeSignal { queue.changes }

  /// A number that names this life of the database: new after it was cleared, restored or forked.
  package var incarnation: UInt64 { identity.withLock { $0 } }

  // MARK: Reading

  /// Runs `body` on the newest snapshot, which ends when it returns.
  /// - Throws: what `body` throws, or ``StorageError`` when no snapshot can be had.
  package func read<R>(_ body: (inout SnapshotReader) throws -> R) throws -> R {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    return try body(&reader)
  }

  /// Runs `body` on a snapshot that can show the moment `readTime`, with the version to read at there, or `nil` where
  /// the snapshot shows the moment as it is.
  ///
  /// A moment after the last commit is promised to stay as it is shown: the group being written is waited for, and
  /// commits after it take later versions.
  /// - Throws: what `body` throws, or ``CommitError`` when the moment lies in the future, before the database, or
  ///   beyond the history.
  package func read<R>(at readTime: Timestamp, _ body: (inout SnapshotReader, Int64?) throws -> R) throws -> R {
    let version = readTime.microseconds
    if try read({ try $0.lastVersion() }) < version, queue.settledVersion < version {
      guard version <= clock.now() else { throw CommitError.readTimeInFuture }
      queue.settle(upTo: version)
    }
    return try read { reader in
      if version >= (try reader.lastVersion()) { return try body(&reader, nil) }
      if version < Int64(bitPattern: try reader.meta(.created)) { throw CommitError.readTimeBeforeDatabase }
      try checkReadable(version, &reader)
      return try body(&reader, version)
    }
  }

  /// Checks that the before-images which a read at `version` needs are still there.
  /// - Throws: ``CommitError/readTimeTooOld``.
  package func checkReadable(_ version: Int64, _ reader: inout SnapshotReader) throws {
    if version < Int64(bitPattern: try reader.meta(.historyFrom)) { throw CommitError.readTimeTooOld }
  }

  // MARK: Writing

  /// Commits writes atomically; `completion` is called once, on the writer's thread or at once on this one.
  ///
  /// Cost here: the plan of the commit. Acknowledged only when durable.
  package func commit(
    _ request: CommitRequest, completion: @escaping @Sendable (Result<CommitOutcome, CommitError>) -> Void
  ) {
    submit([request], completions: [completion])
  }

  /// Commits each write on its own, in any order; `completion` gets one result per write.
  package func commitEach(
    _ writes: [Write], completion: @escaping @Sendable ([Result<CommitOutcome, CommitError>]) -> Void
  ) {
    guard !writes.isEmpty else { return completion([]) }
    let gathering = CommitBarrier(count: writes.count, completion: completion)
    submit(
      writes.map { CommitRequest([$0]) },
      completions: writes.indices.map { index in { gathering.set($0, at: index) } })
  }

  /// Works the requests out and puts them in line: small ones at once, large ones on another thread, so that the
  /// caller's event loop goes on.
  private func submit(_ requests: [CommitRequest], completions: [CommitQueue.Completion]) {
    let bytes = requests.reduce(0) { $0 + $1.bytes }
    guard bytes > Self.plannedAtOnceBytesMax || requests.contains(where: isCheckLong) else {
      return planAndSubmit(requests, completions)
    }
    DispatchQueue.global().async { self.planAndSubmit(requests, completions) }
  }

  /// What a commit may hold to be planned on the caller's thread, in bytes: about ten milliseconds of work.
  private static let plannedAtOnceBytesMax = 512 << 10
  /// How much of the log is searched on the caller's thread, in microseconds: about a thousand commits.
  private static let checkedAtOnceMicroseconds: Int64 = 100_000

  /// Whether a check for conflicts may have much of the log to search.
  private func isCheckLong(_ request: CommitRequest) -> Bool {
    guard let reads = request.reads, reads.searchesLog else { return false }
    let lastVersion = try? read { try $0.lastVersion() }
    // Where nothing can be read, planning fails at once and says why.
    return lastVersion.map { $0 - reads.readVersion > Self.checkedAtOnceMicroseconds } ?? false
  }

  private func planAndSubmit(_ requests: [CommitRequest], _ completions: [CommitQueue.Completion]) {
    let arrival = clock.now()
    var members: [CommitWriter.Member] = []
    var waiting: [CommitQueue.Completion] = []
    for (var request, completion) in zip(requests, completions) {
      request.edition = edition
      do throws(CommitError) {
        members.append(try member(request, arrival: arrival))
        waiting.append(completion)
      } catch {
        completion(.failure(error))
      }
    }
    if !members.isEmpty { queue.submit(members, completions: waiting) }
  }

  /// What server timestamps of a commit say: its millisecond, as the service has it, or a microsecond after the latest
  /// where one was given out in that millisecond. So commits that follow one another have ascending ones.
  private func requestTime(of request: CommitRequest, arrival: Int64) -> Timestamp {
    let millisecond = arrival / 1000 * 1000
    guard request.hasServerTimestamps else { return Timestamp(uncheckedMicroseconds: millisecond) }
    return latestServerTimestamp.withLock { latest in
      latest = max(millisecond, latest + 1)
      return Timestamp(uncheckedMicroseconds: latest)
    }
  }

  /// Works a commit out on the newest snapshot, and checks what its transaction read up to there.
  private func member(_ request: CommitRequest, arrival: Int64) throws(CommitError) -> CommitWriter.Member {
    let requestTime = requestTime(of: request, arrival: arrival)
    do {
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      var reader = SnapshotReader(snapshot)
      let plan = try plan(request, requestTime: requestTime, &reader)
      if let reads = request.reads { try ConflictCheck.run(reads, on: snapshot) }
      return CommitWriter.Member(
        request: request, plan: plan, checkedVersion: try reader.lastVersion(), requestTime: requestTime,
        arrival: arrival)
    } catch let error as CommitError {
      throw error
    } catch let error as StorageError {
      throw .storage(error)
    } catch {
      preconditionFailure("a plan throws its own errors only, not \(error)")
    }
  }

  private func plan(
    _ request: CommitRequest, requestTime: Timestamp, _ reader: inout SnapshotReader
  ) throws(CommitError) -> CommitPlan? {
    let indexes: IndexCatalog
    do throws(StorageError) { indexes = try indexCache.catalog(&reader) } catch { throw .storage(error) }
    do throws(CommitError) {
      return try CommitPlan(request, reader: &reader, indexes: indexes, requestTime: requestTime)
    } catch {
      switch error {
      // What this snapshot refuses, a commit that waits before this one may allow: the writer has the last word.
      case .documentMissing, .documentExists, .versionMismatch, .versionAhead: return nil
      default: throw error
      }
    }
  }

  /// The mark of the last commit that had one, in the store of a database; 0 where none had. See ``CommitRequest/mark``.
  package static func lastMark(in store: any KeyValueStore) throws(StorageError) -> UInt64 {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = SnapshotReader(snapshot)
    return try reader.meta(.lastMark)
  }

  // MARK: Loading and clearing

  /// Fills a database that is empty and that nobody uses yet; see ``BulkLoader``.
  package func makeLoader() throws(StorageError) -> BulkLoader {
    try BulkLoader(store: store, version: clock.now())
  }

  /// Gives a copy of a database a life of its own: what named a state of the original names none of the copy.
  package static func renewIncarnation(_ store: any KeyValueStore) throws(StorageError) {
    try store.write { (transaction) throws(StorageError) in
      try transaction.put(.incarnation, newIncarnation())
    }
  }

  /// Removes every document, the history and the log; versions go on rising. `completion` runs on the writer's thread.
  package func clear(completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
    queue.perform { [self] in
      do throws(StorageError) {
        let incarnation = Self.newIncarnation()
        try store.write { (transaction) throws(StorageError) in
          var reader = SnapshotReader(transaction)
          let version = max(clock.now(), try reader.lastVersion() + 1, queue.settledVersion + 1)
          let kept: Set<Table> = [.meta, .indexes, .fieldSettings]
          for table in Table.allCases where !kept.contains(table) { try transaction.removeAll(of: table) }
          try IndexReconciliation.finishAll(transaction)
          try Self.writeOrigin(transaction, version: version, incarnation: incarnation)
        }
        queue.forgetCatalog()
        transactions.endAll()
        identity.withLock { $0 = incarnation }
        changes.send()
        completion(.success(()))
      } catch { completion(.failure(error)) }
    }
  }

  /// Does what is due in the background: removes history and log entries past their time and documents past theirs,
  /// and goes on with what was left of work on indexes. Call it every now and then.
  package func maintain() {
    trim()
    continueBackgroundWork()
    removeExpired()
  }

  /// Removes history and log entries past their time, in batches between commits.
  private func trim() {
    let trimmer = Trimmer(retention: retention)
    queue.perform { [self] in
      do throws(StorageError) {
        let snapshot = try store.snapshot()
        var reader = SnapshotReader(snapshot)
        let isDue = try trimmer.isDue(&reader, now: clock.now())
        snapshot.end()
        guard isDue else { return }
        var hasMore = false
        try store.write { (transaction) throws(StorageError) in
          hasMore = try trimmer.trim(transaction, now: clock.now())
        }
        if hasMore { trim() }
      } catch {
        // Nothing was removed; the next call tries again, and a commit will report what is wrong with the store.
      }
    }
  }

  /// Waits until the writer holds on to nothing, so that letting go of the database closes its engine.
  func drain() {
    background.stop()
    background.waitForExpiring()
    queue.drain()
  }

  // MARK: Format

  private static func format(_ store: any KeyValueStore, clock: Clock) throws(StorageError) -> UInt64 {
    let snapshot = try store.snapshot()
    var reader = SnapshotReader(snapshot)
    let format = try reader.meta(.format)
    let incarnation = try reader.meta(.incarnation)
    snapshot.end()
    if (DocumentStoreFormat.plain...DocumentStoreFormat.current).contains(format) { return incarnation }
    guard format == 0 else {
      throw .unsupportedFormat(
        path: "database", found: String(format), supported: "up to \(DocumentStoreFormat.current)")
    }
    let fresh = newIncarnation()
    try store.write { (transaction) throws(StorageError) in
      try transaction.put(.format, DocumentStoreFormat.plain)
      try writeOrigin(transaction, version: clock.now(), incarnation: fresh)
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
  }

  private static func newIncarnation() -> UInt64 { UInt64.random(in: 1...UInt64.max) }
}

/// Gathers the results of commits that were submitted together.
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
