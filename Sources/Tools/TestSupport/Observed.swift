import Foundation

/// A value that several threads change, and for which a test can wait without asking for it again and again.
///
/// `@unchecked Sendable`: the value is read and written with the condition locked.
package final class Observed<Value: Sendable>: @unchecked Sendable {
  private let condition = NSCondition()
  private var stored: Value

  package init(_ value: Value) { stored = value }

  /// The value. To change a part of it, use ``update(_:)``, which is one step for other threads.
  package var value: Value {
    get { condition.withLock { stored } }
    set { update { $0 = newValue } }
  }

  /// Changes the value and wakes the threads that wait for it.
  /// - Throws: the error of `change`.
  @discardableResult
  package func update<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
    condition.lock()
    defer {
      condition.broadcast()
      condition.unlock()
    }
    return try change(&stored)
  }

  /// Blocks this thread until the value satisfies a condition. Returns `false` if it does not within
  /// `secondsMax`, which is far above the need of any machine. It only bounds a test that fails. Pass `nil` to wait
  /// without a limit.
  package func wait(secondsMax: Double? = 600, until holds: (Value) -> Bool) -> Bool {
    let deadline = secondsMax.map { Date(timeIntervalSinceNow: $0) }
    return condition.withLock {
      while !holds(stored) {
        if let deadline {
          guard condition.wait(until: deadline) else { return holds(stored) }
        } else {
          condition.wait()
        }
      }
      return true
    }
  }

  /// Suspends the task until the value satisfies a condition, as ``wait(secondsMax:until:)``.
  package func becomes(
    secondsMax: Double? = 600, _ holds: @escaping @Sendable (Value) -> Bool
  ) async -> Bool {
    (try? await onDedicatedThread { self.wait(secondsMax: secondsMax, until: holds) }) ?? false
  }
}
