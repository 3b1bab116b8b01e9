import Dispatch
import Foundation
import Synchronization

/// A thread for one piece of work at a time. The work can park in the middle until its caller resumes it.
///
/// Either the caller or the work runs, never both. So a simulation that runs blocking code this way depends on its seed
/// alone.
final class ParkingThread: Sendable {
  /// Whether the work is done, or waits for ``resume()``.
  enum Progress { case finished, parked }

  private let toWork = DispatchSemaphore(value: 0)
  private let toCaller = DispatchSemaphore(value: 0)
  private let work = Mutex<(@Sendable () -> Void)?>(nil)
  private let isFinished = Atomic(true)

  /// Starts a thread, which waits for work until ``end()``.
  init() {
    let thread = Thread { self.loop() }
    thread.stackSize = 8 << 20
    thread.start()
  }

  private func loop() {
    while true {
      toWork.wait()
      guard let next = work.withLock({ $0.take() }) else { return }
      next()
      isFinished.store(true, ordering: .sequentiallyConsistent)
      toCaller.signal()
    }
  }

  /// Runs work until it is done or parks. The work before it is done.
  func run(_ next: @escaping @Sendable () -> Void) -> Progress {
    precondition(isFinished.exchange(false, ordering: .sequentiallyConsistent), "the thread has work")
    work.withLock { $0 = next }
    return resume()
  }

  /// Runs work that parked, until it is done or parks again.
  func resume() -> Progress {
    toWork.signal()
    toCaller.wait()
    return isFinished.load(ordering: .sequentiallyConsistent) ? .finished : .parked
  }

  /// Returns to the caller until it resumes the work. The work calls it, on this thread.
  func park() {
    toCaller.signal()
    toWork.wait()
  }

  /// Ends the thread, which has no work.
  func end() { toWork.signal() }
}
