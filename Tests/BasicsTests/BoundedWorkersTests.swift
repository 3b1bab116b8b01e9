import Basics
import Dispatch
import Synchronization
import Testing

@Suite struct BoundedWorkersTests {
  /// Blocks the threads of a pool until it is opened.
  private final class Gate: Sendable {
    let entered = DispatchSemaphore(value: 0)
    let opened = DispatchSemaphore(value: 0)

    func pass() {
      entered.signal()
      opened.wait()
    }
  }

  @Test func fullPoolRefusesJobs() {
    let pool = BoundedWorkers("test", unfinishedMax: 2)
    let gate = Gate()
    let done = DispatchSemaphore(value: 0)
    #expect(pool.run { gate.pass() })
    #expect(pool.run { done.signal() })
    #expect(!pool.run { Issue.record("a refused job ran") })
    gate.opened.signal()
    done.wait()
  }

  @Test func fullPoolRunsJobsThatMustNotBeRefused() {
    let pool = BoundedWorkers("test", unfinishedMax: 1)
    let gate = Gate()
    let done = DispatchSemaphore(value: 0)
    #expect(pool.run { gate.pass() })
    for _ in 0..<3000 { pool.runAlways { done.signal() } }
    #expect(!pool.run { Issue.record("a refused job ran") })
    gate.opened.signal()
    for _ in 0..<3000 { done.wait() }
  }

  @Test func finishedJobsMakeRoom() {
    let pool = BoundedWorkers("test", threads: 2, unfinishedMax: 2)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<1000 {
      // A job is unfinished for a moment after it signaled.
      while !pool.run({ done.signal() }) {}
      done.wait()
    }
  }

  @Test func jobsOfOneThreadRunInOrder() {
    let pool = BoundedWorkers("test")
    let seen = Mutex<[Int]>([])
    let done = DispatchSemaphore(value: 0)
    for number in 0..<5000 { pool.runAlways { seen.withLock { $0.append(number) } } }
    pool.runAlways { done.signal() }
    done.wait()
    #expect(seen.withLock { $0 } == Array(0..<5000))
  }

  @Test func poolUsesAllItsThreadsButNoMore() {
    let pool = BoundedWorkers("test", threads: 3)
    let gate = Gate()
    let running = Atomic(0)
    let most = Atomic(0)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<10 {
      pool.runAlways {
        most.max(running.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
        gate.pass()
        running.subtract(1, ordering: .relaxed)
        done.signal()
      }
    }
    for _ in 0..<3 { gate.entered.wait() }
    for _ in 0..<10 { gate.opened.signal() }
    for _ in 0..<10 { done.wait() }
    #expect(most.load(ordering: .relaxed) == 3)
  }

  @Test func releasedPoolRunsItsJobs() {
    let gate = Gate()
    let done = DispatchSemaphore(value: 0)
    do {
      let pool = BoundedWorkers("test")
      pool.runAlways { gate.pass() }
      for _ in 0..<10 { pool.runAlways { done.signal() } }
    }
    gate.opened.signal()
    for _ in 0..<10 { done.wait() }
  }

  @Test func jobsOfALaneRunInOrderOnTheThreadsOfThePool() {
    let pool = BoundedWorkers("test", threads: 4)
    let lanes = (0..<8).map { _ in WorkerLane(on: pool) }
    let seen = Mutex([[Int]](repeating: [], count: lanes.count))
    let done = DispatchSemaphore(value: 0)
    for number in 0..<500 {
      for (index, lane) in lanes.enumerated() { lane.runAlways { seen.withLock { $0[index].append(number) } } }
    }
    for lane in lanes { lane.runAlways { done.signal() } }
    for _ in lanes { done.wait() }
    #expect(seen.withLock { $0 } == [[Int]](repeating: Array(0..<500), count: lanes.count))
  }

  @Test func fullLaneRefusesJobsAndOtherLanesDoNot() {
    let pool = BoundedWorkers("test", threads: 1)
    let (full, other) = (WorkerLane(on: pool, unfinishedMax: 2), WorkerLane(on: pool, unfinishedMax: 2))
    let gate = Gate()
    let order = Mutex<[String]>([])
    let done = DispatchSemaphore(value: 0)
    #expect(full.run { gate.pass() })
    #expect(full.run { order.withLock { $0.append("full") } })
    #expect(!full.run { order.withLock { $0.append("refused") } })
    full.runAlways { order.withLock { $0.append("always") } }
    #expect(other.run { order.withLock { $0.append("other") } })
    full.runAlways { done.signal() }
    gate.opened.signal()
    done.wait()
    // The lanes take turns: the other one, which came last, does not wait for all jobs of the first.
    #expect(order.withLock { $0 } == ["other", "full", "always"])
    #expect(full.run {} && other.run {})
  }

  @Test func blockedLaneLeavesTheOtherThreadsToOthers() {
    let pool = BoundedWorkers("test", threads: 2)
    let (blocked, other) = (WorkerLane(on: pool), WorkerLane(on: pool))
    let gate = Gate()
    let done = DispatchSemaphore(value: 0)
    blocked.runAlways { gate.pass() }
    for _ in 0..<100 { blocked.runAlways { done.signal() } }
    for _ in 0..<100 { other.runAlways { done.signal() } }
    for _ in 0..<100 { done.wait() }
    gate.opened.signal()
    for _ in 0..<100 { done.wait() }
  }
}
