import Basics
import Synchronization

/// The line of commits that are too large for the caller's thread. A plan takes a multiple of its request's memory, so
/// only some commits of the process are planned and written at a time. The others wait as requests.
final class LargeCommits: Sendable {
  /// The requests under way at the same time, in bytes. A larger one runs alone.
  static let runningBytesMax = 24 << 20
  /// The line of the process.
  static let line = LargeCommits()

  private struct Waiting: Sendable {
    var bytes: Int
    var start: @Sendable () -> Void
  }

  private struct State {
    var runningBytes = 0
    var next: Waiting?
    var waiting = JobQueue<Waiting>()

    /// Takes the commits that may start.
    mutating func starting() -> [Waiting] {
      var starting: [Waiting] = []
      while let first = next ?? waiting.popFirst() {
        guard runningBytes == 0 || runningBytes + first.bytes <= runningBytesMax else {
          next = first
          break
        }
        next = nil
        runningBytes += first.bytes
        starting.append(first)
      }
      return starting
    }
  }

  private let state = Mutex(State())

  /// Calls `start` when there is room, on any thread, with completions that it passes on. The commits are under way until
  /// each of them was called.
  func run(
    bytes: Int, _ completions: [CommitQueue.Completion],
    _ start: @escaping @Sendable ([CommitQueue.Completion]) -> Void
  ) {
    let unfinished = Unfinished(count: completions.count)
    let counted = completions.map { completion -> CommitQueue.Completion in
      { [self] result in
        completion(result)
        if unfinished.end() { ended(bytes) }
      }
    }
    state.withLock { $0.waiting.append(Waiting(bytes: bytes) { start(counted) }) }
    startNext()
  }

  private func ended(_ bytes: Int) {
    state.withLock { $0.runningBytes -= bytes }
    startNext()
  }

  private func startNext() {
    for waiting in state.withLock({ $0.starting() }) { waiting.start() }
  }

  /// Counts the commits of one call that are unfinished.
  private final class Unfinished: Sendable {
    private let count: Atomic<Int>
    init(count: Int) { self.count = Atomic(count) }
    /// Returns whether it was the last one.
    func end() -> Bool { count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
  }
}
