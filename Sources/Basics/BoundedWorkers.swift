import Dispatch
import Glibc
import Synchronization

/// A fixed number of threads for work that would block an event loop: hashing, waiting for a disk.
///
/// Jobs start in the order in which they arrive. With one thread, a job ends before the next one starts. A thread is
/// created when a job arrives and no thread is idle. The threads end after the pool was released and all its jobs have
/// run.
///
/// ``run(_:)`` refuses a job if too many are unfinished, which bounds memory and delay. Use it at the start of a
/// request, whose client is then told that the server is busy. ``runAlways(_:)`` never refuses. Use it only to continue
/// something that already holds a resource, and that has a limit of its own:
///
/// - the writes of an upload: limited by the uploads in progress, and by the bytes that each of them may have in memory
///   before the server stops reading from its client
/// - the reads of a file for a response: one per response, so limited by the connections and their streams
package final class BoundedWorkers: Sendable {
  /// Work for a thread of the pool.
  package typealias Job = @Sendable () -> Void

  private let threads: Threads

  /// Creates a pool. Its first thread is created with the first job.
  ///
  /// - Parameters:
  ///   - name: the name of the threads in diagnostics. The kernel keeps the first 15 bytes.
  ///   - threads: the number of threads, at least 1.
  ///   - unfinishedMax: the number of jobs, running or waiting, at which ``run(_:)`` refuses another. A pool whose
  ///     jobs all use ``runAlways(_:)`` needs none.
  ///   - yieldsToLoops: whether event loops run first if the processors are busy. Use it for many threads that compute.
  package init(_ name: String, threads: Int = 1, unfinishedMax: Int = .max, yieldsToLoops: Bool = false) {
    self.threads = Threads(
      name, countMax: max(1, threads), unfinishedMax: unfinishedMax, yieldsToLoops: yieldsToLoops)
  }

  deinit { threads.close() }

  /// Runs `job` on a thread of the pool. Returns `false`, and never runs it, if too many jobs are unfinished.
  package func run(_ job: @escaping Job) -> Bool { threads.add(job, always: false) }

  /// Runs `job` on a thread of the pool, after any number of others.
  package func runAlways(_ job: @escaping Job) { _ = threads.add(job, always: true) }
}

/// The threads of a pool and their queue. The threads keep this object alive, and the pool closes it.
private final class Threads: Sendable {
  private struct State {
    var queue = JobQueue<BoundedWorkers.Job>()
    var unfinished = 0
    var count = 0
    /// The threads that wait for `wake`, without those that it has been signaled for.
    var idle = 0
    var isClosed = false
  }

  private enum Step {
    case run(BoundedWorkers.Job)
    case wait
    case end
  }

  private let name: String
  private let countMax: Int
  private let unfinishedMax: Int
  private let yieldsToLoops: Bool
  private let state = Mutex(State())
  private let wake = DispatchSemaphore(value: 0)

  init(_ name: String, countMax: Int, unfinishedMax: Int, yieldsToLoops: Bool) {
    self.yieldsToLoops = yieldsToLoops
    self.name = name
    self.countMax = countMax
    self.unfinishedMax = unfinishedMax
  }

  func add(_ job: @escaping BoundedWorkers.Job, always: Bool) -> Bool {
    enum Outcome { case refused, waits, wakesThread, needsThread }
    let outcome: Outcome = state.withLock { state in
      guard always || state.unfinished < unfinishedMax else { return .refused }
      state.queue.append(job)
      state.unfinished += 1
      if state.idle > 0 {
        state.idle -= 1
        return .wakesThread
      }
      guard state.count < countMax else { return .waits }
      state.count += 1
      return .needsThread
    }
    switch outcome {
    case .refused: return false
    case .waits: break
    case .wakesThread: wake.signal()
    case .needsThread: start()
    }
    return true
  }

  /// Ends the threads after all jobs have run.
  func close() {
    let idle = state.withLock { state in
      state.isClosed = true
      defer { state.idle = 0 }
      return state.idle
    }
    for _ in 0..<idle { wake.signal() }
  }

  private func start() {
    var thread = pthread_t()
    let threads = Unmanaged.passRetained(self)
    // The system allows no more threads for now. Like Dispatch, wait until it does.
    while true {
      let status = pthread_create(
        &thread, nil,
        { context in
          if let context { Unmanaged<Threads>.fromOpaque(context).takeRetainedValue().work() }
          return nil
        }, threads.toOpaque())
      if status == 0 { break }
      usleep(10_000)
    }
    pthread_detach(thread)
  }

  private func work() {
    setName()
    // Linux applies this to the calling thread only.
    if yieldsToLoops { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10) }
    var hasRun = false
    while true {
      switch state.withLock({ next(&$0, hasRun) }) {
      case .run(let job):
        job()
        hasRun = true
      case .wait:
        wake.wait()
        hasRun = false
      case .end: return
      }
    }
  }

  /// Names the calling thread. Swift cannot call `prctl`, so this writes the file that does the same.
  private func setName() {
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = Array(name.utf8.prefix(15)).withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    Glibc.close(file)
  }

  private func next(_ state: inout State, _ hasRun: Bool) -> Step {
    if hasRun { state.unfinished -= 1 }
    if let job = state.queue.popFirst() { return .run(job) }
    if state.isClosed { return .end }
    state.idle += 1
    return .wait
  }
}

/// Jobs that run one after the other, in the order in which they were added, on the threads of a pool that other lanes
/// share. The lanes take turns after each job, so a lane with many jobs delays others by one job.
package final class WorkerLane: Sendable {
  private struct State {
    var waiting = JobQueue<BoundedWorkers.Job>()
    /// The jobs that wait or run.
    var unfinished = 0
    /// Whether a thread of the pool runs a job, or will.
    var isRunning = false
  }

  private let workers: BoundedWorkers
  private let unfinishedMax: Int
  private let state = Mutex(State())

  /// Creates a lane without jobs. It uses a thread only while it has jobs. `unfinishedMax` is the number of jobs, running
  /// or waiting, at which ``run(_:)`` refuses another.
  package init(on workers: BoundedWorkers, unfinishedMax: Int = .max) {
    self.workers = workers
    self.unfinishedMax = unfinishedMax
  }

  /// Runs `job` after all that were added before it. Returns `false`, and never runs it, if too many are unfinished.
  package func run(_ job: @escaping BoundedWorkers.Job) -> Bool {
    enum Outcome { case refused, waits, starts }
    let outcome: Outcome = state.withLock { state in
      guard state.unfinished < unfinishedMax else { return .refused }
      state.unfinished += 1
      state.waiting.append(job)
      defer { state.isRunning = true }
      return state.isRunning ? .waits : .starts
    }
    if outcome == .starts { workers.runAlways { self.runNext() } }
    return outcome != .refused
  }

  /// Runs `job` after all that were added before it. It never refuses a job: its owner bounds their number.
  package func runAlways(_ job: @escaping BoundedWorkers.Job) {
    let starts = state.withLock { state in
      state.unfinished += 1
      state.waiting.append(job)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if starts { workers.runAlways { self.runNext() } }
  }

  /// Runs one job. The next one waits for its turn among the jobs of the pool, so no lane keeps a thread from others.
  private func runNext() {
    let job = state.withLock { $0.waiting.popFirst() }
    job?()
    let hasMore = state.withLock { state in
      state.unfinished -= 1
      state.isRunning = !state.waiting.isEmpty
      return state.isRunning
    }
    if hasMore { workers.runAlways { self.runNext() } }
  }
}
