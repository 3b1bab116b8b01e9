import Foundation
import Glibc
import Synchronization

/// Notes when a virtual machine stands still: when the host gives it no processor although its most urgent threads want
/// one. No program in it can do anything then, so a latency that contains such a time says little about a server.
///
/// A thread of realtime priority for each processor sleeps a little again and again. If it wakes much too late, the
/// processor stood still. Without the right to such a priority, nothing is noted.
final class StallWatch: Sendable {
  /// The shortest time that is noted, in seconds.
  private static let secondsMin = 0.0015
  private static let napMicroseconds: UInt32 = 300

  private let stalls = Mutex<[ClosedRange<Double>]>([])
  private let isStopped = Atomic(false)
  private let running = DispatchGroup()

  /// Begins to watch. Times count since `watch` was made.
  init(_ watch: Stopwatch) {
    for _ in 0..<sysconf(Int32(_SC_NPROCESSORS_ONLN)) {
      running.enter()
      let thread = Thread { [self] in
        defer { running.leave() }
        var priority = sched_param(sched_priority: 50)
        guard sched_setscheduler(0, SCHED_FIFO, &priority) == 0 else { return }
        note(watch)
      }
      thread.start()
    }
  }

  private func note(_ watch: Stopwatch) {
    var last = watch.seconds
    while !isStopped.load(ordering: .relaxed) {
      usleep(Self.napMicroseconds)
      let now = watch.seconds
      if now - last > Self.secondsMin { stalls.withLock { $0.append(last...now) } }
      last = now
    }
  }

  /// Ends the watch and returns the times at which the machine stood still, in seconds.
  func stop() -> [ClosedRange<Double>] {
    isStopped.store(true, ordering: .relaxed)
    running.wait()
    return stalls.withLock { $0 }
  }
}
