import Dispatch
import Glibc
import Testing
import TestSupport

@testable import Transport

@Suite struct EventLoopTests {
  @Test func workRunsOnTheLoopInOrder() throws {
    let loop = try EventLoop(name: "test")
    try loop.start()
    let seen = Observed<[Int]>([])
    #expect(!loop.isOnLoop)
    for index in 0..<1000 { loop.execute { seen.update { $0.append(loop.isOnLoop ? index : -1) } } }
    loop.stopAndJoin()
    #expect(seen.value == Array(0..<1000))
    #expect(!loop.execute {})
  }

  @Test func noWakeUpIsLostWhenManyThreadsQueueWork() throws {
    let loop = try EventLoop(name: "test")
    try loop.start()
    let (threads, rounds) = (4, 2_000)
    DispatchQueue.concurrentPerform(iterations: threads) { _ in
      // Each round ends only if the loop wakes for it.
      for _ in 0..<rounds { loop.executeAndWait {} }
    }
    loop.stopAndJoin()
  }

  @Test func muchQueuedWorkIsDividedIntoTurns() throws {
    let loop = try EventLoop(name: "test")
    let turns = Observed(0)
    loop.onTurnEnd = { turns.update { $0 += 1 } }
    try loop.start()
    let isQueued = Semaphore()
    loop.execute { isQueued.wait() }
    let itemMicroseconds = 1_000
    let items = 10 * LoopTime.waitingMicrosecondsMax / itemMicroseconds
    let seen = Observed<[Int]>([])
    for index in 0..<items {
      loop.execute {
        let end = EventLoop.microseconds() + itemMicroseconds
        while EventLoop.microseconds() < end {}
        seen.update { $0.append(index) }
      }
    }
    isQueued.signal()
    loop.stopAndJoin()
    #expect(seen.value == Array(0..<items))
    // A turn begins no further item when its time has passed.
    #expect(turns.value >= 9)
  }

  @Test func timersRunWhenDueAndOnlyOnce() throws {
    let clock = ManualClock()
    let loop = try EventLoop(name: "test", clock: clock)
    try loop.start()
    let seen = Observed<[String]>([])
    loop.executeAndWait {
      loop.schedule(afterMilliseconds: 100) { seen.update { $0.append("100") } }
      let cancelled = loop.schedule(afterMilliseconds: 100) { seen.update { $0.append("cancelled") } }
      loop.schedule(afterMilliseconds: 200) { seen.update { $0.append("200") } }
      loop.schedule(afterMilliseconds: 50) {
        seen.update { $0.append("50") }
        cancelled.cancel()
        cancelled.cancel()
        loop.schedule(afterMilliseconds: 0) { seen.update { $0.append("added") } }
      }
    }
    for (step, expected) in [
      (49, []), (1, ["50"]), (0, ["50", "added"]), (60, ["50", "added", "100"]),
      (1000, ["50", "added", "100", "200"]), (1000, ["50", "added", "100", "200"]),
    ] {
      clock.advance(milliseconds: step)
      loop.executeAndWait { loop.sweep() }
      #expect(seen.value == expected)
    }
    loop.stopAndJoin()
  }

  @Test func signalsAreReported() throws {
    let signalled = Semaphore()
    let seen = Observed<Int32>(0)
    let watcher = try SignalWatcher([SIGUSR2]) { signal in
      seen.value = signal
      signalled.signal()
    }
    kill(getpid(), SIGUSR2)
    signalled.wait()
    #expect(seen.value == SIGUSR2)
    watcher.stop()
  }
}
