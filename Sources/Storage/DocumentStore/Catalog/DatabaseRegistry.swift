package import Basics
package import DocumentModel
package import KeyValue
import Synchronization

/// The databases that a server serves. It opens each on first use and closes it after a long time without use.
package final class DatabaseRegistry: Sendable {
  /// Opens the engine of a database, or returns `nil` if the server does not serve that database.
  package typealias Opener = @Sendable (DatabaseID) throws(StorageError) -> (any KeyValueStore)?
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
  private let indexes: Indexes
  private let indexObserver: (@Sendable (DatabaseID, [IndexReport]) -> Void)?
  private let editions: Editions
  private let retention: Retention
  private let scratch: ScratchSpace
  /// The time of day for all databases and for the rules evaluated on them.
  package let clock: Clock
  /// The seconds without use after which a database is closed, or `nil` to keep all open.
  private let idleSeconds: Int?
  private let entries = Mutex<[DatabaseID: Entry]>([:])

  /// Creates a registry without open databases.
  ///
  /// Pass `nil` as `idleSeconds` if closing a database would lose its content, as for one that exists only in its
  /// open file. `indexObserver` is called on the writers' threads with reports on background work on indexes. The
  /// queries on all databases share `scratch`.
  package init(
    retention: Retention = Retention(), clock: Clock = .system, idleSeconds: Int?,
    editions: @escaping Editions = { _ in .standard }, indexes: @escaping Indexes = { _ in nil },
    indexObserver: (@Sendable (DatabaseID, [IndexReport]) -> Void)? = nil, scratch: ScratchSpace = .process,
    open: @escaping Opener
  ) {
    self.scratch = scratch
    self.indexes = indexes
    self.indexObserver = indexObserver
    self.retention = retention
    self.clock = clock
    self.idleSeconds = idleSeconds
    self.editions = editions
    self.open = open
  }

  /// Returns a database, opening it if necessary, or `nil` if the server does not serve it.
  ///
  /// Cost: a short lock. Opening takes about as long as opening a file; other calls wait meanwhile.
  /// - Throws: ``StorageError`` if the database cannot be opened.
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
          indexObserver: observer, counters: counters, scratch: scratch)
        database.continueBackgroundWork()
        entries[id] = Entry(database: database, lastUsed: now)
        return .success(database)
      } catch { return .failure(error) }
    }
    return try result.get()
  }

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
        guard var entry = entries[id], entry.lastUsed < limit, entry.database.transactions.count == 0,
          !entry.database.hasExpiringFields
        else { continue }
        // Close under the lock, and only if no other code holds the database: the engine must be closed before it
        // can be opened again.
        entries[id] = nil
        if isKnownUniquelyReferenced(&entry.database) {
          entry.database.drain()
        } else {
          entries[id] = entry
        }
      }
    }
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
