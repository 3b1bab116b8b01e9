import Basics
import Dispatch
import Synchronization

/// Work in numbered pieces on several connections to a server at the same time.
///
/// The pieces start in order. After the first failure no further piece starts, and pieces that run can end early.
enum ConnectedWork {
  /// The default number of connections.
  static let connectionsDefault = 8
  /// The largest number of connections.
  static let connectionsMax = 64

  /// The option for the number of connections.
  static let option = Command.Option.value(
    "connections", "N", "with --server, the number of parallel connections (default: \(connectionsDefault))")

  /// Returns the number of connections that the option chooses.
  /// - Throws: ``CommandFailure`` if it is out of range.
  static func connections(_ arguments: Arguments) throws -> Int {
    try arguments.integer(option.name, in: 1...connectionsMax) ?? connectionsDefault
  }

  fileprivate struct State {
    var next = 0
    var failure: (any Error)?
  }

  /// The state that the threads share.
  final class Progress: Sendable {
    fileprivate let state = Mutex(State())
    /// The time of the last remark about a pause, in milliseconds of the monotonic clock.
    private let remarked = Mutex<Int64?>(nil)
    private let total = Mutex(0)

    /// Whether another piece has failed.
    var isStopped: Bool { state.withLock { $0.failure != nil } }

    /// Counts finished units, such as documents.
    func add(_ count: Int) { total.withLock { $0 += count } }

    /// Says on standard error that requests fail and are repeated, at most every half minute for all threads.
    fileprivate func remark(_ reason: String, pause milliseconds: Int) {
      // A short pause is normal, for example if a server limits the rate.
      guard milliseconds >= Self.remarkedPauseMilliseconds else { return }
      let now = HearthCLI.Progress.now()
      let isDue = remarked.withLock { last -> Bool in
        guard last.map({ now - $0 >= Self.remarkMilliseconds }) ?? true else { return false }
        last = now
        return true
      }
      guard isDue else { return }
      Terminal.error.write("hearth: \(TerminalText.line(reason)); trying again for a few minutes\n")
    }

    /// The shortest pause that is remarked.
    private static let remarkedPauseMilliseconds = 4000
    /// The time between two remarks.
    private static let remarkMilliseconds: Int64 = 30_000

    /// The number of finished units.
    var count: Int { total.withLock { $0 } }
  }

  /// Runs `body` for the numbers below `count`, each time with the clients of one of the threads, which `connect` makes.
  /// The caller's thread calls `show` ten times a second.
  /// - Throws: the first error of `body`.
  static func run<Clients>(
    _ count: Int, connections: Int, connect: @escaping @Sendable () -> Clients, show: (Progress) -> Void,
    _ body: @escaping @Sendable (Int, Clients, Retries, Progress) throws -> Void
  ) throws {
    let progress = Progress()
    let done = DispatchSemaphore(value: 0)
    let threads = max(1, min(connections, count))
    let workers = BoundedWorkers("hearth client", threads: threads)
    for _ in 0..<threads {
      workers.runAlways {
        defer { done.signal() }
        let clients = connect()
        let retries = Retries(tries: triesMax, hasResponded: true)
        retries.onPause = { milliseconds, reason in progress.remark(reason, pause: milliseconds) }
        while let piece = next(below: count, progress) {
          do { try body(piece, clients, retries, progress) } catch {
            progress.state.withLock { $0.failure = $0.failure ?? error }
          }
        }
      }
    }
    var left = threads
    while left > 0 {
      if done.wait(timeout: .now() + .milliseconds(100)) == .success { left -= 1 }
      show(progress)
    }
    if let failure = progress.state.withLock({ $0.failure }) { throw failure }
  }

  /// The number of successive tries of a request: more than a verb for a single request makes, because a long copy
  /// should survive a quota of a minute.
  private static let triesMax = 9

  private static func next(below count: Int, _ progress: Progress) -> Int? {
    progress.state.withLock { state in
      guard state.failure == nil, state.next < count else { return nil }
      defer { state.next += 1 }
      return state.next
    }
  }
}
