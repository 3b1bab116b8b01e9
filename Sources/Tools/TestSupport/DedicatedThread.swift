import Dispatch
import Foundation
import Synchronization

/// Runs blocking work on a thread of its own, so that it holds none of the few threads that async tests share.
///
/// Costs a thread for as long as `body` runs. Expectations belong in the caller: `body` runs outside the test's task.
package func onDedicatedThread<Result: Sendable>(
  _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Swift.Result { try body() }) }
    // Recursive generators and parsers in debug builds want more than the 512 KiB that Foundation gives.
    thread.stackSize = 8 << 20
    thread.start()
  }
}

/// Waits, on a thread that may block, for asynchronous work.
///
/// Only within ``onDedicatedThread(_:)``: on one of the threads that async tests share it could wait for itself.
package func awaitResult<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) throws -> Result {
  let outcome = Outcome<Result>()
  Task {
    do { outcome.settle(.success(try await body())) } catch { outcome.settle(.failure(error)) }
  }
  return try outcome.wait().get()
}

/// How a task ended, for one thread that waits for it.
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
