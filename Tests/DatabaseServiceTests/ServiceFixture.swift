import Basics
import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// A service with databases in memory, a clock that the test moves, and calls that wait for their results.
///
/// All tests of this target name their callers and create their service here.
struct ServiceFixture: Sendable {
  static let admin = Caller.admin
  static let ann = Caller.user(RulesAuth(uid: "ann", claims: MapValue([])))
  static let ben = Caller.user(RulesAuth(uid: "ben", claims: MapValue([])))
  static let stranger = Caller.user(nil)

  /// Returns Ann with a token that expires or can be revoked.
  static func ann(expiry: Int64? = nil, token: RevocableToken? = nil) -> Caller {
    .user(RulesAuth(uid: "ann", claims: MapValue([]), expiry: expiry, revocationCheck: token))
  }

  /// Each user may read and write their own notes, and list at most two of the public documents.
  static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /notes/{id} {
          allow read: if request.auth != null && resource.data.owner == request.auth.uid;
          allow create: if request.resource.data.owner == request.auth.uid;
          allow update, delete: if resource.data.owner == request.auth.uid;
        }
        match /open/{id} { allow get; allow list: if request.query.limit <= 2; }
        match /closed/{id} { allow write: if get(/databases/$(database)/documents/gates/g).data.open == true; }
      }
    }
    """

  let time = SteppedTime()
  let databases: DatabaseRegistry
  let rules = RulesRegistry()
  let service: FirestoreService
  let id: DatabaseID

  /// Creates a service that serves the projects `p` and `q`. Its queries share no memory with those of other tests.
  /// - Parameters:
  ///   - rules: the rules of all databases.
  ///   - indexObserver: called on the writer's thread while indexes are built.
  init(
    rules text: String? = nil, mode: ServerMode = .emulator, retention: Retention = Retention(),
    requiresIndexes: Bool = false,
    indexObserver: (@Sendable (DatabaseID, [IndexReport]) -> Void)? = nil
  ) throws {
    id = try #require(DatabaseID(project: "p"))
    let stores = [id, try #require(DatabaseID(project: "q"))]
    let open = try Dictionary(
      uniqueKeysWithValues: stores.map { ($0, try LMDBStore.open(.inMemory(mapBytes: 1 << 30))) })
    databases = DatabaseRegistry(
      retention: retention, clock: Clock { [time] in time.now }, idleSeconds: nil, indexObserver: indexObserver,
      scratch: ScratchSpace(ScratchBudget(ScratchBudget.Limits()))
    ) { (id) throws(StorageError) in open[id] }
    service = FirestoreService(
      databases: databases, mode: mode, rules: rules, requiresIndexes: requiresIndexes)
    if let text { rules.set(try Ruleset(compiling: text), forDatabase: nil) }
  }

  /// The database, for what no method of the service shows.
  var database: DocumentDatabase { get throws { try #require(try databases.database(id)) } }

  // MARK: Calls

  func get(
    _ path: String, as caller: Caller = admin, _ consistency: ConsistencySelector = .latest
  ) throws -> StoredFields {
    try service.getDocument(document(path), in: id, as: caller, consistency: consistency) { stored, _ in
      try StoredFields(stored)
    }
  }

  @discardableResult
  func commit(
    _ writes: Write..., in transaction: TransactionID? = nil, as caller: Caller = admin
  ) throws -> CommitOutcome {
    let result: Result<CommitOutcome, Status> = try wait { done in
      try service.commit(writes, transaction: transaction, in: id, as: caller, completion: done)
    }
    return try result.get()
  }

  func begin(_ mode: TransactionMode = .readWrite(retrying: nil), as caller: Caller = admin) throws -> TransactionID {
    try service.beginTransaction(mode, in: id, as: caller)
  }

  /// Authorizes a batch and returns its response.
  func batchGet(_ request: BatchGetDocumentsRequest, as caller: Caller = admin) throws -> BatchGetDocumentsCursor {
    let authorization = try service.batchGetDocuments(request, in: id, as: caller)
    while true {
      if let cursor = try authorization.slice() { return cursor }
    }
  }

  /// Returns the paths of a query's results.
  func paths(
    of query: Query, as caller: Caller = admin, _ consistency: ConsistencySelector = .latest
  ) throws -> [String] {
    var request = RunQueryRequest(query)
    request.consistency = consistency
    return try paths(of: service.runQuery(request, in: id, as: caller))
  }

  func paths(of cursor: RunQueryCursor) throws -> [String] {
    var paths: [String] = []
    while !cursor.isAtEnd {
      try cursor.slice { key, _ in
        paths.append(key.path.text)
        return true
      }
    }
    return paths
  }

  /// Runs all slices of an aggregation.
  func aggregate(_ request: RunAggregationQueryRequest, as caller: Caller = admin) throws -> AggregationOutcome {
    let cursor = try service.runAggregationQuery(request, in: id, as: caller)
    while true {
      if let outcome = try cursor.slice() { return outcome }
    }
  }

  /// Reads all slices of a page of a listing. Returns the paths, and the token of the next page.
  func page(_ request: ListDocumentsRequest, as caller: Caller = admin) throws -> (paths: [String], token: [UInt8]) {
    let cursor = try service.listDocuments(request, in: id, as: caller)
    var paths: [String] = []
    while true {
      let token = try cursor.slice { paths.append($0.key.path.text + ($0.stored == nil ? " (missing)" : "")) }
      if let token { return (paths, token) }
    }
  }

  /// Runs all slices of a partition query.
  func partitions(_ request: PartitionQueryRequest, as caller: Caller = admin) throws -> PartitionQueryResponse {
    let cursor = try service.partitionQuery(request, in: id, as: caller)
    while true {
      if let response = try cursor.slice() { return response }
    }
  }

  func clear(as caller: Caller = admin) throws {
    let result: Result<Void, Status> = try wait { done in
      try service.clear(id, as: service.administrator(caller), completion: done)
    }
    try result.get()
  }

  /// Removes history and log entries that are older than they are kept.
  func trim() throws {
    for _ in 0..<3 {
      databases.maintain()
      try commit()
    }
  }

  // MARK: Errors

  /// The status that a client receives for the error of `body`, or `nil` if it succeeds.
  func failure(_ body: () throws -> Void) -> Status? {
    do { try body() } catch { return Status(error, database: id) }
    return nil
  }

  /// Checks that rules deny a request of each of the callers, and that an administrator's succeeds.
  func expectDenied(to callers: [Caller], _ request: (Caller) throws -> Void) {
    for caller in callers { #expect(failure { try request(caller) }?.code == .permissionDenied, "\(caller)") }
    #expect(failure { try request(Self.admin) } == nil)
  }
}

/// The fields and times of a document, copied out of its snapshot.
struct StoredFields: Equatable {
  var fields: MapValue
  var createTime: Int64
  var updateTime: Int64

  init(_ stored: StoredDocument) throws {
    fields = try EncodedFields(canonical: Array(stored.fields)).decoded()
    createTime = stored.createVersion
    updateTime = stored.updateVersion
  }

  subscript(name: String) -> Value? { fields[name] }
}

/// A token that is valid until a test sets the reason for its revocation.
final class RevocableToken: TokenRevocationCheck {
  let reason = Observed<String?>(nil)
  var revocationReason: String? { reason.value }
}
