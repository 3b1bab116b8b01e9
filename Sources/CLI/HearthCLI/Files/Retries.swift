import Glibc
import Transport

/// Tries again what failed for a reason that may pass: a bounded number of times, with pauses that grow.
final class Retries {
  /// Tries in a row that bring nothing new, after which the last failure counts.
  static let triesMax = 6
  /// The first pause; each is twice as long as the one before.
  static let firstPauseMilliseconds = 500
  /// What a try must bring for the count to begin anew, in bytes.
  static let progressBytes = 1 << 20

  /// Waits. Tests let no time pass.
  var wait: (_ milliseconds: Int) -> Void = { milliseconds in
    var time = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
    var rest = timespec()
    while nanosleep(&time, &rest) != 0, errno == EINTR { time = rest }
  }
  /// Told before each pause how long it is, and why.
  var tell: (_ milliseconds: Int, _ reason: String) -> Void = { _, _ in }
  private var hasHeard = false

  /// Runs `body` until it succeeds; `isAgain` says that it failed before. `position` says how many bytes have come or
  /// gone: long transfers may be interrupted more often than calls.
  /// - Throws: what `body` throws, where that does not pass, or not soon enough.
  func run<Result>(at position: () -> Int = { 0 }, _ body: (_ isAgain: Bool) throws -> Result) throws -> Result {
    var failures = 0
    var furthest = position()
    var isAgain = false
    while true {
      do {
        let result = try body(isAgain)
        hasHeard = true
        return result
      } catch {
        note(error)
        if position() - furthest >= Self.progressBytes {
          failures = 0
          furthest = position()
        }
        failures += Self.weight(of: error)
        guard failures < Self.triesMax, mayPass(error) else { throw error }
        let milliseconds = Self.firstPauseMilliseconds << (failures - 1)
        tell(milliseconds, CommandFailure(error).message)
        wait(milliseconds)
        isAgain = true
      }
    }
  }

  /// A server that answered, or took a connection and broke it, is there, even where it cannot be reached next.
  private func note(_ error: any Error) {
    switch error {
    case let failure as CommandFailure where failure.httpStatus != nil: hasHeard = true
    case HTTPClientError.closedEarly: hasHeard = true
    default: break
    }
  }

  /// How many tries a failure counts for: who waited a minute for nothing does not wait for five more.
  private static func weight(of error: any Error) -> Int {
    if case HTTPClientError.timedOut = error { return triesMax / 2 }
    return 1
  }

  private func mayPass(_ error: any Error) -> Bool {
    switch error {
    case let failure as CommandFailure:
      // Where nobody ever answered there most likely is nobody.
      return failure.mayPass && (failure.httpStatus != nil || hasHeard)
    case HTTPClientError.closedEarly: return true
    case HTTPClientError.timedOut: return hasHeard
    default: return false
    }
  }
}
