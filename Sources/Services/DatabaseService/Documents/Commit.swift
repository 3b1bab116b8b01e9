import Dispatch
package import DocumentModel
package import DocumentStore
import Synchronization

extension FirestoreService {
  /// Applies writes atomically, at the end of a transaction where one is named (Commit).
  ///
  /// `completion` is called once, on any thread, after the commit is durable or has failed.
  /// Rules judge every document it names; a commit that they do not grant fails with `PERMISSION_DENIED`, whatever else
  /// is wrong with it.
  /// - Throws: what is wrong before anything is tried: no such database, transaction over, too many transforms.
  package func commit(
    _ writes: [Write], transaction: TransactionID? = nil, in id: DatabaseID, as caller: Caller,
    completion: @escaping @Sendable (Result<CommitOutcome, Status>) -> Void
  ) throws {
    let access = try access(to: id, as: caller)
    let database = access.database
    try Self.check(writes)
    let reads = try transaction.map { id throws(CommitError) in
      try database.transactions.close(id, forWrites: !writes.isEmpty)
    }
    let authorizer = access.authorizer.map { RulesCommitAuthorizer(authorizer: $0, database: id) }
    database.commit(CommitRequest(writes, after: reads, authorizer: authorizer)) { result in
      completion(result.mapError { Status($0, database: id) })
    }
  }

  /// Applies writes atomically, for administrators, with a mark that says later whether that happened; see
  /// ``CommitRequest/mark``. Waits until the commit is durable or has failed: not for event loops.
  /// - Throws: ``Status``; where it tells of a failure of the store, the mark has the last word.
  package func commit(_ writes: [Write], mark: UInt64, in id: DatabaseID, as caller: Caller) throws -> CommitOutcome {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    try Self.check(writes)
    var request = CommitRequest(writes)
    request.mark = mark
    let outcome = Mutex<Result<CommitOutcome, CommitError>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    access.database.commit(request) { result in
      outcome.withLock { $0 = result }
      isDone.signal()
    }
    isDone.wait()
    guard let result = outcome.withLock({ $0 }) else { throw Status(fault: "a commit ended without an outcome") }
    return try result.mapError { Status($0, database: id) }.get()
  }

  /// Applies each write on its own (BatchWrite), for administrators; `completion` gets one result per write, in order.
  /// - Throws: `INVALID_ARGUMENT` when one document is written twice (firestore-api.md, section 7.4).
  package func batchWrite(
    _ writes: [Write], in id: DatabaseID, as caller: Caller,
    completion: @escaping @Sendable ([Result<WriteResult, Status>]) -> Void
  ) throws {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    let database = access.database
    try Self.check(writes)
    guard Set(writes.map(\.key)).count == writes.count else {
      throw Status(.invalidArgument, "the same document cannot be written more than once in a single request")
    }
    database.commitEach(writes) { results in
      completion(
        results.map { result in
          switch result {
          case .success(let outcome): .success(outcome.results.first ?? WriteResult(updateTime: nil))
          case .failure(let error): .failure(Status(error, database: id))
          }
        })
    }
  }

  private static func check(_ writes: [Write]) throws {
    var transforms: [DocumentKey: Int] = [:]
    for write in writes where !write.transforms.isEmpty {
      let paths = write.transforms.map(\.path).sorted()
      for (outer, inner) in zip(paths, paths.dropFirst()) where outer != inner && outer.isPrefix(of: inner) {
        throw ModelError.nestedTransforms(outer.text)
      }
      transforms[write.key, default: 0] += write.transforms.count
      if transforms[write.key, default: 0] > Limits.transformsPerDocumentMax { throw ModelError.tooManyTransforms }
    }
  }
}
