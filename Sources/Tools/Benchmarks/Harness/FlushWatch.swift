import Foundation
import Synchronization

/// Finds the times at which a server moves its commit log to the data file, by the bytes that it writes each second.
final class FlushWatch: Sendable {
  private static let napMicroseconds: UInt32 = 50_000

  private let flushes = Mutex<[ClosedRange<Double>]>([])
  private let isStopped = Atomic(false)
  private let running = DispatchGroup()

  /// Begins to watch. Above `bytesPerSecond` a flush runs. Times count since `watch` was made.
  init(of process: ChildProcess, above bytesPerSecond: Double, _ watch: Stopwatch) {
    let pid = process.pid
    running.enter()
    let thread = Thread { [self] in
      var last = (time: watch.seconds, bytes: ChildProcess.bytesWritten(by: pid))
      while !isStopped.load(ordering: .relaxed) {
        usleep(Self.napMicroseconds)
        let now = (time: watch.seconds, bytes: ChildProcess.bytesWritten(by: pid))
        if Double(now.bytes - last.bytes) > bytesPerSecond * (now.time - last.time) {
          flushes.withLock { $0.append(last.time...now.time) }
        }
        last = now
      }
      running.leave()
    }
    thread.start()
  }

  /// Ends the watch and returns the times of flushes, in seconds.
  func stop() -> [ClosedRange<Double>] {
    isStopped.store(true, ordering: .relaxed)
    running.wait()
    return flushes.withLock { $0 }
  }
}
