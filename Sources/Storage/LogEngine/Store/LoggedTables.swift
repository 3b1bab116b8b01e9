import Dispatch
import Glibc
import KeyValue
import LMDBEngine
import Synchronization

/// The log, the memtables and the data file of a ``LoggedStore``.
///
/// They are apart from the store so that the store can be released, and so closed, while a flush runs: only blocks on
/// `flusher` hold a reference to this object besides the store, and ``close()`` waits for them.
///
/// `@unchecked Sendable`: only the thread that holds `writerLock` changes `place`, `spareBatch`, `isMarked` and `isClosed`.
/// A flush reads `place`, which does not change after the first commit. Everything else is constant or has its own lock.
final class LoggedTables: @unchecked Sendable {
  let base: any MarkedStore
  let settings: LoggedStoreSettings
  /// The layers for new readers. Held only to copy it or change it.
  let view: Mutex<View>
  /// Serves one writer at a time, like the lock of LMDB that it replaces. It is held while the log syncs.
  private let writerLock = Mutex<Void>(())
  /// Flushes one table at a time.
  let flusher: DispatchQueue
  /// Calls ``flushIfIdle()`` some seconds after a commit. Its handler does not hold this object.
  private let idleTimer: any DispatchSourceTimer
  /// The secret of the log, which the data file keeps with its position.
  let secret: UInt64
  var place: LogPlace
  /// Whether the data file says that the log is open.
  private var isMarked: Bool
  /// Whether ``close()`` or ``abandon()`` was called, so that no flush may begin: the budget can still wake this object
  /// then.
  var isClosed = false
  private var spareBatch = CommitBatch()
  /// The number of times that a table became the flushing one. See ``snapshot()``.
  private let freezes = Atomic<Int>(0)
  /// The bytes of the active table after the last commit.
  let filledBytes = Atomic<Int>(0)
  /// The keys of the flushing table that are in the data file.
  let flushedKeys = Atomic<Int>(0)
  /// Whether a thread waits for the flush.
  private let isAwaited = Atomic<Bool>(false)
  /// Whether the budget wants the active table to be flushed.
  private let isFlushWanted = Atomic<Bool>(false)

  /// The tables, and the newest operation in them that readers see.
  struct View: Sendable {
    var active: MemtableLayer
    var flushing: MemtableLayer?
    /// The position after the last commit of the flushing table.
    var flushingPosition = LogPosition()
    /// The number of keys of the flushing table.
    var flushingKeys = 0
    var position: LogPosition
    /// The last operation when the idle timer was set, or `nil` if it is not set.
    var timedOrdinal: UInt64?
    var ordinal: UInt64
    var freezes = 0
    /// Why the last flush failed. The flushing table stays then.
    var flushFailure: StorageError?
    /// Why the log accepts nothing more.
    var logFailure: StorageError?

    var isActiveEmpty: Bool { active.table.first == nil && active.ranges.isEmpty }
    var isEmpty: Bool { flushing == nil && isActiveEmpty }
  }

  /// Takes over parts that are open; see ``LoggedStore/open(_:folder:settings:newSecret:)``. The tables of `view` may have
  /// commits of the log.
  init(
    base: any MarkedStore, settings: LoggedStoreSettings, place: LogPlace, view: View, secret: UInt64
  ) {
    self.base = base
    self.settings = settings
    self.place = place
    self.secret = secret
    isMarked = place.log != nil
    self.view = Mutex(view)
    flusher = DispatchQueue(label: "hearth.flush")
    idleTimer = DispatchSource.makeTimerSource(queue: flusher)
    idleTimer.schedule(deadline: .distantFuture)
    idleTimer.setEventHandler { [weak self] in self?.flushIfIdleHere() }
    idleTimer.activate()
    writerLock.withLock { _ in startFlushIfFull() }
  }

  // MARK: Reading

  /// Takes a snapshot as ``LoggedStore/snapshot()``.
  ///
  /// The view comes first. If a table is flushed in between, its entries are seen twice, which is harmless. But if the
  /// active table is frozen in between, the data file may already have later commits: then both are taken again.
  /// - Throws: ``StorageError/tooManyReaders(limit:)`` if all reader slots of the data file are in use.
  func snapshot() throws(StorageError) -> any KeyValueSnapshot {
    while true {
      let (seen, freezesBefore) = view.withLock { view in
        (view.isEmpty ? nil : (view.active, view.flushing, view.ordinal), view.freezes)
      }
      let snapshot = try base.snapshot()
      guard freezes.load(ordering: .sequentiallyConsistent) == freezesBefore else {
        snapshot.end()
        continue
      }
      guard let (active, flushing, ordinal) = seen else { return snapshot }
      return LoggedSnapshot(Layers(active: active, flushing: flushing, ordinal: ordinal, base: snapshot))
    }
  }

  // MARK: Writing

  /// As ``LoggedStore/writeFailure``.
  var writeFailure: StorageError? {
    view.withLock { $0.logFailure ?? ($0.flushing == nil ? nil : $0.flushFailure) }
  }

  /// Runs a write transaction as ``LoggedStore/write(_:)``.
  func write(
    _ body: (any KeyValueTransaction) throws(StorageError) -> Void
  ) throws(StorageError) {
    var failure: StorageError?
    writerLock.withLock { _ in
      do throws(StorageError) { try writeAlone(body) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  private func writeAlone(
    _ body: (any KeyValueTransaction) throws(StorageError) -> Void
  ) throws(StorageError) {
    try requireOpen()
    if let failure = place.log?.failure { throw failure }
    try makeRoom()
    let view = view.withLock { $0 }
    let transaction = LoggedTransaction(
      Layers(active: view.active, flushing: view.flushing, ordinal: .max, base: try base.snapshot()),
      after: view.ordinal, reusing: spareBatch,
      singleRemovalsMax: settings.singleRemovalsMax)
    spareBatch = CommitBatch()
    defer {
      spareBatch = transaction.close()
      spareBatch.removeAll(keptBytesMax: settings.batchBytesKept)
    }
    let ranges: RemovedRanges
    let position: LogPosition
    do throws(StorageError) {
      try body(transaction)
      ranges = try transaction.finish()
      if transaction.batch.isEmpty { return }
      position = try openLog().append(transaction.batch)
    } catch {
      if let failure = place.log?.failure { self.view.withLock { $0.logFailure = failure } }
      transaction.rollBack()
      throw error
    }
    self.view.withLock { view in
      view.ordinal = transaction.ordinal
      view.active.ranges = ranges
      view.position = position
    }
    place.log?.noteReadable(position)
    startFlushIfFull()
  }

  /// Returns the log. Before the first commit it makes one, and notes it in the data file.
  ///
  /// The first segment is durable before the data file says that there is a log. So a file that says so and has none has
  /// lost commits.
  private func openLog() throws(StorageError) -> any CommitLog {
    let position = view.withLock { $0.position }
    let opened: any CommitLog
    switch place {
    case .open(let log): opened = log
    case .folder(let folder):
      opened = try FileLog.create(in: folder, after: position, secret: secret, sizes: settings.log)
      place = .open(opened)
    }
    if !isMarked {
      let mark = LogMark(isOpen: true, position: position.encoded(secret: secret))
      try base.writeMarked { _ throws(StorageError) in mark }
      isMarked = true
    }
    return opened
  }

  /// Runs `body` as the writer.
  func withWriter<R>(_ body: () throws(StorageError) -> R) throws(StorageError) -> R {
    try writerLock.withLock { _ in
      do throws(StorageError) { return Result<R, StorageError>.success(try body()) } catch { return .failure(error) }
    }.get()
  }

  /// Runs `body` as the writer, unless there is one.
  func withIdleWriter(_ body: () throws(StorageError) -> Void) throws(StorageError) {
    let result = writerLock.withLockIfAvailable { _ -> StorageError? in
      do throws(StorageError) { try body() } catch { return error }
      return nil
    }
    if case .some(.some(let failure)) = result { throw failure }
  }

  // MARK: Flushing

  /// Waits until the active table has room. Slows the writer as the table fills while the other is being flushed.
  func makeRoom() throws(StorageError) {
    let view = view.withLock { $0 }
    guard view.flushing != nil else {
      startFlushIfFull()
      // Other stores flush, and their tables have all of the memory. This one has a small part of a table beyond it at most.
      if view.active.table.allocatedBytes >= settings.memtableBytesMax / 32, settings.budget.isFull {
        isFlushWanted.store(true, ordering: .relaxed)
        startFlushIfFull()
        waitForMemory()
      }
      return
    }
    if isFull(view) || settings.budget.isFull {
      flushAndWait()
      try checkFlush()
      startFlushIfFull()
    } else if view.flushFailure == nil, !settings.flushesInline {
      keepPace()
    }
  }

  /// Waits until the flush that runs has ended, or the budget has memory. A copy can hold the flush up.
  private func waitForMemory() {
    while settings.budget.isFull, view.withLock({ $0.flushing != nil && $0.flushFailure == nil }) {
      usleep(Self.memoryPause)
    }
  }

  /// The time between two looks at the budget, in microseconds.
  private static let memoryPause: UInt32 = 1_000

  /// Whether the active table should be flushed. After a flush that failed, the table accepts little more.
  private func isFull(_ view: View) -> Bool {
    let bytesMax = view.flushFailure == nil ? settings.memtableBytesMax : settings.memtableBytesMax / 8
    return view.active.table.first != nil && view.active.table.allocatedBytes >= bytesMax
      || view.active.ranges.count >= settings.removedRangesMax
  }

  /// Reports the size of the active table. If it is full, or the memory of all tables is needed, and no other table is
  /// being flushed, begins to flush it. Otherwise sets the timer that does so later. The caller is the writer.
  func startFlushIfFull() {
    guard !isClosed else { return }
    let view = view.withLock { $0 }
    let bytes = view.isActiveEmpty ? 0 : view.active.table.allocatedBytes
    filledBytes.store(bytes, ordering: .relaxed)
    let isLargest = settings.budget.setFilled(ObjectIdentifier(self), bytes: bytes) {
      { [weak self] in self?.wakeFlush() }
    }
    let isWanted = isFlushWanted.exchange(false, ordering: .relaxed)
    guard bytes > 0 else { return }
    guard isLargest || isWanted || isFull(view) else { return setTimer() }
    guard view.flushing == nil else { return }
    guard place.log != nil else {
      // It is full of what was withdrawn.
      self.view.withLock { $0.active = MemtableLayer(table: Memtable()) }
      filledBytes.store(0, ordering: .relaxed)
      _ = settings.budget.setFilled(ObjectIdentifier(self), bytes: 0) { {} }
      return
    }
    freeze()
    if settings.flushesInline { writeFlushingTable() } else { flusher.async { self.writeFlushingTable() } }
  }

  /// Flushes the active table on the store's queue, because the budget needs its memory.
  private func wakeFlush() {
    isFlushWanted.store(true, ordering: .relaxed)
    flusher.async { [weak self] in
      // If a writer is at work, it notices the wish after its commit.
      guard let self else { return }
      _ = writerLock.withLockIfAvailable { _ in startFlushIfFull() }
    }
  }

  /// Sets the idle timer unless it is set.
  private func setTimer() {
    let isSet = view.withLock { view in
      guard view.timedOrdinal == nil else { return true }
      view.timedOrdinal = view.ordinal
      return false
    }
    if !isSet, !settings.flushesInline { idleTimer.schedule(deadline: .now() + settings.idleSeconds) }
  }

  /// Flushes everything as ``LoggedStore/flushIfIdle()``.
  func flushIfIdle() { flusher.sync { flushIfIdleHere() } }

  /// Flushes both tables if the last commit is the one of the last call. The caller is on `flusher`. Writers can
  /// commit meanwhile.
  private func flushIfIdleHere() {
    // A writer may hold its lock and wait for this queue. If the lock is taken, a writer is at work anyway.
    var idleOrdinal: UInt64?
    let isAvailable: Void? = writerLock.withLockIfAvailable { _ in
      let (timed, last) = view.withLock { view in
        defer { view.timedOrdinal = nil }
        return (view.timedOrdinal, view.ordinal)
      }
      guard timed == last else { return setTimer() }
      idleOrdinal = last
    }
    // The writer does not set a timer that is set.
    if isAvailable == nil, !settings.flushesInline {
      idleTimer.schedule(deadline: .now() + settings.idleSeconds)
    }
    guard let idleOrdinal else { return }
    // The table of a flush that failed comes first. If a flush fails now, the next write tries again.
    writeFlushingTable()
    _ = writerLock.withLockIfAvailable { _ in
      let isIdle = view.withLock {
        $0.flushing == nil && !$0.isActiveEmpty && $0.ordinal == idleOrdinal
      }
      if isIdle, !isClosed, place.log != nil { freeze() }
    }
    writeFlushingTable()
    _ = writerLock.withLockIfAvailable { _ in
      let idleSequence = view.withLock { view -> UInt64? in
        view.isEmpty && view.ordinal == idleOrdinal ? view.position.sequence : nil
      }
      guard let idleSequence else { return }
      spareBatch = CommitBatch()
      try? place.log?.release(upTo: idleSequence, keepingSpares: false)
    }
  }

  /// Makes the active table the flushing one. The caller is the writer, and no table is being flushed.
  func freeze() {
    flushedKeys.store(0, ordering: .relaxed)
    filledBytes.store(0, ordering: .relaxed)
    view.withLock { view in
      view.flushing = view.active
      view.flushingPosition = view.position
      view.flushingKeys = view.active.table.keys
      view.active = MemtableLayer(table: Memtable())
      view.freezes += 1
      freezes.store(view.freezes, ordering: .sequentiallyConsistent)
    }
    settings.budget.beginFlush(ObjectIdentifier(self))
  }

  /// Waits for the flush that runs, if any, and tries again if it failed.
  private func flushAndWait() {
    guard !settings.flushesInline else { return writeFlushingTable() }
    isAwaited.store(true, ordering: .relaxed)
    defer { isAwaited.store(false, ordering: .relaxed) }
    flusher.sync { self.writeFlushingTable() }
  }

  /// Moves everything to the data file as ``LoggedStore/flush()``.
  func flush() throws(StorageError) {
    var failure: StorageError?
    writerLock.withLock { _ in
      do throws(StorageError) { try flushAlone() } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Flushes both tables. The caller is the writer.
  private func flushAlone() throws(StorageError) {
    guard !isClosed, place.log != nil else { return }
    for _ in 0..<2 {
      flushAndWait()
      try checkFlush()
      guard view.withLock({ !$0.isEmpty }) else { return }
      freeze()
    }
  }

  private func checkFlush() throws(StorageError) {
    if let failure = view.withLock({ $0.flushing == nil ? nil : $0.flushFailure }) { throw failure }
  }

  /// Writes the flushing table to the data file, if there is one, then lets the log forget its commits.
  func writeFlushingTable() {
    let (layer, position) = view.withLock { ($0.flushing, $0.flushingPosition) }
    guard let layer else { return }
    do throws(StorageError) {
      try write(layer, upTo: position)
    } catch {
      view.withLock { $0.flushFailure = error }
      // Also without another write, it is tried again.
      setTimer()
      return
    }
    view.withLock { view in
      view.flushing = nil
      view.flushFailure = nil
    }
    settings.budget.endFlush(ObjectIdentifier(self))
    // If it fails, segments stay that the next opening ignores.
    try? place.log?.release(upTo: position.sequence, keepingSpares: true)
  }

  /// Writes a table in transactions of bounded size, and the position with the last of them. If no writer needs the
  /// room, the flush leaves the processors to other threads.
  ///
  /// A crash in between leaves a part of the table in the data file and the old position. Replaying the commits after
  /// that position then gives the same state, because operations are absolute.
  private func write(_ layer: MemtableLayer, upTo position: LogPosition) throws(StorageError) {
    let mark = LogMark(isOpen: true, position: position.encoded(secret: secret))
    try MemtableFlush.write(
      layer, to: base, mark, operationsMax: settings.flushOperationsMax,
      quietOperationsMax: min(settings.quietFlushOperationsMax, settings.flushOperationsMax),
      report: { keys in flushedKeys.store(keys, ordering: .relaxed) },
      isUrgent: {
        settings.flushesInline || isAwaited.load(ordering: .relaxed) || isFlushLate
      })
  }

  /// Moves everything to the data file, closes its mark, and removes the log. Nothing is written later. Waits for the writer
  /// and for the flush; the caller is neither. Does nothing the second time. `last` is the position of the mark, if it is after
  /// the last commit.
  func close(at last: LogPosition = LogPosition()) throws(StorageError) {
    guard end() else { return }
    guard let log = place.log else { return }
    let view = view.withLock { view in
      if view.position.sequence < last.sequence { view.position = last }
      return view
    }
    if let flushing = view.flushing { try write(flushing, upTo: view.flushingPosition) }
    try write(view.active, upTo: view.position)
    try base.writeMarked { _ throws(StorageError) in
      LogMark(isOpen: false, position: view.position.encoded(secret: secret))
    }
    try log.removeAll()
  }

  /// Ends all work and leaves the data file and the log as a crash would.
  func abandon() { _ = end() }

  /// Ends writes and flushes. Returns `false` if they had ended.
  private func end() -> Bool {
    let isFirst = writerLock.withLock { _ in
      defer { isClosed = true }
      return !isClosed
    }
    guard isFirst else { return false }
    idleTimer.cancel()
    isAwaited.store(true, ordering: .relaxed)
    flusher.sync {}
    settings.budget.remove(ObjectIdentifier(self))
    return true
  }

  func requireOpen() throws(StorageError) {
    guard !isClosed else { throw .notOwner(of: base.path, owner: nil) }
  }

  // MARK: Maintenance

  /// Writes a copy as ``LoggedStore/copy(toFile:)``.
  func copy(toFile path: String) throws(StorageError) {
    try flush()
    var failure: StorageError?
    let copy = {
      do throws(StorageError) { try self.base.copy(toFile: path) } catch { failure = error }
    }
    if settings.flushesInline { copy() } else { flusher.sync(execute: copy) }
    if let failure { throw failure }
  }

  /// Returns the sizes and counts as ``LoggedStore/statistics()``.
  func statistics() throws(StorageError) -> KeyValueStatistics {
    try flush()
    return try base.statistics()
  }
}
