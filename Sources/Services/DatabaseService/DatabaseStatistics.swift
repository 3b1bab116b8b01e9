import Dispatch
package import DocumentModel
package import DocumentStore
package import KeyValue

/// The numbers of documents, index entries and so on in one database, and its size.
package struct DatabaseStatistics: Sendable {
  package let id: DatabaseID
  /// The counted contents.
  package let contents: DatabaseContents
  /// The storage used by the engine.
  package let store: KeyValueStatistics
  /// The state of each declared index.
  package let indexes: [IndexReport]

  /// Counts the contents. Cost: reads every key of the database.
  /// - Throws: ``StorageError`` if a read fails.
  package init(_ id: DatabaseID, _ store: any KeyValueStore) throws(StorageError) {
    self.id = id
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    contents = try DatabaseContents(snapshot)
    self.store = try store.statistics()
    indexes = try IndexReport.all(snapshot)
  }

  /// The names of ``values`` in JSON, and their titles in tables.
  package static let columns: [(name: StaticString, title: String)] = [
    ("documents", "documents"), ("collections", "collections"), ("indexEntries", "index entries"),
    ("history", "before-images"), ("changes", "changes"), ("usedBytes", "used bytes"), ("fileBytes", "file bytes"),
  ]

  /// The counts and sizes, in the order of ``columns``.
  package var values: [Int] {
    [
      contents.documents, contents.collections, contents.indexEntries, contents.history, contents.changes,
      store.usedBytes, store.fileBytes,
    ]
  }
}

extension FirestoreService {
  /// Counts the contents of the open databases on a background thread. `completion` is called once, on any thread.
  package func statistics(
    as administrator: Administrator, completion: @escaping @Sendable (Result<[DatabaseStatistics], Status>) -> Void
  ) {
    let open = openDatabases(as: administrator)
    DispatchQueue.global(qos: .utility).async {
      do {
        completion(.success(try open.map { try DatabaseStatistics($0.id, $0.store) }))
      } catch {
        completion(.failure(Status(error, database: nil)))
      }
    }
  }
}

/// The use of storage by the collections of one database.
package struct DatabaseCollections: Sendable {
  package let id: DatabaseID
  /// The rows, the largest first.
  package let rows: [(name: String, use: CollectionUse)]
  /// The collections beyond the limit of rows.
  package let others: CollectionUse

  /// Counts the collections of a database. Calls `progress` with the number of rows read so far.
  /// - Throws: ``StorageError`` if a read fails.
  package init(
    _ id: DatabaseID, _ store: any KeyValueStore, _ choice: CollectionChoice, progress: (Int) -> Void = { _ in }
  ) throws(StorageError) {
    let report = try CollectionUseReport(store, choice, progress: progress)
    (self.id, rows, others) = (id, report.rows, report.others)
  }

  /// Creates a value from numbers.
  package init(id: DatabaseID, rows: [(name: String, use: CollectionUse)], others: CollectionUse) {
    (self.id, self.rows, self.others) = (id, rows, others)
  }
}

extension FirestoreService {
  /// Counts the use of storage by the collections of the open databases, or of one of them, on a background thread.
  /// `completion` is called once, on any thread.
  package func collectionUse(
    _ choice: CollectionChoice, in database: DatabaseID?, as administrator: Administrator,
    completion: @escaping @Sendable (Result<[DatabaseCollections], Status>) -> Void
  ) {
    let open = openDatabases(as: administrator).filter { database == nil || $0.id == database }
    DispatchQueue.global(qos: .utility).async {
      do {
        completion(.success(try open.map { try DatabaseCollections($0.id, $0.store, choice) }))
      } catch {
        completion(.failure(Status(error, database: nil)))
      }
    }
  }
}

/// The size of a database and its limit.
package struct DatabaseUse: Sendable {
  package let id: DatabaseID
  /// The number of bytes in use in the database file.
  package let usedBytes: Int
  /// The length of the database file, in bytes.
  package let fileBytes: Int
  /// The maximum length of the file, in bytes.
  package let limitBytes: Int
  /// The number of open snapshots in all processes.
  package let readers: Int
}

extension FirestoreService {
  /// Returns the sizes of the open databases, the first `databasesMax` by name. Cost: a few page reads for each.
  package func databaseUse(databasesMax: Int, as administrator: Administrator) -> [DatabaseUse] {
    openDatabases(as: administrator).prefix(databasesMax).compactMap { database in
      guard let store = try? database.store.fileStatistics() else { return nil }
      return DatabaseUse(
        id: database.id, usedBytes: store.usedBytes, fileBytes: store.fileBytes, limitBytes: store.limitBytes,
        readers: store.readers)
    }
  }

  /// Returns the number of open databases and the number of open transactions in them.
  package func openCounts(as administrator: Administrator) -> (databases: Int, transactions: Int) {
    let open = openDatabases(as: administrator)
    return (open.count, open.reduce(0) { $0 + $1.transactions.count })
  }

  /// Returns the counts of commits.
  package func commitCounts(as administrator: Administrator) -> CommitCounts { CommitCounts(commitCounters) }
}

/// The counts of commits to all databases since the start.
package struct CommitCounts: Sendable {
  /// The number of commits by outcome: `ok`, `aborted`, `denied` or `failed`.
  package let outcomes: [(name: String, count: Int)]
  /// The number of writes in commits that succeeded.
  package let writes: Int
  /// The number of commits in each class of `DurationClasses`.
  package let durations: [Int]
  /// The total duration of all commits, in microseconds.
  package let microseconds: Int
  /// The number of groups in each size class: one for each of ``groupBounds``, then one for larger groups.
  package let groups: [Int]
  /// The upper bounds of the size classes.
  package static var groupBounds: [Int] { CommitCounters.groupBounds }

  init(_ counters: CommitCounters) {
    outcomes = CommitCounters.Outcome.allCases.map { ("\($0)", counters[$0]) }
    writes = counters.writes
    durations = counters.durations
    microseconds = counters.microseconds
    groups = counters.groups
  }
}
