import Dispatch
import DocumentModel
import DocumentStore
import Synchronization

/// Commits of an import that are under way, a few at a time, so that the disk's syncs and the reading overlap.
final class InFlightCommits: Sendable {
  private struct State {
    var unchanged = 0
    var failure: Status?
  }

  static let commitsMax = 4

  private let state = Mutex(State())
  private let room = DispatchSemaphore(value: InFlightCommits.commitsMax)

  /// Waits for room for one more.
  /// - Throws: ``Status`` of an earlier one that failed.
  func begin() throws {
    room.wait()
    if let failure = state.withLock({ $0.failure }) {
      room.signal()
      throw failure
    }
  }

  /// Takes note of one that is done.
  func end(_ result: Result<CommitOutcome, Status>) {
    state.withLock { state in
      switch result {
      case .success(let outcome):
        state.unchanged += outcome.results.count { $0.updateTime != outcome.version }
      case .failure(let status): state.failure = state.failure ?? status
      }
    }
    room.signal()
  }

  /// Waits until none is under way.
  func waitForAll() {
    for _ in 0..<Self.commitsMax { room.wait() }
    for _ in 0..<Self.commitsMax { room.signal() }
  }

  /// Waits until none is under way, and returns how many documents were left as they were.
  /// - Throws: ``Status`` of one that failed.
  func finish() throws -> Int {
    waitForAll()
    let (unchanged, failure) = state.withLock { ($0.unchanged, $0.failure) }
    if let failure { throw failure }
    return unchanged
  }
}
