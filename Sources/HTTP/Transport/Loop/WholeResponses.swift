import Basics

/// The line of the large responses of a loop that are kept in memory until they are complete. A few are produced at a
/// time.
final class WholeResponses {
  /// Responses in production at the same time. A page of documents takes up to 8 MiB, and more while it is written.
  private static let runningMax = 4

  private var running = 0
  private var waiting = JobQueue<() -> Void>()

  /// Runs `start` now if there is room, otherwise after others have ended.
  func begin(_ start: @escaping () -> Void) {
    guard running < Self.runningMax else { return waiting.append(start) }
    running += 1
    start()
  }

  /// Ends a response. Returns the start of the next one, which the caller must run.
  func end() -> (() -> Void)? {
    if let next = waiting.popFirst() { return next }
    running -= 1
    return nil
  }
}
