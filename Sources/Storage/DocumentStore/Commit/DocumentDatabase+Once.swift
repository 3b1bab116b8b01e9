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
    for (var request, end) in begin([(request, completion)]) {
      do throws(CommitError) {
        request.reads = try prepare()
        submit([request], completions: [end])
      } catch { end(.failure(error)) }
    }
  }

  /// A request and the function to call at its end.
  typealias Begun = (request: CommitRequest, completion: CommitQueue.Completion)

  /// Begins commits. Returns those that are to be done: the outcome of the others is known, or a commit with their ID is
  /// under way. Cost for requests without an ID: one comparison.
  func begin(_ requests: [Begun]) -> [Begun] {
    var begun: [Begun] = []
    var mayBeKnown = false
    for (var request, completion) in requests {
      // A commit without writes leaves no trace, so it can be repeated.
      guard let id = request.id, !request.writes.isEmpty else {
        request.id = nil
        begun.append((request, completion))
        continue
      }
      request.digest = CommitDigest.of(request.writes)
      guard let end = inFlight.begin(id, digest: request.digest, completion: completion) else { continue }
      begun.append((request, end))
      mayBeKnown = true
    }
    return mayBeKnown ? unknown(begun) : begun
  }

  /// Ends the commits whose outcome is stored, and returns the others. The snapshot is taken after the commits were
  /// entered in ``inFlight``, so it shows every commit that left it before.
  ///
  /// If the outcome of a group is unknown, the store does not show whether it has a commit. Then none is done again.
  private func unknown(_ begun: [Begun]) -> [Begun] {
    let snapshot: any KeyValueSnapshot
    do throws(StorageError) { snapshot = try store.snapshot() } catch {
      for (_, end) in begun { end(.failure(.storage(error))) }
      return []
    }
    var results: [Result<CommitOutcome, CommitError>?] = []
    var recentCommits = RecentCommits()
    for (request, _) in begun {
      guard let id = request.id else {
        results.append(nil)
        continue
      }
      do throws(CommitError) {
        let known = try recentCommits.outcome(of: id, digest: request.digest, in: snapshot)
        results.append(known.map { .success($0) } ?? queue.lastDoubt.map { .failure(.storage($0)) })
      } catch { results.append(.failure(error)) }
    }
    snapshot.end()
    for (begun, result) in zip(begun, results) { if let result { begun.completion(result) } }
    return zip(begun, results).filter { $1 == nil }.map(\.0)
  }
}
