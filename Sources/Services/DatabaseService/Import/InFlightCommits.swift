import Dispatch
import DocumentModel
import DocumentStore
import Synchronization

/// The uncompleted commits of an import: a few at a time, so that reading overlaps with syncs of the disk.
final class InFlightCommits: Sendable {
  private struct State {
    var unchanged = 0
    var failure: Status?
  }

  static let commitsMax = 4

  private let state = Mutex(State())
  private let room = DispatchSemaphore(value: InFlightCommits.commitsMax)

  /// Waits until another commit may start.
  /// - Throws: ``Status`` of an earlier commit that failed.
  func begin() throws {
    room.wait()
    if let failure = state.withLock({ $0.failure }) {
      room.signal()
      throw failure
    }
  }

  /// Records the result of a commit.
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

  /// Waits until all commits have completed.
  func waitForAll() {
    for _ in 0..<Self.commitsMax { room.wait() }
    for _ in 0..<Self.commitsMax { room.signal() }
  }

  /// Waits until all commits have completed. Returns the number of documents that did not change.
  /// - Throws: ``Status`` of a commit that failed.
  func finish() throws -> Int {
    waitForAll()
    let (unchanged, failure) = state.withLock { ($0.unchanged, $0.failure) }
    if let failure { throw failure }
    return unchanged
  }
}
