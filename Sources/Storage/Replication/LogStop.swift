import Dispatch
import Synchronization

/// A halt of one replica at a position of the log, so that another thread can take snapshots of all its stores there.
///
/// The thread that applies entries, or the writer that appended one, arrives at each position, and waits at the position of
/// the halt for at most ``longestHalt``.
final class LogStop: Sendable {
  private enum Phase { case awaited, halted, ended, passed(UInt64) }

  /// The longest time for which a commit waits.
  private static let longestHalt = DispatchTimeInterval.milliseconds(500)

  let sequence: UInt64
  private let phase = Mutex(Phase.awaited)
  private let arrived = DispatchSemaphore(value: 0)
  private let released = DispatchSemaphore(value: 0)

  init(at sequence: UInt64) { self.sequence = sequence }

  /// Notes that the replica shows the log up to a sequence. Waits if it is that of the halt.
  func arrive(at reached: UInt64) {
    let halts = phase.withLock { phase in
      guard case .awaited = phase, reached >= sequence else { return false }
      phase = reached == sequence ? .halted : .passed(reached)
      arrived.signal()
      return reached == sequence
    }
    guard halts else { return }
    _ = released.wait(timeout: .now() + Self.longestHalt)
    phase.withLock { phase in if case .halted = phase { phase = .passed(reached) } }
  }

  /// Waits until the replica is at the position or after it. Returns `false` if that does not happen before the deadline. After
  /// `true`, do not call it again.
  func waitForArrival(until deadline: DispatchTime) -> Bool { arrived.wait(timeout: deadline) == .success }

  /// Runs `body` if the replica is at the position, and lets it continue. Returns `nil` if it was there all the time, otherwise the
  /// sequence at which it was later, or 0 if it did not get there.
  func run(_ body: () -> Void) -> UInt64? {
    let isHalted = phase.withLock { phase in
      if case .awaited = phase { phase = .passed(0) }
      return if case .halted = phase { true } else { false }
    }
    if isHalted { body() }
    defer { released.signal() }
    return phase.withLock { phase in
      switch phase {
      case .halted:
        phase = .ended
        return nil
      case .passed(let sequence): return sequence
      // The position was not reached.
      case .awaited, .ended: return 0
      }
    }
  }
}
