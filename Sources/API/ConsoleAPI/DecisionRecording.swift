package import DatabaseService
package import RulesTesting
import Synchronization

/// The recording of decisions by a production server, which is off until an operator switches it on, and ends by itself.
///
/// While it is off, decisions cost one load. It ends after a time or a number of decisions, whichever comes first. The
/// recorded requests stay in the log until the next recording, until somebody empties the log, or until the server
/// stops. Any number of threads may use a recording.
package final class DecisionRecording: Sendable {
  /// The recording as operators see it.
  package struct State: Sendable {
    /// Whether decisions are recorded now.
    package var isOn: Bool
    /// The time until the recording ends, in seconds.
    package var secondsLeft: Int
    /// The number of decisions until the recording ends.
    package var requestsLeft: Int
  }

  private struct Bounds {
    /// The time of the end, in microseconds since 1970.
    var end: Int64 = 0
    var left = 0
    var changed: @Sendable (_ isOn: Bool) -> Void = { _ in }
  }

  /// The recorded requests.
  package let log: DecisionLog
  /// Whether the service reports decisions.
  package let observation = ObservationSwitch(isOn: false)
  private let bounds = Mutex(Bounds())
  private let now: @Sendable () -> Int64

  /// Creates a recording that is off. `tests` are the cases of a record, as for ``DecisionLog``. `now` returns
  /// microseconds since 1970.
  package init(
    now: @escaping @Sendable () -> Int64, tests: @escaping @Sendable (AccessRecord) -> [RuleTest]
  ) {
    log = DecisionLog(bytesMax: DecisionLogLimits.recordedBytesMax, tests: tests)
    self.now = now
  }

  /// Calls `changed` when the recording begins or ends, on any thread. It must return quickly, and not use the recording.
  /// An end by time is noticed at the next decision, or when somebody reads ``state``.
  package func onChange(_ changed: @escaping @Sendable (_ isOn: Bool) -> Void) {
    bounds.withLock { $0.changed = changed }
  }

  /// Empties the log, and records the next decisions: at most `requests` of them, for at most `seconds`.
  func start(seconds: Int, requests: Int) {
    log.removeAll()
    bounds.withLock { bounds in
      (bounds.end, bounds.left) = (now() + Int64(seconds) * 1_000_000, requests)
      observation.isOn = true
      bounds.changed(true)
    }
  }

  /// Ends the recording. The log stays.
  func stop() { bounds.withLock { end(&$0) } }

  /// The recording now.
  package var state: State {
    bounds.withLock { bounds in
      let seconds = (bounds.end - now() + 999_999) / 1_000_000
      guard bounds.left > 0, seconds > 0 else {
        end(&bounds)
        return State(isOn: false, secondsLeft: 0, requestsLeft: 0)
      }
      return State(isOn: true, secondsLeft: Int(seconds), requestsLeft: bounds.left)
    }
  }

  /// Adds a decision to the log, unless the recording has ended. `bytes` is the size of its documents.
  package func add(_ record: AccessRecord, bytes: Int) {
    let isTaken = bounds.withLock { bounds in
      guard bounds.left > 0, now() < bounds.end else {
        end(&bounds)
        return false
      }
      bounds.left -= 1
      if bounds.left == 0 { end(&bounds) }
      return true
    }
    if isTaken { log.add(record, bytes: bytes) }
  }

  private func end(_ bounds: inout Bounds) {
    guard observation.isOn else { return }
    (bounds.end, bounds.left) = (0, 0)
    observation.isOn = false
    bounds.changed(false)
  }
}
