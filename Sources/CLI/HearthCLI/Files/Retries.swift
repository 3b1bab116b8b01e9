import Glibc
import WebClient

/// Repeats operations that failed for a temporary reason: a limited number of times, with growing pauses.
final class Retries {
  /// The number of successive tries without progress after which the last failure is final.
  static let triesMax = 6
  /// The first pause. Each pause is twice as long as the previous one.
  static let firstPauseMilliseconds = 500
  /// The progress, in bytes, after which the tries are counted from the start.
  static let progressBytes = 1 << 20
  /// The longest pause that a server can request with the header `Retry-After`.
  static let pauseMillisecondsMax = 60_000

  /// Waits, and up to a quarter longer, so that several connections do not continue at the same moment. Tests replace
  /// it by a function that returns at once.
  var wait: (_ milliseconds: Int) -> Void = { pause in
    let milliseconds = pause + Int.random(in: 0...pause / 4)
    var time = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
    var rest = timespec()
    while nanosleep(&time, &rest) != 0, errno == EINTR { time = rest }
  }
  /// Called before each pause with its length and the reason.
  var onPause: (_ milliseconds: Int, _ reason: String) -> Void = { _, _ in }
  /// The number of successive tries of ``run(at:_:)``.
  private let tries: Int
  private var hasResponded: Bool

  /// Creates a counter of tries. `hasResponded` tells that the server exists.
  init(tries: Int = Retries.triesMax, hasResponded: Bool = false) {
    self.tries = tries
    self.hasResponded = hasResponded
  }

  /// Runs `body` until it succeeds; `isAgain` is set after a failure. `position` returns the number of transferred
  /// bytes, because long transfers may be interrupted more often than short requests.
  /// - Throws: The error of `body` if it is permanent, or if it occurs in too many successive tries.
  func run<Result>(at position: () -> Int = { 0 }, _ body: (_ isAgain: Bool) throws -> Result) throws -> Result {
    var failures = 0
    var furthest = position()
    var isAgain = false
    while true {
      do {
        let result = try body(isAgain)
        hasResponded = true
        return result
      } catch {
        note(error)
        if position() - furthest >= Self.progressBytes {
          failures = 0
          furthest = position()
        }
        failures += Self.weight(of: error)
        guard failures < tries, isTemporary(error) else { throw error }
        let failure = CommandFailure(error)
        let requested = min(failure.retryAfterMilliseconds ?? 0, Self.pauseMillisecondsMax)
        let milliseconds = max(requested, Self.firstPauseMilliseconds << (failures - 1))
        onPause(milliseconds, failure.message)
        wait(milliseconds)
        isAgain = true
      }
    }
  }

  /// Remembers that a server exists if it responded, or accepted a connection and broke it.
  private func note(_ error: any Error) {
    switch error {
    case let failure as CommandFailure where failure.httpStatus != nil: hasResponded = true
    case HTTPClientError.closedEarly: hasResponded = true
    default: break
    }
  }

  /// Returns the number of tries that a failure counts as. A timeout, after a minute, counts as several.
  private static func weight(of error: any Error) -> Int {
    if case HTTPClientError.timedOut = error { return triesMax / 2 }
    return 1
  }

  private func isTemporary(_ error: any Error) -> Bool {
    switch error {
    case let failure as CommandFailure:
      // If no server ever responded, there is probably none at this address.
      return failure.isTemporary && (failure.httpStatus != nil || hasResponded)
    case HTTPClientError.closedEarly: return true
    case HTTPClientError.timedOut: return hasResponded
    default: return false
    }
  }
}
