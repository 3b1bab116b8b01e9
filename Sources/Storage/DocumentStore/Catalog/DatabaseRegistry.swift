package import Basics
package import DocumentModel
package import KeyValue
import Synchronization

/// The databases that a server serves. It opens each on first use and closes it after a long time without use.
package final class DatabaseRegistry: Sendable {
  /// Opens the engine of a database, or returns `nil` if the server does not serve that database.
  package typealias Opener = @Sendable (DatabaseID) throws(StorageError) -> (any KeyValueStore)?
  /// Whether writes create the databases that they name.
  package var createsDatabases: Bool { blanks != nil }

  /// Returns a database if it is open or stored, otherwise `nil`. Without blank databases, this is the same as
  /// ``database(_:creates:)``.
  /// - Throws: ``StorageError`` if the database cannot be opened.
  package func existing(_ id: DatabaseID) throws(StorageError) -> DocumentDatabase? {
    if let blanks, entries.withLock({ $0[id] == nil }), !blanks.isStored(id) { return nil }
    return try database(id)
  }

  /// Closes databases until there is room for another one: those that nobody uses, and that are empty or can be opened
  /// again. Cost at the limit: a snapshot of each database, at most once a second after a failure.
  /// - Throws: ``StorageError/tooManyDatabases(limit:)`` if too few can be closed.
  private func makeRoom(
    in entries: inout [DatabaseID: Entry], _ openMax: Int, _ now: Int64
  ) throws(StorageError) {
    guard entries.count >= openMax else { return }
    guard fullUntil.withLock({ $0 <= now }) else { throw .tooManyDatabases(limit: openMax) }
    // The pristine ones first, then those that were idle longest.
    let pristine = entries.filter { $0.value.database.isPristine }.map(\.key)
    for id in pristine { close(id, in: &entries) }
    if idleSeconds != nil, entries.count >= openMax {
      for (id, _) in entries.map({ ($0.key, $0.value.lastUsed) }).sorted(by: { $0.1 < $1.1 }) {
        if close(id, in: &entries) { break }
      }
    }
    guard entries.count >= openMax else { return }
    fullUntil.withLock { $0 = now + Self.fullMicroseconds }
    throw .tooManyDatabases(limit: openMax)
  }

  /// Returns the edition of a database, whether it is served or not.
  package typealias Editions = @Sendable (DatabaseID) -> Edition

  private struct Entry {
    var database: DocumentDatabase
    var lastUsed: Int64
  }

  /// Returns the index configuration of a database, or `nil` to keep its stored one.
  package typealias Indexes = @Sendable (DatabaseID) -> IndexConfiguration?

  /// The counts of commits to all databases, including those closed since.
  package let counters = CommitCounters()

  private let open: Opener
  private let queues: WorkQueues
  private let adopts: Bool
  private let freshness: (any FreshnessGate)?
  private let floor: Int64?
  private let indexes: Indexes
  private let indexObserver: (@Sendable (DatabaseID, [IndexReport]) -> Void)?
  private let editions: Editions
  private let retention: Retention
  private let scratch: ScratchSpace
  /// The memory of unfinished commits.
  private let commitMemory: MemoryShare
  /// The time of day for all databases and for the rules evaluated on them.
  package let clock: Clock
  /// The seconds without use after which a database is closed, or `nil` to keep all open.
  private let idleSeconds: Int?
  /// The databases that do not exist yet, or `nil` if every request creates the database that it names.
  private let blanks: BlankDatabases?
  private let entries = Mutex<[DatabaseID: Entry]>([:])
  /// The bytes of documents that the databases may have together.
  private let quota: Quota
  /// The bytes of the documents of each database that was opened.
  private let uses = Mutex<[DatabaseID: DocumentUse]>([:])
  /// The time of the next attempt to make room for another database, in microseconds since 1970.
  private let fullUntil = Mutex<Int64>(.min)
  /// The time after a failed attempt to make room before the next one, in microseconds.
  private static let fullMicroseconds: Int64 = 1_000_000

  /// Creates a registry without open databases.
  ///
  /// Pass `nil` as `idleSeconds` if closing a database would lose its content, as for one that exists only in its
  /// open file. With `blanks`, reads do not create databases, and the number of open ones is limited. `indexObserver`
  /// is called on the writers' threads with reports on background work on indexes. The queries on all databases share
  /// `scratch`, their documents share `quota`, and their unfinished commits share `commitMemory`, by default with all
  /// others of the process. The databases and their listeners work on `queues`. If `adopts` is `false`, they can only be
  /// read until ``DocumentDatabase/adopt(indexes:origin:floor:)`` is called, and `freshness` waits for the commits of the process that
  /// writes to them. The versions of their commits are above `floor`, in
  /// microseconds since 1970.
  package init(
    retention: Retention = Retention(), clock: Clock = .system, idleSeconds: Int?,
    editions: @escaping Editions = { _ in .standard }, indexes: @escaping Indexes = { _ in nil },
    indexObserver: (@Sendable (DatabaseID, [IndexReport]) -> Void)? = nil, scratch: ScratchSpace = .process,
    blanks: BlankDatabases? = nil, quota: Quota = Quota(.documents, of: "demo"), commitMemory: MemoryShare? = nil,
    queues: WorkQueues = .threads, adopts: Bool = true, freshness: (any FreshnessGate)? = nil, floor: Int64? = nil,
    open: @escaping Opener
  ) {
    self.commitMemory = commitMemory ?? CommitQueue.processMemory
    self.blanks = blanks
    self.quota = quota
    self.queues = queues
    self.adopts = adopts
    self.freshness = freshness
    self.floor = floor
    self.scratch = scratch
    self.indexes = indexes
    self.indexObserver = indexObserver
    self.retention = retention
    self.clock = clock
    self.idleSeconds = idleSeconds
    self.editions = editions
    self.open = open
  }

  /// Returns a database, opening it if necessary, or `nil` if the server does not serve it. If it does not exist and
  /// `creates` is `false`, the result may be an empty database that can only be read; see ``BlankDatabases``.
  ///
  /// Cost: a short lock. Opening takes about as long as opening a file; other calls wait meanwhile.
  /// - Throws: ``StorageError`` if the database cannot be opened; ``StorageError/tooManyDatabases(limit:)`` if too many
  ///   are open.
  package func database(_ id: DatabaseID, creates: Bool = true) throws(StorageError) -> DocumentDatabase? {
    let now = clock.now()
    let result = entries.withLock { entries -> Result<DocumentDatabase?, StorageError> in
      if let index = entries.index(forKey: id) {
        entries.values[index].lastUsed = now
        return .success(entries.values[index].database)
      }
      do throws(StorageError) {
        if let blanks {
          if !creates, !blanks.isStored(id) {
            let settings = DatabaseSettings(retention: retention, clock: clock, scratch: scratch)
            return .success(try blanks.database(id, editions(id), indexes: indexes(id), settings))
          }
          try makeRoom(in: &entries, blanks.openMax, now)
        }
        guard let store = try open(id) else { return .success(nil) }
        var observer: IndexObserver?
        if let indexObserver { observer = { reports in indexObserver(id, reports) } }
        let database = try DocumentDatabase(
          id: id, edition: editions(id), store: store, retention: retention, clock: clock, indexObserver: observer,
          counters: counters, scratch: scratch, use: use(of: id), commitMemory: commitMemory, queues: queues,
          freshness: freshness)
        if adopts { try database.adopt(indexes: indexes(id), origin: blanks?.origin, floor: floor) }
        database.continueBackgroundWork()
        entries[id] = Entry(database: database, lastUsed: now)
        return .success(database)
      } catch { return .failure(error) }
    }
    return try result.get()
  }

  /// Checks that there is room for a commit, so that a large request need not be decoded in vain.
  /// - Parameter bytes: the size of the encoded request. The commit itself may take half as much.
  /// - Throws: ``CommitError/overloaded(waitingBytesMax:)`` if too many commits are unfinished.
  package func checkRoom(forCommitOf bytes: Int) throws(CommitError) {
    guard bytes > DocumentDatabase.plannedAtOnceBytesMax else { return }
    guard commitMemory.usedBytes + bytes / 2 <= commitMemory.bytesMax else {
      throw .overloaded(waitingBytesMax: commitMemory.bytesMax)
    }
  }

  private func use(of id: DatabaseID) -> DocumentUse {
    uses.withLock { uses in
      // Empty databases that were closed add nothing to the quota.
      if uses[id] == nil, uses.count >= Self.usesMax { uses = uses.filter { $0.value.bytes > 0 } }
      let use = uses[id] ?? DocumentUse(quota)
      uses[id] = use
      return use
    }
  }

  /// The databases after which those without documents are forgotten.
  private static let usesMax = 1024

  /// Returns the edition of a database, whether it is served or not.
  package func edition(of id: DatabaseID) -> Edition { editions(id) }

  /// The databases that are open now, sorted by name.
  package var openDatabases: [DocumentDatabase] {
    entries.withLock { $0.values.map(\.database) }.sorted { $0.id.name < $1.id.name }
  }

  /// Trims histories and logs, and closes databases that have been idle. Call it about twice a minute.
  package func maintain() {
    // Close first, because trimming holds a reference to its database for a while.
    closeIdle()
    for database in openDatabases { database.maintain() }
  }

  private func closeIdle() {
    guard let idleSeconds else { return }
    let limit = clock.now() - Int64(idleSeconds) * 1_000_000
    entries.withLock { entries in
      for id in Array(entries.keys) {
        guard let lastUsed = entries[id]?.lastUsed, lastUsed < limit else { continue }
        close(id, in: &entries)
      }
    }
  }

  /// Closes a database, unless other code uses it, a transaction is open, or its documents expire. Returns whether it
  /// is closed.
  ///
  /// Call it under the lock: the engine must be closed before it can be opened again.
  @discardableResult
  private func close(_ id: DatabaseID, in entries: inout [DatabaseID: Entry]) -> Bool {
    guard var entry = entries[id], entry.database.transactions.count == 0, !entry.database.hasExpiringFields
    else { return false }
    entries[id] = nil
    guard isKnownUniquelyReferenced(&entry.database) else {
      entries[id] = entry
      return false
    }
    entry.database.drain()
    return true
  }

  /// Releases every database after its last commit. A database that other code still holds closes when it is
  /// released there.
  package func closeAll() {
    let open = entries.withLock { entries in
      defer { entries.removeAll() }
      return entries.values.map(\.database)
    }
    for database in open { database.drain() }
  }
}
