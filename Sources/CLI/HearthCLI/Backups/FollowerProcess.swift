import Dispatch
import Glibc
import Synchronization

/// A process of `hearth backups follow` that a server keeps running. If it ends, another one begins.
final class FollowerProcess: Sendable {
  private struct State {
    /// The process that runs. It is not waited for yet, so no other process has this number.
    var child: pid_t?
    var isStopped = false
  }

  /// The time for which a stop waits for the process, in seconds.
  static let stopSecondsMax = 10

  private let words: [String]
  private let retrySeconds: Int
  private let program: String
  private let take: @Sendable (FollowerEvent) -> Void
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "backup follower", qos: .utility)

  /// Creates an object that passes the events of the verb with these words to `take`, on a thread of its own.
  init(
    _ words: [String], retrySeconds: Int = 10, program: String = VerbProcess.ownProgram,
    _ take: @escaping @Sendable (FollowerEvent) -> Void
  ) {
    (self.words, self.retrySeconds, self.program, self.take) = (words, retrySeconds, program, take)
  }

  /// Starts the process.
  func start() { queue.async { self.run(after: nil) } }

  /// Lets the process copy the last commits of the server, which has stopped, and waits until it has ended. Kills it
  /// after ``stopSecondsMax``.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      if let child = state.child { kill(child, SIGUSR1) }
    }
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Self.stopSecondsMax)) { [weak self] in
      self?.state.withLock { state in
        if let child = state.child { kill(child, SIGKILL) }
      }
    }
    queue.sync {}
  }

  /// Runs one process until it ends, and schedules the next. `last` is the reason why the last one ended.
  private func run(after last: String?) {
    let reason: String?
    do {
      let process = try state.withLock { state -> VerbProcess? in
        guard !state.isStopped else { return nil }
        let process = try VerbProcess(words, takesErrors: true, program: program)
        state.child = process.pid
        return process
      }
      guard let process else { return }
      reason = follow(process)
    } catch {
      reason = CommandFailure(error).message
    }
    guard !state.withLock({ $0.isStopped }) else { return }
    if let reason, reason != last { take(.failed(message: reason)) }
    // The process of a server that was killed ends within a second or two.
    let seconds = reason == nil ? 1 : retrySeconds
    queue.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in self?.run(after: reason) }
  }

  /// Passes on the events of a process until it ends. Returns the reason of its end, or `nil` if another process follows
  /// the directory, such as that of a server that was killed.
  private func follow(_ process: VerbProcess) -> String? {
    var message: String?
    process.readLines { line in
      if let event = FollowerEvent(json: Array(line.utf8)) {
        take(event)
      } else if message == nil {
        message = VerbProcess.withoutPrefix(line)
      }
    }
    let status = state.withLock { state -> Int32 in
      state.child = nil
      return process.end()
    }
    return status == ExitCode.busy << 8 ? nil : message ?? "the process ended with status \(status)"
  }
}
