package import Basics
import Synchronization

/// Queues whose work runs when a test says so, on the thread of the test, in an order that a seed decides.
///
/// Work runs one piece at a time. The clock of ``WorkQueue/run(afterSeconds:_:)`` is ``advance(seconds:)``.
package final class SteppedQueues: Sendable {
  fileprivate struct Line {
    var waiting: [@Sendable () -> Void] = []
    var isRunning = false
  }

  private struct Delayed {
    var due: Int
    var line: Int
    var work: @Sendable () -> Void
  }

  private struct State {
    /// The serial queues; the first one has the work without order.
    var lines = [Line()]
    var delayed: [Delayed] = []
    var seconds = 0
    var random: SplitMix
    var isOver = false
  }

  private let state: Mutex<State>

  /// Creates no queues yet.
  package init(seed: UInt64) { state = Mutex(State(random: SplitMix(seed: seed))) }

  /// The queues for a database.
  package var queues: WorkQueues {
    WorkQueues(
      serial: { [self] _ in
        SteppedQueue(
          self,
          state.withLock { state in
            state.lines.append(Line())
            return state.lines.count - 1
          })
      },
      aside: { [self] in add($0, to: 0) }, urgent: { [self] in add($0, to: 0) })
  }

  /// Runs one piece of work of a random queue. Returns `false` if none waits.
  @discardableResult
  package func step() -> Bool {
    let line = state.withLock { state in
      let ready = state.lines.indices.filter { !state.lines[$0].waiting.isEmpty && !state.lines[$0].isRunning }
      return ready.isEmpty ? nil : state.random.pick(ready)
    }
    guard let line else { return false }
    runNext(of: line)
    return true
  }

  /// Runs work until none waits.
  package func runAll() {
    while step() {}
  }

  /// Forgets all work, also that which is added later, as the end of a process does.
  package func end() {
    let forgotten = state.withLock { state in
      defer { (state.lines, state.delayed, state.isOver) = (state.lines.map { _ in Line() }, [], true) }
      return (state.lines, state.delayed)
    }
    // Releasing it can add more work.
    withExtendedLifetime(forgotten) {}
  }

  /// The number of pieces of work that wait and are due.
  package var waiting: Int { state.withLock { $0.lines.reduce(0) { $0 + $1.waiting.count } } }

  /// Lets time pass. Work that becomes due waits for ``step()``.
  package func advance(seconds: Int) {
    state.withLock { state in
      state.seconds += seconds
      let due = state.delayed.filter { $0.due <= state.seconds }.sorted { $0.due < $1.due }
      state.delayed.removeAll { $0.due <= state.seconds }
      for delayed in due { state.lines[delayed.line].waiting.append(delayed.work) }
    }
  }

  fileprivate func add(_ work: @escaping @Sendable () -> Void, to line: Int) {
    state.withLock { if !$0.isOver { $0.lines[line].waiting.append(work) } }
  }

  fileprivate func add(_ work: @escaping @Sendable () -> Void, to line: Int, afterSeconds seconds: Int) {
    state.withLock { state in
      guard !state.isOver else { return }
      state.delayed.append(Delayed(due: state.seconds + seconds, line: line, work: work))
    }
  }

  fileprivate func runNext(of line: Int) {
    let work = state.withLock { state in
      state.lines[line].isRunning = true
      return state.lines[line].waiting.removeFirst()
    }
    work()
    state.withLock { $0.lines[line].isRunning = false }
  }

  /// Runs the work that waits in a queue. Work of the same queue would wait for itself.
  fileprivate func runAll(of line: Int) {
    precondition(state.withLock { !$0.lines[line].isRunning }, "work waits for its own queue")
    while state.withLock({ !$0.lines[line].waiting.isEmpty }) { runNext(of: line) }
  }
}

private final class SteppedQueue: WorkQueue {
  private let queues: SteppedQueues
  private let line: Int

  init(_ queues: SteppedQueues, _ line: Int) {
    self.queues = queues
    self.line = line
  }

  func run(_ work: @escaping @Sendable () -> Void) { queues.add(work, to: line) }

  func runAndWait(_ work: () -> Void) {
    queues.runAll(of: line)
    work()
  }

  func run(afterSeconds seconds: Int, _ work: @escaping @Sendable () -> Void) {
    queues.add(work, to: line, afterSeconds: seconds)
  }
}
