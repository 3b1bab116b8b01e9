import Dispatch
package import DocumentModel
import DocumentStore
import Synchronization

extension FirestoreService {
  /// Applies writes atomically, in a transaction if one is given (Commit).
  ///
  /// `completion` is called once, on any thread, after the commit is durable or has failed. Rules authorize every
  /// document of the commit. A commit that they deny fails with `PERMISSION_DENIED`, even if it has other errors
  /// too.
  ///
  /// With a `requestID`, the commit happens once, however often the request arrives: a later call gets the outcome of the
  /// first one, also if its transaction is over. See ``DocumentStore/CommitRequest/id``.
  /// - Throws: Errors found before the commit starts: those of ``access(to:as:)``, ``CommitError`` if the
  ///   transaction is over, ``ModelError`` for invalid transforms, `RESOURCE_EXHAUSTED` if the caller writes too much.
  ///   With a `requestID`, `completion` receives some of them.
  package func commit(
    _ writes: [Write], transaction: TransactionID? = nil, in id: DatabaseID, as caller: Caller,
    requestID: RequestID? = nil, completion: @escaping @Sendable (Result<CommitOutcome, Status>) -> Void
  ) throws {
    let access = try access(to: id, as: caller)
    try access.takeWrites(writes.count)
    try Self.check(writes)
    func readsOfTransaction() throws(CommitError) -> ReadSet? {
      guard let transaction else { return nil }
      return try access.transactions.close(transaction, forWrites: !writes.isEmpty, by: access.owner)
    }
    // The first try of a request with an ID may have closed the transaction.
    let reads = requestID == nil ? try readsOfTransaction() : nil
    noteSetup(of: id, by: access)
    let completion: @Sendable (Result<CommitOutcome, CommitError>) -> Void = { result in
      completion(result.mapError { Status($0, database: id) })
    }
    if let requestID {
      access.commit(writes, requestID: requestID, preparing: readsOfTransaction, completion: completion)
    } else {
      access.commit(writes, after: reads, completion: completion)
    }
  }

  /// Commits one write, once if it has an ID, and passes the resulting document to `completion`.
  func write(
    _ write: Write, in id: DatabaseID, as caller: Caller, requestID: RequestID? = nil,
    completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    let access = try access(to: id, as: caller)
    try access.takeWrites(1)
    try Self.check([write])
    noteSetup(of: id, by: access)
    access.commit(write, requestID: requestID) { result in
      completion(result.mapError { Status($0, database: id) })
    }
  }

  /// Applies writes atomically, for administrators, with a mark that shows later whether they were applied; see
  /// ``CommitRequest/mark``. Blocks until the commit is durable or has failed, so do not call it on an event loop.
  /// - Throws: ``Status`` if the commit fails, ``ModelError`` for invalid transforms. After a storage error, check
  ///   the mark: the commit may have been applied.
  package func commit(_ writes: [Write], mark: UInt64, in id: DatabaseID, as caller: Caller) throws -> CommitOutcome {
    let administrator = try access(to: id, as: caller).administrator()
    try Self.check(writes)
    var request = CommitRequest(writes)
    request.mark = mark
    let outcome = Mutex<Result<CommitOutcome, CommitError>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    administrator.database.commit(request) { result in
      outcome.withLock { $0 = result }
      isDone.signal()
    }
    isDone.wait()
    guard let result = outcome.withLock({ $0 }) else { throw Status(fault: "a commit ended without an outcome") }
    return try result.mapError { Status($0, database: id) }.get()
  }

  /// Applies each write separately (BatchWrite), for administrators. `completion` receives one result for each
  /// write, in order. With a `requestID`, each write happens once.
  /// - Throws: `INVALID_ARGUMENT` if a document is written twice (firestore-api.md, section 7.4);
  ///   `PERMISSION_DENIED` if the caller is not an administrator and rules apply.
  package func batchWrite(
    _ writes: [Write], in id: DatabaseID, as caller: Caller, requestID: RequestID? = nil,
    completion: @escaping @Sendable ([Result<WriteResult, Status>]) -> Void
  ) throws {
    let administrator = try access(to: id, as: caller).administrator()
    try Self.check(writes)
    guard Set(writes.map(\.key)).count == writes.count else {
      throw Status(.invalidArgument, "the same document cannot be written more than once in a single request")
    }
    observer?.noteSetup(of: id)
    administrator.database.commitEach(writes, id: requestID) { results in
      completion(
        results.map { result in
          switch result {
          case .success(let outcome): .success(outcome.results.first ?? WriteResult(updateTime: nil))
          case .failure(let error): .failure(Status(error, database: id))
          }
        })
    }
  }

  /// Reports a write by an administrator to the observer, if one exists.
  private func noteSetup(of id: DatabaseID, by access: DatabaseAccess) {
    guard let observer, access.isUnrestricted else { return }
    observer.noteSetup(of: id)
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
