import Glibc
import Synchronization
import Transport

/// A log of requests that failed because of a fault of the server. It logs a few per second, and counts the others:
/// if a disk fails, every request fails, and the log may be on that disk.
final class FailureLog: Sendable {
  private struct State {
    var second = -1
    var loggedCount = 0
    var omitted = 0
  }

  /// The most failures logged per second.
  static let loggedMax = 10

  private let state = Mutex(State())
  private let seconds: @Sendable () -> Int
  private let log: @Sendable (_ message: String, _ fields: [LogEvent.Field]) -> Void

  /// Creates a log that writes with `log`. `seconds` is a monotonic clock.
  init(
    seconds: @escaping @Sendable () -> Int = FailureLog.monotonicSeconds,
    log: @escaping @Sendable (_ message: String, _ fields: [LogEvent.Field]) -> Void
  ) {
    self.seconds = seconds
    self.log = log
  }

  /// Logs or counts a request. Cost: a short lock, and formatting the line if it is logged.
  func write(_ request: FailedRequest) {
    let second = seconds()
    let omitted = state.withLock { state -> Int? in
      if state.second != second {
        state.second = second
        state.loggedCount = 0
      }
      guard state.loggedCount < Self.loggedMax else {
        state.omitted += 1
        return nil
      }
      state.loggedCount += 1
      defer { state.omitted = 0 }
      return state.omitted
    }
    guard let omitted else { return }
    let method = "\(request.method)".uppercased()
    let path = LoggedPath.text(request.path)
    var fields: [LogEvent.Field] = [
      ("method", .text(method)), ("path", .text(path)), ("status", .integer(request.status)),
    ]
    if omitted > 0 { fields.append(("omitted", .integer(omitted))) }
    let more = omitted > 0 ? " (\(omitted) earlier failures were not logged)" : ""
    log(LogEvent.oneLine("\(method) \(path) failed with \(request.status): \(request.message)\(more)"), fields)
  }

  /// Returns the seconds of the system's monotonic clock.
  @Sendable static func monotonicSeconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int(time.tv_sec)
  }
}
