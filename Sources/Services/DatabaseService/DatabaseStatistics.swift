import Dispatch
package import DocumentModel
package import DocumentStore
package import KeyValue

/// What one database holds, and in how many bytes.
package struct DatabaseStatistics: Sendable {
  /// The database.
  package let id: DatabaseID
  /// What it holds.
  package let contents: DatabaseContents
  /// What its engine uses.
  package let store: KeyValueStatistics
  /// How far its declared indexes are.
  package let indexes: [IndexReport]

  /// Counts. Cost: reads every key of the database.
  package init(_ id: DatabaseID, _ store: any KeyValueStore) throws(StorageError) {
    self.id = id
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    contents = try DatabaseContents(snapshot)
    self.store = try store.statistics()
    indexes = try IndexReport.all(snapshot)
  }

  /// The numbers of ``values``: how JSON names them, and how people see them.
  package static let columns: [(name: StaticString, title: String)] = [
    ("documents", "documents"), ("collections", "collections"), ("indexEntries", "index entries"),
    ("history", "before-images"), ("changes", "changes"), ("usedBytes", "used bytes"), ("fileBytes", "file bytes"),
  ]

  /// The numbers, in the order of ``columns``.
  package var values: [Int] {
    [
      contents.documents, contents.collections, contents.indexEntries, contents.history, contents.changes,
      store.usedBytes, store.fileBytes,
    ]
  }
}

extension FirestoreService {
  /// Counts what the open databases hold, away from the caller's thread; `completion` is called once, on any thread.
  /// - Throws: `PERMISSION_DENIED` where nobody is admitted.
  package func statistics(
    as caller: Caller, completion: @escaping @Sendable (Result<[DatabaseStatistics], Status>) -> Void
  ) throws {
    try admit(caller)
    let open = databases.openDatabases
    DispatchQueue.global(qos: .utility).async {
      do {
        completion(.success(try open.map { try DatabaseStatistics($0.id, $0.store) }))
      } catch {
        completion(.failure(Status(error, database: nil)))
      }
    }
  }
}

/// How much room a database takes and has.
package struct DatabaseUse: Sendable {
  /// The database.
  package let id: DatabaseID
  /// Bytes of its file that are in use.
  package let usedBytes: Int
  /// Length of its file.
  package let fileBytes: Int
  /// What the file may grow to.
  package let limitBytes: Int
  /// Snapshots open now, in all processes.
  package let readers: Int
}

extension FirestoreService {
  /// How much room the open databases take, the first `databasesMax` by name. Cost: a few page reads for each.
  package func databaseUse(databasesMax: Int) -> [DatabaseUse] {
    databases.openDatabases.prefix(databasesMax).compactMap { database in
      guard let store = try? database.store.statistics() else { return nil }
      return DatabaseUse(
        id: database.id, usedBytes: store.usedBytes, fileBytes: store.fileBytes, limitBytes: store.limitBytes,
        readers: store.readers)
    }
  }
}
