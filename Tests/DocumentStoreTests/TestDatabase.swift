import Basics
import Dispatch
import DocumentModel
import KeyEncoding
import KeyValue
import LMDBEngine
import Matching
import Synchronization
import Testing
import TestSupport
import WireFormat
@testable import DocumentStore

/// An in-memory database with a clock controlled by the test and with synchronous calls.
struct TestDatabase {
  let time: SteppedTime
  let store: any KeyValueStore
  let database: DocumentDatabase

  init(
    _ store: (any KeyValueStore)? = nil, time: SteppedTime = SteppedTime(), retention: Retention = Retention(),
    indexes: IndexConfiguration? = nil, indexBatch: IndexBatch = IndexBatch(), queues: WorkQueues = .threads
  ) throws {
    self.time = time
    self.store = try store ?? LMDBStore.open(.inMemory(mapBytes: 1 << 30))
    let id = try #require(DatabaseID(project: "p"))
    database = try DocumentDatabase(
      id: id, store: self.store, retention: retention, clock: Clock { time.now }, indexBatch: indexBatch,
      queues: queues)
    try database.adopt(indexes: indexes)
  }

  /// Opens the same store again, as after a restart.
  func reopened(indexes: IndexConfiguration? = nil) throws -> TestDatabase {
    try TestDatabase(store, time: time, indexes: indexes, indexBatch: database.background.batch)
  }

  /// Runs one batch of the background work on indexes. Returns whether more may be due.
  @discardableResult
  func advanceIndexes() throws -> Bool {
    var hasMore = false
    try database.queue.write { (writer, transaction) throws(StorageError) in
      hasMore = try IndexBuilder.advance(database.background.batch, &writer, transaction)
    }
    return hasMore
  }

  /// Runs all background work on indexes.
  func finishIndexes() throws {
    while try advanceIndexes() {}
  }

  func catalog() throws -> IndexCatalog { try database.read { reader in try database.indexes(&reader) } }

  @discardableResult
  func commit(_ request: CommitRequest) throws(CommitError) -> CommitOutcome {
    let result = wait { done in database.commit(request, completion: done) }
    return try result.get()
  }

  @discardableResult
  func commit(_ writes: Write...) throws(CommitError) -> CommitOutcome { try commit(CommitRequest(writes)) }

  func commitEach(_ writes: [Write]) -> [Result<CommitOutcome, CommitError>] {
    wait { done in database.commitEach(writes, completion: done) }
  }

  func clear() throws {
    try wait { done in database.clear(completion: done) }.get()
  }

  /// Runs maintenance until nothing is left to trim.
  func maintain() throws {
    for _ in 0..<8 {
      database.maintain()
      // An empty commit passes through the same queue, so it completes after the trimming.
      try commit(CommitRequest([]))
    }
  }

  func get(_ path: String) throws -> Stored? {
    try database.read { reader in try reader.document(document(path)).map { try Stored($0) } }
  }

  func get(_ path: String, at version: Int64) throws -> Stored? {
    let key = document(path)
    return try database.read(at: Timestamp(uncheckedMicroseconds: version)) { reader, version in
      guard let row = try reader.collection(key.collection) else { return nil }
      guard let version else { return try reader.document(key.id, in: row.number).map { try Stored($0) } }
      return try reader.document(key.id, in: row.number, at: version).map { try Stored($0) }
    }
  }

  /// Begins a transaction at the newest version, as BeginTransaction does.
  func begin(_ mode: TransactionTable.Mode = .readWrite) throws -> TransactionID {
    try database.read { reader in
      database.transactions.begin(mode, readVersion: try reader.lastVersion(), by: .administrator)
    }
  }

  /// Reads in a transaction, as BatchGetDocuments does.
  @discardableResult
  func get(_ path: String, in transaction: TransactionID) throws -> Stored? {
    let (_, version) = try database.transactions.use(transaction, by: .administrator)
    let stored = try get(path, at: version)
    database.transactions.noteReads([(document(path), stored?.update ?? 0)], in: transaction)
    return stored
  }

  /// Notes that a transaction listed a collection, as ListDocuments does at its end.
  func noteListing(of path: String, after: String? = nil, showMissing: Bool = false, in transaction: TransactionID) {
    database.transactions.note(
      QueryRange(
        listing: .collection(collection(path)), orders: [Order(field("__name__"))],
        from: after.map { SortBound.after(collection(path).appending($0)) },
        includesMissing: showMissing, in: database.id),
      in: transaction)
  }

  @discardableResult
  func commit(_ transaction: TransactionID, _ writes: Write...) throws -> CommitOutcome {
    try commit(
      CommitRequest(
        writes, after: try database.transactions.close(transaction, forWrites: !writes.isEmpty, by: .administrator)))
  }

  func meta(_ name: MetaKey) throws -> Int64 {
    try database.read { reader in Int64(bitPattern: try reader.meta(name)) }
  }
}

/// A document copied out of its snapshot.
struct Stored: Equatable, CustomStringConvertible {
  var fields: MapValue
  var create: Int64
  var update: Int64

  init(_ document: StoredDocument) throws {
    fields = try EncodedFields(canonical: Array(document.fields)).decoded()
    create = document.createVersion
    update = document.updateVersion
  }

  var description: String { "\(fields.entries) created \(create) updated \(update)" }
}
