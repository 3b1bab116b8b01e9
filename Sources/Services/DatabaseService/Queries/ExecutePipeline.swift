package import DocumentModel
import DocumentStore
import PipelineEngine
import QueryEngine
import Synchronization
package import WireFormat

/// The response to an ExecutePipeline request, in slices.
///
/// Each slice reads the same version on its own snapshot, so that a slow client does not hold a snapshot.
package final class ExecutePipelineCursor {
  /// The transaction that the request began, if any.
  package let transaction: TransactionID?
  /// The time of the state that was read.
  package let readTime: Timestamp
  /// The kind of explanation that the client requested, or `nil` for none.
  package let explain: ExplainMode?

  private let access: DatabaseAccess
  private let counters: ServiceCounters
  private var response: Continuation
  private let pipeline: GuardedPipeline
  /// The pipeline that runs: ``pipeline``, or one that evaluates changed documents again.
  private var running: GuardedPipeline
  private let plan: PipelinePlan
  private let now: Timestamp
  /// The transaction to end after the last result.
  private let ended: TransactionID?
  private let writes: PipelineWrites?

  fileprivate init(
    _ counters: ServiceCounters, _ access: DatabaseAccess, _ plan: PipelinePlan, _ pipeline: GuardedPipeline,
    _ response: Continuation, now: Timestamp, transaction: TransactionID?, ended: TransactionID?,
    _ writes: PipelineWrites?
  ) {
    self.counters = counters
    self.access = access
    self.plan = plan
    self.pipeline = pipeline
    running = pipeline
    self.now = now
    self.response = response
    self.transaction = transaction
    self.ended = ended
    self.writes = writes
    explain = plan.options.explain
    readTime = response.readTime.timestamp
  }

  /// Whether all results have been returned. Always `true` if the pipeline is only planned.
  package private(set) var isAtEnd = false

  /// Whether the pipeline waits for scratch space or for a commit, so that a slice would do nothing. If so, calls
  /// `wake` once, on any thread, when the next slice can continue.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool {
    writes?.wait(wake) ?? false || running.execution.wait(wake)
  }

  /// The explanation, once the pipeline is at its end; `nil` if it was not requested.
  package var explanation: String? {
    guard isAtEnd, explain != nil else { return nil }
    let explanation = pipeline.execution.explanation
    return plan.options.explainsInJSON ? explanation.json : explanation.text
  }

  /// Calls `found` for each result until it returns `false`, no results are left, or some hundred microseconds have
  /// passed, so that others have their turn.
  ///
  /// Data that a result borrows is valid only during the call.
  /// - Throws: ``PipelineError`` if an expression fails or a limit is exceeded, ``CommitError/readTimeTooOld`` if the
  ///   state can no longer be read, `PERMISSION_DENIED` if the newest state no longer allows the response,
  ///   ``StorageError`` if a read fails, ``ScratchError`` if there is no scratch space, and any error of `found`.
  package func slice(_ found: (PipelineResult) throws -> Bool) throws {
    guard !isAtEnd else { return }
    guard explain != .plan else { return isAtEnd = true }
    if let writes { return try slice(writes, found) }
    let before = pipeline.execution.documentsRead
    defer { access.countReads(pipeline.execution.documentsRead - before, in: counters) }
    try access.read(again: &response) { snapshot in try snapshot.slice(pipeline, found) }
    guard pipeline.execution.isAtEnd else { return }
    if let ended { try? access.transactions.rollback(ended, by: access.owner) }
    isAtEnd = true
  }

  /// Collects writes and commits them in batches. Documents that change between their read and their write are
  /// evaluated again. After the last one, the only result is the number of writes.
  private func slice(_ writes: PipelineWrites, _ found: (PipelineResult) throws -> Bool) throws {
    guard try writes.isReady() else { return }
    let execution = running.execution
    if !execution.isAtEnd, !writes.isFull {
      try access.read(again: &response) { snapshot in
        try snapshot.slice(running) { row in
          try writes.add(row, deletes: plan.outcome == .deletes, execution)
          return !writes.isFull
        }
      }
    }
    if writes.isFull || execution.isAtEnd, writes.commit() { return }
    guard execution.isAtEnd else { return }
    if let keys = try writes.takeChanged() { return try evaluateAgain(keys) }
    isAtEnd = true
    let fields = EncodedFields(MapValue([("documents_modified", .integer(Int64(writes.modified)))]))
    try fields.withMap { map in _ = try found(PipelineResult(name: nil, fields: map)) }
  }

  /// Begins to evaluate the pipeline for documents that have changed, in the newest state.
  private func evaluateAgain(_ keys: [DocumentKey]) throws {
    try access.read { snapshot in
      let grant = try access.grantPipeline(plan.again(over: keys), &snapshot)
      running = try snapshot.pipeline(grant, in: access.id, now: now, try access.indexes(&snapshot))
      response = grant.response
    }
  }
}

/// The writes of an update or delete stage: each document is written by itself, some of them at a time, and only if it
/// has not changed since the pipeline read it. The first error ends the pipeline; earlier writes stay.
private final class PipelineWrites: Sendable {
  private struct State {
    var gathered: [Write] = []
    /// The documents that the pipeline writes without having read them.
    var unread: Set<DocumentKey> = []
    /// The documents that had changed.
    var changed: [DocumentKey] = []
    var attempts = 1
    var isCommitting = false
    var modified = 0
    var failure: (any Error)?
    var wake: (@Sendable () -> Void)?
  }

  private let database: DocumentDatabase
  private let state = Mutex(State())

  init(_ administrator: DatabaseAdministrator) { database = administrator.database }

  /// The number of documents that were changed.
  var modified: Int { state.withLock { $0.modified } }
  /// Whether the gathered writes should be committed before others are added.
  var isFull: Bool { state.withLock { $0.gathered.count >= PipelineLimits.writesInFlightMax } }

  /// Whether no commit is running.
  /// - Throws: ``CommitError`` if one has failed, `ABORTED` if too many documents have changed.
  func isReady() throws -> Bool {
    let (isCommitting, failure) = state.withLock { ($0.isCommitting, $0.failure) }
    if let failure { throw failure }
    return !isCommitting
  }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      guard state.isCommitting else { return false }
      state.wake = wake
      return true
    }
  }

  /// Adds the write of a row.
  func add(_ row: PipelineResult, deletes: Bool, _ execution: PipelineExecution) throws {
    guard let name = row.name else { throw Status(.invalidArgument, "A row to write has no __name__.") }
    let (named, key) = try ResourceName.document(name)
    guard named == database.id else {
      throw ModelError.otherDatabase(requested: database.id.name, accessed: named.name)
    }
    var write = Write(.delete, key: key)
    if !deletes {
      var bytes: [UInt8] = []
      bytes.append(contentsOf: row.fields.bytes)
      let fields = try bytes.withRawBytes { (bytes) throws(WireError) in
        try EncodedFields.canonical(fromClient: bytes, in: database.edition)
      }
      write.operation = .update(fields, mask: nil)
    }
    if let version = row.readVersion {
      write.precondition = .updateTime(Timestamp(uncheckedMicroseconds: version))
    } else {
      // The row was not made from the document that it names. Only such rows can name a document twice.
      guard state.withLock({ $0.unread.insert(key).inserted }) else { return }
      try execution.hold(key.path.bytes.count + Self.keyBytes)
      write.precondition = .exists(true)
    }
    state.withLock { $0.gathered.append(write) }
  }

  /// The memory of a key beside its path.
  private static let keyBytes = 64

  /// Returns the documents that have to be evaluated again, or `nil` if no document has changed.
  /// - Throws: `ABORTED` if that has been tried too often.
  func takeChanged() throws -> [DocumentKey]? {
    try state.withLock { state in
      guard let first = state.changed.first else { return nil }
      state.attempts += 1
      guard state.attempts <= PipelineLimits.writeAttemptsMax else { throw Self.aborted(by: first, state) }
      defer { state.changed = [] }
      return state.changed
    }
  }

  private static func aborted(by key: DocumentKey, _ state: State) -> Status {
    Status(
      .aborted,
      "Other clients change documents, for example \(key.path.text), before the pipeline can write them. "
        + "The pipeline has written \(state.modified) documents. Run it again.")
  }

  /// Begins to commit the gathered writes. Returns `false` if no writes are gathered.
  func commit() -> Bool {
    let writes = state.withLock { state -> [Write] in
      defer { state.gathered = [] }
      state.isCommitting = !state.gathered.isEmpty
      return state.gathered
    }
    guard !writes.isEmpty else { return false }
    database.commitEach(writes) { [self] results in
      let wake = state.withLock { state in
        for result in results {
          switch result {
          case .success: state.modified += 1
          // A document that does not exist is not an error (pipelines.md, section 3.18).
          case .failure(.documentMissing), .failure(.versionMismatch(_, stored: 0, required: _)): break
          case .failure(.versionMismatch(let key, _, _)), .failure(.updateTimeInFuture(let key)):
            state.changed.append(key)
            if state.changed.count > PipelineLimits.changedDocumentsMax {
              state.failure = state.failure ?? Self.aborted(by: key, state)
            }
          case .failure(let error): state.failure = state.failure ?? error
          }
        }
        state.isCommitting = false
        return state.wake.take()
      }
      wake?()
    }
    return true
  }
}

extension FirestoreService {
  /// Runs a pipeline.
  ///
  /// Cost of this call: planning, and the proof by the rules. The cost of each result depends on the stages.
  /// - Throws: `INVALID_ARGUMENT` that names the stage if the pipeline is invalid; `PERMISSION_DENIED` if the rules
  ///   cannot be proved to allow every document that the pipeline could read, or if it writes and rules apply;
  ///   ``CommitError`` if the state cannot be read.
  package func executePipeline(
    _ request: ExecutePipelineRequest, in id: DatabaseID, as caller: Caller
  ) throws -> ExecutePipelineCursor {
    guard request.database.isEmpty || request.database == id.name else {
      throw ModelError.otherDatabase(requested: id.name, accessed: request.database)
    }
    let plan = try PipelinePlan(request.pipeline, in: id)
    let writes = plan.outcome != .results
    var isInTransaction = request.newTransaction != nil
    if case .transaction = request.consistency { isInTransaction = true }
    if writes, isInTransaction {
      throw Status(.invalidArgument, "A pipeline in a transaction cannot write documents.")
    }
    if writes, case .readTime = request.consistency {
      throw Status(.invalidArgument, "A pipeline that writes documents cannot read in the past.")
    }
    if request.endsTransaction, !isInTransaction {
      throw Status(.invalidArgument, "auto_commit_transaction requires a transaction.")
    }
    let access = try access(to: id, as: caller, creates: request.newTransaction != nil || writes)
    try access.requireReads()
    try access.requireExplainable(plan.options.explain)
    return try access.opening(request.newTransaction) {
      try beginTransaction($0, in: id, as: caller)
    } _: { opened in
      try access.read(opened.map(ConsistencySelector.transaction) ?? request.consistency) { snapshot in
        let grant = try access.grantPipeline(plan, &snapshot)
        let now = self.now
        let pipeline = try snapshot.pipeline(grant, in: id, now: now, try access.indexes(&snapshot))
        if let transaction = grant.response.readTime.transaction {
          try access.transactions.note(plan, in: transaction, of: id)
        }
        counters.add(to: .queries)
        if writes, access.isUnrestricted { observer?.noteSetup(of: id) }
        var ended = opened
        if case .transaction(let transaction) = request.consistency { ended = transaction }
        return ExecutePipelineCursor(
          counters, access, plan, pipeline, grant.response, now: now, transaction: opened,
          ended: request.endsTransaction ? ended : nil,
          writes ? PipelineWrites(try access.administrator()) : nil)
      }
    }
  }
}

extension TransactionTable {
  /// Records the sources of a pipeline in a read-write transaction.
  fileprivate func note(_ plan: PipelinePlan, in transaction: TransactionID, of database: DatabaseID) throws {
    for source in plan.sources {
      switch source {
      case .query(let query): note(try ResolvedQuery(query, in: database, edition: .enterprise), in: transaction)
      case .documents(let keys):
        for key in keys {
          let query = Query(naming: key, in: database)
          note(try ResolvedQuery(query, in: database, edition: .enterprise), in: transaction)
        }
      case .literals: break
      }
    }
  }
}

extension Query {
  /// Creates a query that finds one document.
  fileprivate init(naming key: DocumentKey, in database: DatabaseID) {
    self.init(parent: key.collection.parent, collectionID: key.collection.id)
    filter = .field(
      FieldPath(field: "__name__"), .equal, .reference(ResourceName(database: database, path: key.path).text))
  }
}
