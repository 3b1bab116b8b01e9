import Dispatch
import Foundation
import Synchronization

/// Runs blocking work on its own thread, so that it blocks none of the few threads that async tests share.
///
/// Costs a thread while `body` runs. Put expectations into the caller, because `body` runs outside the test's task.
/// - Throws: the error of `body`.
package func onDedicatedThread<Result: Sendable>(
  _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Swift.Result { try body() }) }
    // In debug builds, recursive generators and parsers need more than Foundation's 512 KiB.
    thread.stackSize = 8 << 20
    thread.start()
  }
}

/// Waits for asynchronous work on a thread that may block.
///
/// Use it only inside ``onDedicatedThread(_:)``. On a thread that async tests share, it could wait for work that
/// needs the same thread.
/// - Throws: the error of `body`.
package func awaitResult<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) throws -> Result {
  let outcome = Outcome<Result>()
  Task {
    do { outcome.settle(.success(try await body())) } catch { outcome.settle(.failure(error)) }
  }
  return try outcome.wait().get()
}

/// The result of a task, for one waiting thread.
private final class Outcome<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let isSettled = DispatchSemaphore(value: 0)

  func settle(_ outcome: Result<Value, any Error>) {
    result.withLock { $0 = outcome }
    isSettled.signal()
  }

  func wait() -> Result<Value, any Error> {
    while true {
      isSettled.wait()
      if let outcome = result.withLock({ $0 }) { return outcome }
    }
  }
}
