import Basics
import DocumentModel
import DocumentStore
import Matching
import PipelineEngine
import QueryEngine
import RulesEngine
import WireFormat

/// A database as one caller may use it.
///
/// Only this file can use the database itself. It reads documents on a ``GuardedSnapshot``, whose functions require a
/// grant, and only the functions of this type make grants. So a read that is not authorized does not compile.
package struct DatabaseAccess: Sendable {
  private let database: DocumentDatabase
  let access: Access

  init(_ database: DocumentDatabase, _ access: Access) {
    self.database = database
    self.access = access
  }

  /// A random number that identifies the content's lineage; see ``DocumentStore/DocumentDatabase/incarnation``.
  package var incarnation: UInt64 { database.incarnation }
  var id: DatabaseID { database.id }
  var edition: Edition { database.edition }
  var clock: Clock { database.clock }
  var transactions: TransactionTable { database.transactions }

  /// Returns the proof that the caller may administer the database.
  /// - Throws: `PERMISSION_DENIED` if rules apply to the caller.
  func administrator() throws(Status) -> DatabaseAdministrator {
    switch access {
    case .unrestricted: return DatabaseAdministrator(database: database)
    case .restricted(let authorizer):
      guard authorizer.explains else { throw Status.permissionDenied }
      throw Status(.permissionDenied, "Only an administrator may make this request; security rules cannot allow it.")
    }
  }

  // MARK: Snapshots

  /// Runs `body` on a snapshot with the state that `consistency` selects, as of ``Timestamp/latest`` if not `isTimed`.
  /// - Throws: ``CommitError`` if the transaction is over or the state cannot be read, and any error of `body`.
  func read<R>(
    _ consistency: ConsistencySelector = .latest, isTimed: Bool = true, _ body: (inout GuardedSnapshot) throws -> R
  ) throws -> R {
    switch consistency {
    case .latest:
      return try database.read { reader in
        let time = isTimed ? Timestamp(uncheckedMicroseconds: try reader.lastVersion()) : .latest
        return try show(&reader, ReadTime(timestamp: time), body)
      }
    case .readTime(let time):
      return try database.read(at: time) { reader, version in
        try show(&reader, ReadTime(version: version, timestamp: time), body)
      }
    case .transaction(let id):
      let (mode, version) = try database.transactions.use(id, by: owner)
      return try database.read { reader in
        let last = try reader.lastVersion()
        if version < last { try database.checkReadable(version, &reader) }
        let readTime = ReadTime(
          version: version < last ? version : nil, timestamp: Timestamp(uncheckedMicroseconds: version),
          transaction: mode == .readWrite ? id : nil, isInTransaction: true)
        return try show(&reader, readTime, body)
      }
    }
  }

  /// Runs `body` on a new snapshot for the next slice of a response, which shows the same moment as the first one. If
  /// the authorization of the response is old, the newest state must still allow the query; see ``renew(_:_:)``.
  /// - Throws: ``CommitError/readTimeTooOld`` if the state can no longer be read; `PERMISSION_DENIED` if the newest
  ///   state no longer allows the query; any error of `body`.
  func read<R>(again response: inout Continuation, _ body: (inout GuardedSnapshot) throws -> R) throws -> R {
    try database.read { reader in
      try database.checkReadable(response.readTime.timestamp.microseconds, &reader)
      var snapshot = GuardedSnapshot(
        reader: reader.take(), readTime: response.readTime, scratch: database.scratch)
      try renew(&response, &snapshot)
      snapshot.review = response.review
      return try body(&snapshot)
    }
  }

  /// Runs `body` on a new snapshot for the next slice of several documents.
  /// - Throws: ``CommitError/readTimeTooOld`` if the state can no longer be read, and any error of `body`.
  func read<R>(again readTime: ReadTime, _ body: (inout GuardedSnapshot) throws -> R) throws -> R {
    try database.read { reader in
      try database.checkReadable(readTime.timestamp.microseconds, &reader)
      return try show(&reader, readTime, body)
    }
  }

  @inline(__always)
  private func show<R>(
    _ reader: inout SnapshotReader, _ readTime: ReadTime, _ body: (inout GuardedSnapshot) throws -> R
  ) throws -> R {
    var snapshot = GuardedSnapshot(reader: reader.take(), readTime: readTime, scratch: database.scratch)
    return try body(&snapshot)
  }

  /// Returns the declared indexes. Cost: one lookup, unless they changed since the last call.
  func indexes(_ snapshot: inout GuardedSnapshot) throws -> IndexCatalog { try database.indexes(&snapshot.reader) }

  // MARK: Grants

  /// Authorizes a get of one document, which may not exist. Cost: the read of the document, and the evaluation of the
  /// rules without an allocation if they look up no documents.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it; ``StorageError`` if the read fails.
  func grantGet(_ key: DocumentKey, _ snapshot: inout GuardedSnapshot) throws -> GetGrant {
    let document = try snapshot.find(key, at: snapshot.readTime.version)
    try authorize(&snapshot) { authorizer, evaluation, snapshot, version in
      let isShown = version == snapshot.readTime.version
      try evaluation.requireGet(
        key, (isShown ? document : try snapshot.find(key, at: version))?.fields, by: authorizer, in: database,
        isInTransaction: snapshot.readTime.isInTransaction)
    }
    return GetGrant(key: key, document: document)
  }

  /// Begins to authorize gets of several documents, which share the lookups and the work of the rules.
  /// - Throws: ``StorageError`` if a read fails.
  func beginGets(_ keys: [DocumentKey], _ snapshot: inout GuardedSnapshot) throws -> GetsAuthorization {
    var gets = GetsAuthorization(keys: keys, readTime: snapshot.readTime, authorization: try authorization(&snapshot))
    guard case .restricted(let authorizer) = access else { return gets }
    if let version = gets.readTime.version {
      gets.states.append((.past(version, gets.readTime.timestamp), authorizer.evaluations.take()))
    }
    gets.states.append((.newest, authorizer.evaluations.take()))
    return gets
  }

  /// Authorizes the next documents, in about ``Evaluator/sliceWorkMax``. Returns the grant when all are allowed,
  /// otherwise `nil`. Every slice decides by the states of the first one. Cost: if rules apply, the read of the
  /// documents.
  /// - Throws: `PERMISSION_DENIED` if the rules deny one of them; ``StorageError`` if a read fails.
  func grantGets(_ gets: inout GetsAuthorization, _ snapshot: inout GuardedSnapshot) throws -> GetsGrant? {
    if case .restricted(let authorizer) = access {
      let first = gets.next
      defer { for (_, evaluation) in gets.states { evaluation.pause() } }
      var spent = 0
      for (state, evaluation) in gets.states {
        evaluation.begin(snapshot.reader.snapshot, version: gets.version(of: state))
        spent += evaluation.evaluator.requestWorkLeft
      }
      while gets.next < gets.keys.count {
        let work = gets.states.reduce(spent) { $0 - $1.1.evaluator.requestWorkLeft }
        if Evaluator.isSliceSpent(work: work, documents: gets.next - first) { break }
        try requireGet(gets.keys[gets.next], gets, by: authorizer, &snapshot)
        gets.next += 1
      }
      guard gets.next == gets.keys.count else { return nil }
      for (_, evaluation) in gets.states { authorizer.evaluations.give(evaluation) }
      gets.states = []
    }
    return GetsGrant(keys: gets.keys, readTime: gets.readTime, gets.authorization)
  }

  private func requireGet(
    _ key: DocumentKey, _ gets: GetsAuthorization, by authorizer: Authorizer, _ snapshot: inout GuardedSnapshot
  ) throws {
    for (state, evaluation) in gets.states {
      do {
        try evaluation.requireGet(
          key, snapshot.find(key, at: gets.version(of: state))?.fields, by: authorizer, in: database,
          isInTransaction: gets.readTime.isInTransaction)
      } catch let denial as Status { throw gets.states.count > 1 ? state.explaining(denial, authorizer) : denial }
    }
  }

  /// Returns one of the documents that a grant is for, or `nil` if it does not exist. It borrows the snapshot's bytes.
  /// If the authorization of the response is old, the newest state must still allow the get. Cost: two lookups.
  /// - Throws: `PERMISSION_DENIED` if the newest state denies the get; ``StorageError`` if a read fails.
  func document(
    at index: Int, of grant: borrowing GetsGrant, _ snapshot: inout GuardedSnapshot
  ) throws -> StoredDocument? {
    let key = grant.keys[index]
    if case .restricted(let authorizer) = access, grant.authorization.isOld(at: clock.now()),
      try snapshot.reader.lastVersion() > grant.authorization.version
    {
      let newest = try snapshot.reader.document(key)
      let evaluation = snapshot.evaluation ?? SliceEvaluation(authorizer, snapshot.reader.snapshot)
      snapshot.evaluation = evaluation
      do {
        try evaluation.requireGet(
          key, newest?.fields, in: database, isInTransaction: snapshot.readTime.isInTransaction)
      } catch let denial as Status { throw DecidingState.newest.explaining(denial, authorizer) }
    }
    return try snapshot.find(key, at: grant.readTime.timestamp.microseconds)
  }

  /// Authorizes a query by proof: its filter must imply that the rules allow every possible result.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func grantQuery(_ query: ResolvedQuery, _ snapshot: inout GuardedSnapshot) throws -> QueryGrant {
    try requireList(query.query, &snapshot)
    return QueryGrant(query: query, response: try continuation(of: .query(query), &snapshot))
  }

  /// Authorizes a listing, which rules see as a query without a filter.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func grantListing(_ query: Query, _ snapshot: inout GuardedSnapshot) throws -> ListingGrant {
    try requireList(query, &snapshot)
    return ListingGrant(database: id, query: query, response: try continuation(of: .listing(query), &snapshot))
  }

  /// Authorizes the sources of a pipeline, each like a query of its own. Documents by name are authorized when they are
  /// read.
  /// - Throws: `PERMISSION_DENIED` if the rules deny one of them, or apply to the caller and cannot decide.
  func grantPipeline(_ plan: PipelinePlan, _ snapshot: inout GuardedSnapshot) throws -> PipelineGrant {
    if !isUnrestricted { try plan.requireDecidable(inPast: snapshot.readTime.version != nil) }
    for query in plan.queries { try requireList(query, ofPipeline: true, &snapshot) }
    var grant = PipelineGrant(
      plan: plan, response: try continuation(of: .pipeline(plan), &snapshot), isReviewed: !isUnrestricted)
    if case .restricted(let authorizer) = access { grant.gets = PipelineGets(database, authorizer, plan) }
    if isUnrestricted { grant.reads = database.reads(at: grant.response.readTime.timestamp.microseconds) }
    return grant
  }

  private func requireList(_ query: Query, ofPipeline: Bool = false, _ snapshot: inout GuardedSnapshot) throws {
    try authorize(&snapshot) { authorizer, evaluation, snapshot, _ in
      try evaluation.requireList(
        query, ofPipeline: ofPipeline, by: authorizer, in: database,
        isInTransaction: snapshot.readTime.isInTransaction)
    }
  }

  /// Calls `require` with an evaluation for each state by which the rules must allow a read: the state that the read
  /// shows, and the newest state of the snapshot if that is another one. So a read in the past does not return
  /// access that the caller has lost since. No other function selects these states.
  private func authorize(
    _ snapshot: inout GuardedSnapshot,
    _ require: (Authorizer, RulesEvaluation, inout GuardedSnapshot, _ version: Int64?) throws -> Void
  ) throws {
    guard case .restricted(let authorizer) = access else { return }
    guard let version = snapshot.readTime.version else {
      let evaluation = authorizer.evaluations.take()
      defer { authorizer.evaluations.give(evaluation) }
      evaluation.begin(snapshot.reader.snapshot)
      return try require(authorizer, evaluation, &snapshot, nil)
    }
    try self.require(.past(version, snapshot.readTime.timestamp), by: authorizer, &snapshot) { evaluation, snapshot in
      try require(authorizer, evaluation, &snapshot, version)
    }
    try self.require(.newest, by: authorizer, &snapshot) { evaluation, snapshot in
      try require(authorizer, evaluation, &snapshot, nil)
    }
  }

  /// Calls `body` with an evaluation whose rules look up documents in one of the states of a snapshot. A denial that
  /// includes reasons names the state.
  private func require(
    _ state: DecidingState, by authorizer: Authorizer, _ snapshot: inout GuardedSnapshot,
    _ body: (RulesEvaluation, inout GuardedSnapshot) throws -> Void
  ) throws {
    let evaluation = authorizer.evaluations.take()
    defer { authorizer.evaluations.give(evaluation) }
    evaluation.begin(snapshot.reader.snapshot, version: state.version)
    do { try body(evaluation, &snapshot) } catch let denial as Status { throw state.explaining(denial, authorizer) }
  }

  // MARK: Long responses

  /// Returns what the slices of a response need.
  private func continuation(
    of subject: @autoclosure () -> Continuation.Subject, _ snapshot: inout GuardedSnapshot
  ) throws -> Continuation {
    var response = Continuation(
      readTime: snapshot.readTime, subject: access.isUnrestricted ? nil : subject(),
      authorization: try authorization(&snapshot))
    if snapshot.readTime.version != nil { response.review = review(of: response) }
    return response
  }

  private func authorization(_ snapshot: inout GuardedSnapshot) throws -> Authorization {
    guard case .restricted = access else { return Authorization(version: 0, time: 0) }
    let readTime = snapshot.readTime
    let version = try readTime.version == nil ? readTime.timestamp.microseconds : snapshot.lastVersion()
    return Authorization(version: version, time: clock.now())
  }

  private func review(of response: Continuation) -> PastReview? {
    guard case .restricted(let authorizer) = access, let subject = response.subject else { return nil }
    return PastReview(database, authorizer, subject.range(in: id), transaction: response.readTime.transaction)
  }

  /// Authorizes a query again, if its response has taken more than ``Limits/authorizationAgeSecondsMax`` and there
  /// were commits meanwhile. From then on, changed results are reviewed. Cost otherwise: reading the clock.
  private func renew(_ response: inout Continuation, _ snapshot: inout GuardedSnapshot) throws {
    guard case .restricted(let authorizer) = access, let subject = response.subject else { return }
    let now = clock.now()
    guard response.authorization.isOld(at: now) else { return }
    let version = try snapshot.lastVersion()
    if version > response.authorization.version {
      try require(.newest, by: authorizer, &snapshot) { evaluation, snapshot in
        for query in subject.queries {
          try evaluation.requireList(
            query, ofPipeline: subject.isPipeline, by: authorizer, in: database,
            isInTransaction: snapshot.readTime.isInTransaction)
        }
      }
      response.review = response.review ?? review(of: response)
    }
    response.authorization = Authorization(version: version, time: now)
  }

  // MARK: Commits

  /// Commits writes, after the reads of a transaction if one is given. Rules authorize every document of the commit.
  /// `completion` is called once, on any thread.
  func commit(
    _ writes: [Write], after reads: ReadSet? = nil,
    completion: @escaping @Sendable (Result<CommitOutcome, CommitError>) -> Void
  ) {
    database.commit(request(writes, after: reads), completion: completion)
  }

  /// Commits writes once for an ID. `prepare`, which returns the reads of a transaction, is called if the outcome is new.
  func commit(
    _ writes: [Write], requestID: RequestID, preparing prepare: () throws(CommitError) -> ReadSet?,
    completion: @escaping @Sendable (Result<CommitOutcome, CommitError>) -> Void
  ) {
    database.commit(request(writes, id: requestID), preparing: prepare, completion: completion)
  }

  /// Commits one write, once if it has an ID, and passes the resulting document to `completion`, regardless of later
  /// changes. The rules that allowed the write allow the caller to see its result.
  func commit(
    _ write: Write, requestID: RequestID?, completion: @escaping @Sendable (Result<Document, any Error>) -> Void
  ) {
    database.commit(request([write], id: requestID)) { [database] result in
      completion(Result { try database.written(write.key, at: result.get().version) })
    }
  }

  private func request(_ writes: [Write], after reads: ReadSet? = nil, id: RequestID? = nil) -> CommitRequest {
    var request = CommitRequest(writes, after: reads)
    request.id = id
    if case .restricted(let authorizer) = access {
      request.authorizer = RulesCommitAuthorizer(authorizer: authorizer, database: database.id)
    }
    return request
  }
}

/// Proof that a caller may administer one database: rules do not apply to it.
struct DatabaseAdministrator: Sendable {
  let database: DocumentDatabase

  fileprivate init(database: DocumentDatabase) { self.database = database }
}

// MARK: - Grants

/// Proof that a caller may get one document at one moment.
struct GetGrant: ~Copyable {
  let key: DocumentKey
  fileprivate let document: StoredDocument?

  fileprivate init(key: DocumentKey, document: StoredDocument?) {
    self.key = key
    self.document = document
  }
}

/// The authorization of gets of several documents, until all are allowed.
struct GetsAuthorization {
  let keys: [DocumentKey]
  let readTime: ReadTime
  fileprivate let authorization: Authorization
  /// The states that must allow the gets. Each evaluation keeps the documents that the rules have looked up.
  fileprivate var states: [(DecidingState, RulesEvaluation)] = []
  /// The place of the next document.
  fileprivate var next = 0

  fileprivate init(keys: [DocumentKey], readTime: ReadTime, authorization: Authorization) {
    self.keys = keys
    self.readTime = readTime
    self.authorization = authorization
  }

  /// The version of a state; `nil` if it is the newest one of the first slice's snapshot.
  fileprivate func version(of state: DecidingState) -> Int64? {
    state.version ?? (next == 0 ? nil : authorization.version)
  }
}

/// Proof that a caller may get several documents at one moment.
struct GetsGrant: ~Copyable {
  let keys: [DocumentKey]
  let readTime: ReadTime
  fileprivate let authorization: Authorization

  fileprivate init(keys: [DocumentKey], readTime: ReadTime, _ authorization: Authorization) {
    self.keys = keys
    self.readTime = readTime
    self.authorization = authorization
  }
}

/// Proof that a caller may receive the results of one query at one moment.
struct QueryGrant: ~Copyable {
  let query: ResolvedQuery
  let response: Continuation
  var readTime: ReadTime { response.readTime }

  fileprivate init(query: ResolvedQuery, response: Continuation) {
    self.query = query
    self.response = response
  }
}

/// Proof that a caller may receive the results of one pipeline at one moment.
struct PipelineGrant: ~Copyable {
  let plan: PipelinePlan
  let response: Continuation
  /// Whether documents may have to be reviewed while the pipeline runs.
  fileprivate let isReviewed: Bool
  fileprivate var gets: PipelineGets?
  fileprivate var reads: PipelineRun.Reads?

  fileprivate init(plan: PipelinePlan, response: Continuation, isReviewed: Bool) {
    self.plan = plan
    self.response = response
    self.isReviewed = isReviewed
  }
}

/// A running pipeline whose results can be read only with ``GuardedSnapshot/slice(_:_:)``.
struct GuardedPipeline {
  let execution: PipelineExecution
  fileprivate let gets: PipelineGets?
}

/// Proof that a caller may list the documents in the scope of a query without a filter.
struct ListingGrant: ~Copyable {
  let query: Query
  let response: Continuation
  fileprivate let database: DatabaseID
  var readTime: ReadTime { response.readTime }

  fileprivate init(database: DatabaseID, query: Query, response: Continuation) {
    self.database = database
    self.query = query
    self.response = response
  }
}

// MARK: - Reads

/// A snapshot whose documents can be read only with a grant. Valid only during the call that receives it.
struct GuardedSnapshot: ~Copyable {
  fileprivate var reader: SnapshotReader
  /// The moment that reads of this snapshot show.
  let readTime: ReadTime
  private let scratch: ScratchSpace
  /// Reviews the results of queries; see ``Continuation``.
  fileprivate var review: PastReview?
  /// Evaluates the rules again for the documents of this slice; `nil` if no document needed it so far.
  fileprivate var evaluation: SliceEvaluation?

  fileprivate init(reader: SnapshotReader, readTime: ReadTime, scratch: ScratchSpace) {
    self.reader = reader
    self.readTime = readTime
    self.scratch = scratch
  }

  /// Whether a slice that has read `count` documents should end, so that the event loop serves other requests.
  func isSpent(after count: Int) -> Bool { Evaluator.isSliceSpent(work: 0, documents: count) || isReviewSpent }

  /// Whether a slice should end because of the rules that were evaluated again for its documents.
  var isReviewSpent: Bool { evaluation?.isSpent == true }

  /// Returns the version of the last commit.
  mutating func lastVersion() throws -> Int64 { try reader.lastVersion() }

  /// Returns the document that a grant is for, or `nil` if it does not exist. It borrows the snapshot's bytes. Cost:
  /// none, because the authorization has read it.
  func document(_ grant: borrowing GetGrant) -> StoredDocument? { grant.document }

  /// Plans the query that a grant is for. The results can be pulled only with ``slice(_:_:)``.
  func results(_ grant: borrowing QueryGrant, _ indexes: IndexCatalog) throws -> any QueryResults {
    try grant.query.results(
      reader.snapshot, at: grant.readTime.timestamp.microseconds, PlanOptions(indexes: indexes, scratch: scratch))
  }

  /// Continues a query; see ``QueryEngine/QueryResults/slice(_:units:_:)``.
  func slice(_ results: any QueryResults, _ found: (DocumentKey, StoredDocument) throws -> Bool) throws {
    guard let review else { return try results.slice(reader.snapshot, units: QueryExecution.sliceUnits, found) }
    var newest = SnapshotReader(reader.snapshot)
    var evaluation: SliceEvaluation?
    try results.slice(reader.snapshot, units: QueryExecution.sliceUnits) { key, document in
      try review.check(key, document, &newest, &evaluation)
      return try found(key, document) && evaluation?.isSpent != true
    }
  }

  /// Reviews a listed document that ``scan(_:after:)`` has found; see ``slice(_:_:)``.
  mutating func check(_ key: DocumentKey, _ document: StoredDocument) throws {
    try review?.check(key, document, &reader, &evaluation)
  }

  /// Plans a pass over the results of a query that the caller gets in another form, to review them. Returns `nil` if
  /// the query shows the newest state, or no rules apply.
  func reviewed(_ grant: borrowing QueryGrant, _ indexes: IndexCatalog) throws -> (any QueryResults)? {
    grant.response.review == nil ? nil : try results(grant, indexes)
  }

  /// Plans aggregations over the query that a grant is for.
  func aggregation(
    _ aggregations: [Aggregation], over grant: borrowing QueryGrant, in edition: Edition, _ indexes: IndexCatalog
  ) throws -> AggregationExecution {
    try AggregationExecution(
      aggregations, over: grant.query, in: edition, reader.snapshot, at: grant.readTime.timestamp.microseconds,
      PlanOptions(indexes: indexes, scratch: scratch))
  }

  /// Continues an aggregation. Returns the values after the last slice, otherwise `nil`.
  func slice(_ execution: AggregationExecution) throws -> [Value]? {
    try execution.slice(reader.snapshot, units: QueryExecution.sliceUnits)
  }

  /// Plans the pipeline that a grant is for.
  func pipeline(
    _ grant: borrowing PipelineGrant, in database: DatabaseID, now: Timestamp, _ indexes: IndexCatalog
  ) throws -> GuardedPipeline {
    GuardedPipeline(
      execution: try PipelineExecution(
        grant.plan, in: database, reader.snapshot, at: grant.response.readTime.timestamp.microseconds, now: now,
        indexes, scratch, isReviewed: grant.isReviewed, reads: grant.reads), gets: grant.gets)
  }

  /// Continues a pipeline; see ``PipelineEngine/PipelineExecution/slice(_:units:review:_:)``.
  func slice(_ pipeline: GuardedPipeline, _ found: (PipelineResult) throws -> Bool) throws {
    guard review != nil || pipeline.gets != nil else { return try pipeline.execution.slice(reader.snapshot, found) }
    let review = review
    var newest = SnapshotReader(reader.snapshot)
    var evaluation: SliceEvaluation?
    try pipeline.execution.slice(
      reader.snapshot,
      review: { source, key, document in
        if let document { try review?.check(key, document, &newest, &evaluation) }
        try pipeline.gets?.check(source, key, document, &newest, &evaluation)
        return evaluation?.isSpent != true
      }, found)
  }

  /// Plans to divide the results of the query that a grant is for.
  func sampler(cutsMax: Int, _ grant: borrowing QueryGrant) throws -> PartitionSampler {
    try PartitionSampler(
      grant.query, cutsMax: cutsMax, reader.snapshot, at: grant.readTime.timestamp.microseconds,
      PlanOptions(scratch: scratch))
  }

  /// Continues to divide results. Returns the names after the last slice, otherwise `nil`.
  func slice(_ sampler: PartitionSampler) throws -> [DocumentKey]? { try sampler.slice(reader.snapshot) }

  /// Plans a listing in a complete order, after a position in it.
  func results(
    _ grant: borrowing ListingGrant, orders: [Order], after place: [UInt8]?, limit: Int, _ indexes: IndexCatalog
  ) throws -> (query: ResolvedQuery, results: any QueryResults) {
    let query = ResolvedQuery(listing: grant.query, orders: orders, after: place, limit: limit, in: grant.database)
    let results = try query.results(
      reader.snapshot, at: grant.readTime.timestamp.microseconds, PlanOptions(indexes: indexes, scratch: scratch))
    return (query, results)
  }

  /// Lists a collection in name order, after an ID. Returns `nil` if the collection never had a document.
  mutating func scan(_ grant: borrowing ListingGrant, after id: [UInt8]?) throws -> DocumentIterator? {
    guard let row = try collection(grant) else { return nil }
    return try DocumentIterator(
      reader.snapshot, collection: row.number, from: id.map(DocumentIterator.Start.after) ?? .beginning,
      at: grant.readTime.version)
  }

  /// Returns the version of the last change of the listed collection, or 0 if it never had a document.
  mutating func lastChange(_ grant: borrowing ListingGrant) throws -> Int64 {
    try collection(grant)?.lastChange ?? 0
  }

  private mutating func collection(_ grant: borrowing ListingGrant) throws -> SnapshotReader.CollectionRow? {
    guard let id = grant.query.collectionID else { return nil }
    return try reader.collection(grant.query.parent.appending(id))
  }

  /// Returns the IDs directly below a path after one of them, also those of missing documents, which rules do not
  /// cover.
  func segments(
    below path: ResourcePath, after id: [UInt8]?, as _: DatabaseAdministrator
  ) throws -> SubtreeSegments {
    try SubtreeSegments(reader.snapshot, below: path, after: id, at: readTime.version)
  }

  fileprivate mutating func find(_ key: DocumentKey, at version: Int64?) throws -> StoredDocument? {
    guard let version else { return try reader.document(key) }
    guard let row = try reader.collection(key.collection) else { return nil }
    return try reader.document(key.id, in: row.number, at: version)
  }
}
