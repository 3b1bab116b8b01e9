package import DocumentModel
package import KeyValue
import Synchronization

/// The databases a server serves: opened on first use, kept open, closed when long unused.
package final class DatabaseRegistry: Sendable {
  /// Opens the engine of a database, or returns `nil` for a database that is not served here.
  package typealias Opener = @Sendable (DatabaseID) throws(StorageError) -> (any KeyValueStore)?
  /// Says which edition the database of a name has, whether it is served or not.
  package typealias Editions = @Sendable (DatabaseID) -> Edition

  private struct Entry {
    var database: DocumentDatabase
    var lastUsed: Int64
  }

  /// The indexes a database is to have, or `nil` for those it has.
  package typealias Indexes = @Sendable (DatabaseID) -> IndexConfiguration?

  /// What the writers of all its databases did, also of those that were closed since.
  package let counters = CommitCounters()

  private let open: Opener
  private let indexes: Indexes
  private let indexObserver: (@Sendable (DatabaseID, [IndexReport]) -> Void)?
  private let editions: Editions
  private let retention: Retention
  /// The time of day for all its databases, and for the rules that guard them.
  package let clock: Clock
  /// Seconds without use after which a database is closed, or `nil` to keep all open.
  private let idleSeconds: Int?
  private let entries = Mutex<[DatabaseID: Entry]>([:])

  /// Creates a registry. A database whose content lives only in its open file must never be closed: pass no
  /// `idleSeconds` then.
  ///
  /// `indexObserver` is told about background work on indexes, on the writers' threads.
  package init(
    retention: Retention = Retention(), clock: Clock = .system, idleSeconds: Int?,
    editions: @escaping Editions = { _ in .standard }, indexes: @escaping Indexes = { _ in nil },
    indexObserver: (@Sendable (DatabaseID, [IndexReport]) -> Void)? = nil, open: @escaping Opener
  ) {
    self.indexes = indexes
    self.indexObserver = indexObserver
    self.retention = retention
    self.clock = clock
    self.idleSeconds = idleSeconds
    self.editions = editions
    self.open = open
  }

  /// The database of that name, opened now if need be, or `nil` where it is not served.
  ///
  /// Cost: a short lock. Opening takes about as long as opening a file, during which others wait for theirs.
  package func database(_ id: DatabaseID) throws(StorageError) -> DocumentDatabase? {
    let now = clock.now()
    let result = entries.withLock { entries -> Result<DocumentDatabase?, StorageError> in
      if let index = entries.index(forKey: id) {
        entries.values[index].lastUsed = now
        return .success(entries.values[index].database)
      }
      do throws(StorageError) {
        guard let store = try open(id) else { return .success(nil) }
        var observer: IndexObserver?
        if let indexObserver { observer = { reports in indexObserver(id, reports) } }
        let database = try DocumentDatabase(
          id: id, edition: editions(id), store: store, retention: retention, clock: clock, indexes: indexes(id),
          indexObserver: observer, counters: counters)
        database.continueBackgroundWork()
        entries[id] = Entry(database: database, lastUsed: now)
        return .success(database)
      } catch { return .failure(error) }
    }
    return try result.get()
  }

  /// The edition of the database of that name, whether it is served or not.
  package func edition(of id: DatabaseID) -> Edition { editions(id) }

  /// The databases that are open now, by name.
  package var openDatabases: [DocumentDatabase] {
    entries.withLock { $0.values.map(\.database) }.sorted { $0.id.name < $1.id.name }
  }

  /// Trims histories and logs, and closes what was not used for long. Call it about twice a minute.
  package func maintain() {
    // First, because trimming holds on to its database for a while.
    closeIdle()
    for database in openDatabases { database.maintain() }
  }

  private func closeIdle() {
    guard let idleSeconds else { return }
    let limit = clock.now() - Int64(idleSeconds) * 1_000_000
    entries.withLock { entries in
      for id in Array(entries.keys) {
        guard var entry = entries[id], entry.lastUsed < limit, entry.database.transactions.count == 0,
          !entry.database.hasExpiringFields
        else { continue }
        // Closing happens here, under the lock, and only when nobody else holds the database: the engine must be
        // closed before it can be opened again.
        entries[id] = nil
        if isKnownUniquelyReferenced(&entry.database) {
          entry.database.drain()
        } else {
          entries[id] = entry
        }
      }
    }
  }

  /// Lets go of every database, after its last commit; one that somebody still holds closes when they let go too.
  package func closeAll() {
    let open = entries.withLock { entries in
      defer { entries.removeAll() }
      return entries.values.map(\.database)
    }
    for database in open { database.drain() }
  }
}
