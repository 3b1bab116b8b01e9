import Glibc

/// A counting semaphore for threads that wait for a loop. A loop itself never waits on it.
final class Semaphore: @unchecked Sendable {
  // Sendable: any thread may use a `sem_t`, and the pointer never changes.
  private let raw: UnsafeMutablePointer<sem_t>

  init() {
    raw = .allocate(capacity: 1)
    sem_init(raw, 0, 0)
  }

  deinit {
    sem_destroy(raw)
    raw.deallocate()
  }

  func signal() {
    sem_post(raw)
  }

  /// Waits until the given time of day at most. Returns whether there was a signal.
  func wait(until deadline: timespec) -> Bool {
    var deadline = deadline
    while sem_timedwait(raw, &deadline) != 0 {
      guard errno == EINTR else { return false }
    }
    return true
  }

  func wait() {
    while sem_wait(raw) != 0 && errno == EINTR {}
  }
}
