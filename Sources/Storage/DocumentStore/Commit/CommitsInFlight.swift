import DocumentModel
import Synchronization

/// The commits with an ID that this process has begun and not finished.
///
/// A request that arrives again meanwhile waits here for the outcome of the first one. Without this, it could fail before
/// the first one is written: its plan would be made of a state without the first one, and its transaction would be over.
///
/// Memory: one entry for each unfinished commit, and one closure for each exchange that waits.
final class CommitsInFlight: Sendable {
  private struct Entry {
    var digest: UInt64
    var waiting: [CommitQueue.Completion] = []
  }

  private let entries = Mutex<[RequestID: Entry]>([:])

  /// Begins a commit and returns the completion to call at its end, or returns `nil` if a commit with the ID is under
  /// way. Then its outcome, or ``CommitError/idReused`` if it has other writes, completes this one too.
  func begin(
    _ id: RequestID, digest: UInt64, completion: @escaping CommitQueue.Completion
  ) -> CommitQueue.Completion? {
    let known = entries.withLock { entries -> UInt64? in
      guard let entry = entries[id] else {
        entries[id] = Entry(digest: digest)
        return nil
      }
      if entry.digest == digest { entries[id]?.waiting.append(completion) }
      return entry.digest
    }
    guard let known else {
      return { [self] result in
        let waiting = entries.withLock { $0.removeValue(forKey: id)?.waiting ?? [] }
        completion(result)
        for completion in waiting { completion(result) }
      }
    }
    if known != digest { completion(.failure(.idReused)) }
    return nil
  }
}
