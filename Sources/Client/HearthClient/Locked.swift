import Foundation

/// State that several threads share, behind a lock. The standard library's `Mutex` needs iOS 18 and macOS 15.
final class Locked<State: Sendable>: @unchecked Sendable {
  // `@unchecked` is safe: every access to `state` holds `lock`.

  private let lock = NSLock()
  private var state: State

  init(_ state: State) { self.state = state }

  /// Calls `body` with exclusive access to the state. `body` must not call this lock again.
  func withLock<R>(_ body: (inout State) throws -> R) rethrows -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&state)
  }
}
