import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import QueryEngine
import TestSupport
import WireFormat

/// A service with one in-memory database, a clock controlled by the test, and synchronous calls.
///
/// A document is identified by its path and update time, so a document that was changed and changed back counts as
/// changed.
struct SimulatedService: Sendable {
  struct Row: Hashable, CustomStringConvertible {
    var path: ResourcePath
    var update: Int64
    var description: String { "\(path)@\(update)" }
  }

  let time = SteppedTime()
  let databases: DatabaseRegistry
  let rules = RulesRegistry()
  let service: FirestoreService
  let id: DatabaseID

  let store: any KeyValueStore

  /// Creates a service whose database has a commit log or not, and is adopted or can only be read.
  init(
    mode: ServerMode = .emulator, usesLog: Bool = false, adopts: Bool = true, freshness: (any FreshnessGate)? = nil,
    store: (any KeyValueStore)? = nil
  ) throws {
    guard let id = DatabaseID(project: "p") else { throw Difference("no id") }
    self.id = id
    let store: any KeyValueStore =
      if let store { store } else if usesLog { try LoggedMemory.open() } else {
        try LMDBStore.open(.inMemory(mapBytes: 1 << 30))
      }
    self.store = store
    databases = DatabaseRegistry(
      clock: Clock { [time] in time.now }, idleSeconds: nil, adopts: adopts, freshness: freshness
    ) { (_) throws(StorageError) in
      store
    }
    service = FirestoreService(databases: databases, mode: mode, rules: rules)
  }

  /// Creates a service for the databases of a registry, which has its own clock.
  init(databases: DatabaseRegistry, store: any KeyValueStore) throws {
    guard let id = DatabaseID(project: "p") else { throw Difference("no id") }
    (self.id, self.databases, self.store) = (id, databases, store)
    service = FirestoreService(databases: databases, mode: .emulator, rules: rules)
  }

  func result(of writes: [Write], transaction: TransactionID?) throws -> Result<CommitOutcome, Status> {
    do {
      return try wait { done in
        try service.commit(writes, transaction: transaction, in: id, as: .admin, completion: done)
      }
    } catch { return .failure(Status(error, database: id)) }
  }

  @discardableResult
  func commit(_ writes: [Write]) throws -> Int64 {
    try result(of: writes, transaction: nil).get().version.microseconds
  }

  func lastVersion() throws -> Int64 {
    let database = try databases.database(id)
    return try database?.read { try $0.lastVersion() } ?? 0
  }

  func results(of query: Query, _ consistency: ConsistencySelector, countMax: Int = .max) throws -> [Row] {
    var request = RunQueryRequest(query)
    request.consistency = consistency
    let cursor = try service.runQuery(request, in: id, as: .admin)
    var rows: [Row] = []
    while rows.count < countMax, !cursor.isAtEnd {
      try cursor.slice { key, document in
        rows.append(Row(path: key.path, update: document.updateVersion))
        return rows.count < countMax
      }
    }
    return rows
  }

  func aggregate(_ aggregations: [Aggregation], _ query: Query, _ consistency: ConsistencySelector) throws -> [Value] {
    var request = RunAggregationQueryRequest(query, aggregations)
    request.consistency = consistency
    return try service.numbers(request, in: id).values.map(\.value)
  }

  /// Returns the update time of a document, or 0 if it does not exist.
  func updateTime(of key: DocumentKey, _ consistency: ConsistencySelector) throws -> Int64 {
    do {
      return try service.getDocument(key, in: id, as: .admin, consistency: consistency) { document, _ in
        document.updateVersion
      }
    } catch let status as Status where status.code == .notFound { return 0 }
  }
}

extension FirestoreService {
  /// Deletes all data of a database.
  func clear(_ id: DatabaseID, completion: @escaping @Sendable (Result<Void, Status>) -> Void) throws {
    try clear(id, as: administrator(.admin), completion: completion)
  }

  /// Runs all slices of an aggregation.
  func numbers(_ request: RunAggregationQueryRequest, in id: DatabaseID) throws -> AggregationOutcome {
    let cursor = try runAggregationQuery(request, in: id, as: .admin)
    while true {
      if let outcome = try cursor.slice() { return outcome }
    }
  }

  /// Reads all slices of a page. Returns the token of the next page.
  func listPage(
    _ request: ListDocumentsRequest, in id: DatabaseID, found: (FoundDocument) throws -> Void
  ) throws -> [UInt8] {
    let cursor = try listDocuments(request, in: id, as: .admin)
    while true {
      if let token = try cursor.slice(found) { return token }
    }
  }
}
