import Foundation

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
