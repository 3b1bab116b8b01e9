/// A sequence of random numbers that ascend in bursts: numbers taken soon after each other are near each other.
///
/// Keys that begin with such numbers share the pages of a B-tree. Each key that begins with an unrelated number would
/// need a page of its own. All numbers are equally likely, but a number tells much about the others of its burst. An
/// identifier that nobody may guess therefore needs random bytes as well.
package struct AscendingNumbers {
  /// If more time than this has passed since the last number, the next one starts a new burst.
  package static let burstPauseNanoseconds: UInt64 = 10_000_000
  /// The maximum count of numbers in a burst, so that long bursts do not fill a part of the range.
  package static let burstCountMax = 1000
  /// The maximum distance between consecutive numbers in a burst.
  private static let stepMax: UInt64 = 1 << 20

  private let bound: UInt64
  private var number: UInt64 = 0
  private var last: UInt64 = 0
  private var left = 0

  /// Creates a sequence of numbers below a bound, which must be greater than 2^20. After the greatest number, a burst
  /// continues with the smallest ones.
  package init(below bound: UInt64) {
    precondition(bound > Self.stepMax, "a burst needs room")
    self.bound = bound
  }

  /// Returns the next number at a time of a monotonic clock, which may be a little earlier than at the call before, as
  /// times of several threads are. Cost: one read of the system's random generator, a system call.
  package mutating func next(at nanoseconds: UInt64) -> UInt64 {
    if left == 0 || nanoseconds > last + Self.burstPauseNanoseconds {
      number = UInt64.random(in: 0..<bound)
      left = Self.burstCountMax
    } else {
      let step = UInt64.random(in: 1...Self.stepMax)
      number = number < bound - step ? number + step : number - (bound - step)
    }
    left -= 1
    last = max(last, nanoseconds)
    return number
  }
}
