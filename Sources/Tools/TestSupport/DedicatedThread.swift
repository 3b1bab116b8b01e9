import Foundation

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
  let result: Swift.Result<Result, any Error> = wait { done in
    Task {
      do { done(.success(try await body())) } catch { done(.failure(error)) }
    }
  }
  return try result.get()
}

/// Starts `count` threads that run `body` with the numbers from 0. Returns a function that waits for all results, in
/// the order of the numbers.
///
/// The threads run concurrently regardless of the number of processors.
package func startThreads<Result: Sendable>(
  _ count: Int, _ body: @escaping @Sendable (Int) -> Result
) -> () -> [Result] {
  let results = Observed([Result?](repeating: nil, count: count))
  for index in 0..<count {
    let thread = Thread {
      let result = body(index)
      results.update { $0[index] = result }
    }
    thread.stackSize = 8 << 20
    thread.start()
  }
  return {
    _ = results.wait(secondsMax: nil) { $0.allSatisfy { $0 != nil } }
    return results.value.compactMap { $0 }
  }
}

/// Runs `body` on `count` threads, as ``startThreads(_:_:)``, and waits for all results.
@discardableResult
package func onThreads<Result: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> Result) -> [Result] {
  startThreads(count, body)()
}

/// Calls a function and waits for the one result that it passes to its completion handler.
/// - Throws: the error of `call`.
package func wait<Result: Sendable>(_ call: (@escaping @Sendable (Result) -> Void) throws -> Void) rethrows -> Result {
  let result = Observed<Result?>(nil)
  try call { value in result.value = value }
  _ = result.wait(secondsMax: nil) { $0 != nil }
  guard let value = result.value else { preconditionFailure("the call completed without a result") }
  return value
}
