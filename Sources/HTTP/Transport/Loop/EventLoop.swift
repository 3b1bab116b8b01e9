import Basics
import CUV
import Glibc
import Synchronization

/// A libuv loop on its own thread. Objects of the loop are used on that thread only. Other threads reach them
/// through `execute`.
package final class EventLoop: @unchecked Sendable {
  // Sendable: `queue` and `threadID` are synchronized, and `clock` is Sendable. Everything else is used on the
  // loop's own thread, before that thread starts, or after it has ended.

  /// The interval of checks of deadlines and timers, in milliseconds: the precision of every time limit.
  package static let sweepMilliseconds = 250

  private struct Queue {
    var work: [@Sendable () -> Void] = []
    var isOpen = true
  }

  let raw: UnsafeMutablePointer<uv_loop_t>
  private let wakeup: LoopWakeup
  /// Active while work waits for its turn, so that the loop polls without waiting.
  private let keepsTurning: UnsafeMutablePointer<uv_idle_t>
  private let sweeper: UnsafeMutablePointer<uv_timer_t>
  private let thread: UnsafeMutablePointer<uv_thread_t>
  private let threadID = Atomic<UInt>(0)
  private let queue = Mutex(Queue())
  private let clock: ManualClock?
  private let name: String
  private var timers: [LoopTimer] = []
  private var endActions: [() -> Void] = []
  private let turnEnd: UnsafeMutablePointer<uv_check_t>
  /// The work of `queue` that the loop has taken over.
  private var arrived = JobQueue<() -> Void>()
  private var waitingRequests = JobQueue<() -> Void>()
  private var nextTurn = JobQueue<() -> Void>()
  /// The microseconds that requests of sockets have taken in this turn.
  private var requestMicroseconds = 0
  /// The end of the time of the item that has its turn, or `nil` while sockets are served.
  private var itemEndMicroseconds: Int?
  /// Whether the loop never runs. Time is not limited then.
  private var isAdopted = false
  private var isOpen = false

  /// Called at every sweep, on the loop's thread. Set it before `start` or on the loop.
  var onSweep: (() -> Void)?
  /// Called in every turn after the sockets were served, on the loop's thread. Set it like `onSweep`.
  var onTurnEnd: (() -> Void)?

  /// Creates a loop that does not run yet.
  ///
  /// - Parameter name: the name of the thread in a debugger. The kernel keeps 15 bytes of it.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if the process has no descriptors left.
  package init(name: String, clock: ManualClock? = nil) throws(TransportError) {
    self.name = name
    self.clock = clock
    raw = .allocate(capacity: 1)
    keepsTurning = .allocate(capacity: 1)
    sweeper = .allocate(capacity: 1)
    thread = .allocate(capacity: 1)
    turnEnd = .allocate(capacity: 1)
    let status = uv_loop_init(raw)
    guard status == 0 else { throw .resourceExhausted(what: "an event loop", reason: describe(status)) }
    do throws(TransportError) {
      wakeup = try LoopWakeup(raw)
    } catch {
      uv_loop_close(raw)
      throw error
    }
    uv_timer_init(raw, sweeper)
    uv_idle_init(raw, keepsTurning)
    uv_check_init(raw, turnEnd)
    sweeper.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    turnEnd.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    isOpen = true
  }

  deinit {
    // Only a loop that never ran is still open.
    if isOpen { tearDown() }
    raw.deallocate()
    keepsTurning.deallocate()
    sweeper.deallocate()
    thread.deallocate()
    turnEnd.deallocate()
  }

  /// Starts the thread. Call once.
  ///
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if no thread can be created.
  package func start() throws(TransportError) {
    let period = UInt64(EventLoop.sweepMilliseconds)
    uv_timer_start(sweeper, { EventLoop.from($0?.pointee.data)?.sweep() }, period, period)
    wakeup.start { [unowned self] in takeQueued() }
    uv_check_start(turnEnd) { EventLoop.from($0?.pointee.data)?.endTurn() }
    // The thread keeps the loop alive until it has ended.
    let retained = Unmanaged.passRetained(self)
    let status = uv_thread_create(thread, { EventLoop.main($0) }, retained.toOpaque())
    guard status == 0 else {
      retained.release()
      throw .resourceExhausted(what: "a thread", reason: describe(status))
    }
  }

  /// Ends the loop after the queued work, and waits for its thread. Call once, from another thread, after everything
  /// opened on the loop has been closed.
  package func stopAndJoin() {
    precondition(!isOnLoop, "stopAndJoin was called on the loop itself")
    execute { [self] in
      let actions = endActions
      endActions = []
      for action in actions { action() }
      uv_stop(raw)
    }
    uv_thread_join(thread)
  }

  /// Makes the caller's thread the loop's thread, for a loop that is never started.
  func adoptThread() {
    isAdopted = true
    threadID.store(UInt(pthread_self()), ordering: .relaxed)
  }

  /// Runs `action` once on the loop before it ends, to close what was opened there. Call on the loop's thread only.
  func beforeEnd(_ action: @escaping () -> Void) { endActions.append(action) }

  /// Whether the caller is on the loop's thread.
  package var isOnLoop: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

  /// Milliseconds on the loop's clock, constant during one turn of the loop. Only differences are meaningful.
  package var nowMilliseconds: Int {
    if let clock { return clock.milliseconds }
    return Int(truncatingIfNeeded: uv_now(raw))
  }

  /// Returns microseconds of the system's monotonic clock, to measure durations. Any thread may call it. Costs no
  /// system call.
  static func microseconds() -> Int { Int(truncatingIfNeeded: uv_hrtime() / 1000) }

  /// Runs `work` on the loop's thread at its next turn, in the order queued, also if called on that thread. Any
  /// thread may call it. Costs one lock and at most one wake-up. The queue itself is unbounded: each caller queues a
  /// bounded number of items per exchange or task. The work of a turn has ``LoopTime/waitingMicrosecondsMax``; the rest
  /// waits for the next turn, so that a thread that ends much work at once does not delay the sockets.
  ///
  /// - Returns: `false` if the loop has ended, so that the work will not run.
  @discardableResult
  package func execute(_ work: @escaping @Sendable () -> Void) -> Bool {
    let count = queue.withLock { queue in
      guard queue.isOpen else { return 0 }
      queue.work.append(work)
      return queue.work.count
    }
    // Without the lock: the loop may run at once on this processor, and needs the lock.
    if count == 1 { wakeup.send() }
    return count > 0
  }

  /// Runs `work` after the sockets had their turn, and after the work that was added before. All such work together
  /// has ``LoopTime/waitingMicrosecondsMax`` in each turn; the rest waits for the next turn. Call on the loop's thread
  /// only. Costs no lock.
  package func atNextTurn(_ work: @escaping () -> Void) {
    nextTurn.append(work)
    if nextTurn.count == 1 { keepTurning() }
  }

  /// Does the same for requests that found no time when they arrived. Their time does not depend on other work.
  func awaitRequestTurn(_ work: @escaping () -> Void) {
    waitingRequests.append(work)
    if waitingRequests.count == 1 { keepTurning() }
  }

  /// Has the loop poll without waiting until ``endTurn()`` has run all work that waits. Costs no system call.
  private func keepTurning() { uv_idle_start(keepsTurning) { _ in } }

  /// Whether another request may begin in this turn.
  var hasTimeForRequest: Bool {
    itemEndMicroseconds == nil ? requestMicroseconds < LoopTime.requestsMicrosecondsMax : hasTime
  }

  /// Counts the time of a request that began at `begunMicroseconds`. Costs a look at the clock.
  func countRequest(since begunMicroseconds: Int) {
    guard !isAdopted else { return }
    requestMicroseconds += Self.microseconds() - begunMicroseconds
  }

  /// Whether work that may take long can begin at once: nothing waits for its turn, and there is time.
  var isCalm: Bool { nextTurn.isEmpty && hasTime }

  /// Whether a response or other work may proceed in this turn. Costs a look at the clock.
  package var hasTime: Bool {
    if isAdopted { return true }
    let end = itemEndMicroseconds ?? Int(truncatingIfNeeded: uv_now(raw)) * 1000 + LoopTime.responsesMicrosecondsMax
    return Self.microseconds() < end
  }

  /// Runs `work` on the loop and waits for it. Never call it on the loop.
  func executeAndWait(_ work: @escaping @Sendable () -> Void) {
    precondition(!isOnLoop, "executeAndWait was called on the loop itself")
    let done = Semaphore()
    let isQueued = execute {
      work()
      done.signal()
    }
    if isQueued { done.wait() }
  }

  /// Runs `action` once, at the first sweep `milliseconds` or more from now. Call on the loop's thread only.
  @discardableResult
  package func schedule(afterMilliseconds milliseconds: Int, _ action: @escaping () -> Void) -> LoopTimer {
    let timer = LoopTimer(
      loop: self, deadlineMilliseconds: nowMilliseconds + milliseconds, index: timers.count, action: action)
    timers.append(timer)
    return timer
  }

  /// Removes a timer in constant time by moving the last one to its position.
  func remove(_ timer: LoopTimer) {
    guard let index = timer.index else { return }
    timer.index = nil
    let last = timers.removeLast()
    guard last !== timer else { return }
    timers[index] = last
    last.index = index
  }

  /// Runs timers that are due. The loop calls this periodically. Tests call it after moving the clock.
  func sweep() {
    let now = nowMilliseconds
    // Actions may add and cancel timers, so collect the due ones first.
    for timer in timers.filter({ $0.deadlineMilliseconds <= now }) where timer.index != nil {
      remove(timer)
      timer.action()
    }
    onSweep?()
  }

  /// Takes over the queued work, which runs at the end of the turn.
  private func takeQueued() {
    let work = queue.withLock { queue in
      let work = queue.work
      queue.work = []
      return work
    }
    for item in work { arrived.append(item) }
  }

  /// Runs the work that waits, as far as the time of the turn allows.
  private func endTurn() {
    requestMicroseconds = 0
    onTurnEnd?()
    if isIdle { return }
    runWaiting(\.arrived)
    runWaiting(\.waitingRequests)
    runWaiting(\.nextTurn)
    itemEndMicroseconds = nil
    if isIdle { uv_idle_stop(keepsTurning) } else { keepTurning() }
  }

  /// Whether no work waits for its turn.
  private var isIdle: Bool { arrived.isEmpty && waitingRequests.isEmpty && nextTurn.isEmpty }

  private func runWaiting(_ queue: ReferenceWritableKeyPath<EventLoop, JobQueue<() -> Void>>) {
    // Work that adds more work must wait for the next turn, so that sockets are served in between.
    var left = self[keyPath: queue].count
    var now = Self.microseconds()
    let end = now + LoopTime.waitingMicrosecondsMax
    while left > 0, now < end, let item = self[keyPath: queue].popFirst() {
      itemEndMicroseconds = now + LoopTime.itemMicrosecondsMax
      item()
      left -= 1
      now = Self.microseconds()
    }
  }

  private static func main(_ argument: UnsafeMutableRawPointer?) {
    guard let argument else { return }
    let loop = Unmanaged<EventLoop>.fromOpaque(argument).takeRetainedValue()
    loop.threadID.store(UInt(pthread_self()), ordering: .relaxed)
    loop.name.withCString { cuv_name_thread($0) }
    uv_run(loop.raw, UV_RUN_DEFAULT)
    loop.queue.withLock { queue in
      queue.isOpen = false
      queue.work = []
    }
    loop.tearDown()
  }

  /// Closes libuv's handles. Everything that others opened on the loop must be closed or closing.
  private func tearDown() {
    isOpen = false
    timers = []
    arrived = JobQueue()
    waitingRequests = JobQueue()
    nextTurn = JobQueue()
    onSweep = nil
    onTurnEnd = nil
    wakeup.close()
    uv_close(UnsafeMutableRawPointer(keepsTurning).assumingMemoryBound(to: uv_handle_t.self), nil)
    uv_close(UnsafeMutableRawPointer(sweeper).assumingMemoryBound(to: uv_handle_t.self), nil)
    uv_close(UnsafeMutableRawPointer(turnEnd).assumingMemoryBound(to: uv_handle_t.self), nil)
    uv_run(raw, UV_RUN_DEFAULT)
    let status = uv_loop_close(raw)
    precondition(status == 0, "a handle is still open at the end of its loop")
  }

  private static func from(_ data: UnsafeMutableRawPointer?) -> EventLoop? {
    data.map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
  }
}

/// Returns the text of a libuv status code.
func describe(_ status: Int32) -> String {
  String(cString: uv_strerror(status))
}
