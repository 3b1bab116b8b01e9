import Foundation
import Glibc

/// Waits for effects of other processes and of the kernel, which cannot notify a test.
package enum OtherProcess {
  /// Asks for a condition again and again until it holds. Returns `false` if it does not within `secondsMax`.
  ///
  /// Use it only for the state of another process or of the kernel. For values of this process, use ``Observed``.
  /// - Throws: the error of `holds`.
  package static func eventually(secondsMax: Double = 60, _ holds: () throws -> Bool) rethrows -> Bool {
    let deadline = ContinuousClock.now + .seconds(secondsMax)
    while true {
      if try holds() { return true }
      guard ContinuousClock.now < deadline else { return false }
      usleep(5_000)
    }
  }

  /// Sends a signal to a process at a random moment: after a time of `milliseconds`, drawn from `random`. Returns
  /// at once; the signal is sent on another thread.
  ///
  /// The random moment is the purpose of tests that kill. Their failures print the seed of `random`. The seed
  /// determines the time, not the state in which the process is then.
  package static func send(
    signal: Int32, to process: ServerProcess, afterRandom milliseconds: ClosedRange<Int>, _ random: inout SplitMix
  ) {
    let delay = UInt32(Int.random(in: milliseconds, using: &random) * 1000)
    Thread {
      usleep(delay)
      process.send(signal: signal)
    }.start()
  }
}
