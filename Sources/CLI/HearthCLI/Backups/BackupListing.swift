import Dispatch
import Glibc
import Synchronization

/// Lists the backups of a place for all callers, each time in a process of its own. One listing runs at a time. Callers
/// that come meanwhile share the next one, so a list has every backup that was complete when its callers asked.
final class BackupListing: Sendable {
  /// The time after which a listing is killed, in seconds.
  static let secondsMax = 10
  /// The most callers that wait for the next listing.
  static let waitingMax = 256

  /// The result of a listing.
  enum Outcome: Equatable, Sendable {
    /// The output of the verb.
    case listed(String)
    /// The reason why the place cannot be listed.
    case failed(String)
  }

  private struct State {
    var waiting: [@Sendable (Outcome) -> Void] = []
    var isRunning = false
    var isStopped = false
    /// The process of the listing that runs. It is not waited for yet, so no other process has this number.
    var child: pid_t?
  }

  private let words: [String]
  private let place: String
  private let seconds: Int
  private let program: String
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "backup list", qos: .utility)

  /// Creates an object that runs a program with these words to list a place.
  init(
    _ words: [String], of place: String, secondsMax: Int = BackupListing.secondsMax,
    program: String = VerbProcess.ownProgram
  ) {
    (self.words, self.place, self.program) = (words, place, program)
    seconds = secondsMax
  }

  /// Calls `take` with the result of the next listing, on a thread of this object. Returns `false`, and does not call
  /// `take`, if too many callers wait. Does not block.
  func list(_ take: @escaping @Sendable (Outcome) -> Void) -> Bool {
    enum Admission { case first, further, refused }
    let admission = state.withLock { state -> Admission in
      guard state.waiting.count < Self.waitingMax else { return .refused }
      state.waiting.append(take)
      defer { state.isRunning = true }
      return state.isRunning ? .further : .first
    }
    if admission == .first { queue.async { self.run() } }
    return admission != .refused
  }

  /// Kills the listing that runs. All who wait get a failure.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      if let child = state.child { kill(child, SIGKILL) }
    }
    queue.sync {}
  }

  private func run() {
    while true {
      let callers = state.withLock { state -> [@Sendable (Outcome) -> Void] in
        defer { state.waiting = [] }
        state.isRunning = !state.waiting.isEmpty
        return state.waiting
      }
      guard !callers.isEmpty else { return }
      let outcome = self.outcome()
      for take in callers { take(outcome) }
    }
  }

  private func outcome() -> Outcome {
    let begun: VerbProcess?
    do {
      begun = try state.withLock { state -> VerbProcess? in
        guard !state.isStopped else { return nil }
        let process = try VerbProcess(words, takesErrors: true, program: program)
        state.child = process.pid
        return process
      }
    } catch { return .failed(CommandFailure(error).message) }
    guard let process = begun else { return .failed("the server is stopping") }
    let output = process.read(until: .now + .seconds(seconds))
    let status = state.withLock { state -> Int32 in
      state.child = nil
      return process.end()
    }
    guard let output else { return .failed("\(place) did not respond within \(seconds) seconds") }
    return status == 0
      ? .listed(output) : .failed(VerbProcess.reason(in: output) ?? "the place cannot be read")
  }
}
