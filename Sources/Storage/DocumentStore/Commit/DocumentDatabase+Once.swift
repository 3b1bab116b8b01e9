package import DocumentModel
import KeyValue

// Commits that may arrive several times.
extension DocumentDatabase {
  /// Commits a request that may have been committed before: ``CommitRequest/id`` says so. Without an ID, it is a plain
  /// commit.
  ///
  /// `prepare` is called at most once, before this function returns, and only if the outcome is not known yet: it returns
  /// the reads of the client's transaction, which it closes. A request whose commit is under way waits for that commit.
  /// `completion` is called once, on any thread, also with the error of `prepare`.
  package func commit(
    _ request: CommitRequest, preparing prepare: () throws(CommitError) -> ReadSet?,
    completion: @escaping @Sendable (Result<CommitOutcome, CommitError>) -> Void
  ) {
    var request = request
    guard let end = begin(&request, completion: completion) else { return }
    do throws(CommitError) { request.reads = try prepare() } catch { return end(.failure(error)) }
    submit([request], completions: [end])
  }

  /// Notes that a commit begins. Returns the completion to call at its end, or `nil` if it needs no work: its outcome is
  /// known, or a commit with its ID is under way.
  func begin(_ request: inout CommitRequest, completion: @escaping CommitQueue.Completion) -> CommitQueue.Completion? {
    guard let id = request.id else { return completion }
    // A commit without writes leaves no trace, so it can be repeated.
    guard !request.writes.isEmpty else {
      request.id = nil
      return completion
    }
    request.digest = CommitDigest.of(request.writes)
    guard let end = inFlight.begin(id, digest: request.digest, completion: completion) else { return nil }
    do throws(CommitError) {
      guard let outcome = try recentOutcome(of: id, digest: request.digest) else { return end }
      end(.success(outcome))
    } catch { end(.failure(error)) }
    return nil
  }

  /// Looks up the outcome of an earlier commit with an ID. The snapshot is taken after the commit was entered in
  /// ``inFlight``, so it shows every commit with the ID that left it.
  private func recentOutcome(of id: RequestID, digest: UInt64) throws(CommitError) -> CommitOutcome? {
    let snapshot: any KeyValueSnapshot
    do throws(StorageError) { snapshot = try store.snapshot() } catch { throw .storage(error) }
    defer { snapshot.end() }
    return try RecentCommits.outcome(of: id, digest: digest, in: snapshot)
  }
}
