import Basics
import Testing

@Suite struct AscendingNumbersTests {
  /// The numbers of a burst are near each other and ascend. The next burst starts anywhere in the range.
  @Test func burstsAscendFromRandomStarts() {
    var sequence = AscendingNumbers(below: 64 << 32)
    var moment: UInt64 = 1
    var starts = [Int](repeating: 0, count: 64)
    for _ in 0..<2000 {
      var burst: [UInt64] = []
      for _ in 0..<20 {
        burst.append(sequence.next(at: moment))
        moment += AscendingNumbers.burstPauseNanoseconds
      }
      moment += 1
      let wraps = burst[0] > 64 << 32 - 20 << 20
      #expect(wraps || zip(burst, burst.dropFirst()).allSatisfy { $0 < $1 && $1 - $0 <= 1 << 20 })
      starts[Int(burst[0] >> 32)] += 1
    }
    // About 31 of 2,000 bursts begin in each part of the range.
    #expect(starts.allSatisfy { (1..<100).contains($0) })
  }

  @Test func longBurstsEnd() {
    var sequence = AscendingNumbers(below: .max)
    let numbers = (0..<10 * AscendingNumbers.burstCountMax).map { _ in sequence.next(at: 1) }
    let starts = zip(numbers, numbers.dropFirst()).count { $1 < $0 || $1 - $0 > 1 << 20 }
    #expect(starts == 9)
  }

  /// Threads whose clocks differ by less than a pause take numbers in turn.
  @Test func aBurstContinuesIfTheTimeGoesBack() {
    var sequence = AscendingNumbers(below: .max)
    let pause = AscendingNumbers.burstPauseNanoseconds
    let numbers = (0..<500).map { sequence.next(at: $0 * pause / 2 + ($0 % 2 == 0 ? pause : 0)) }
    // A burst wraps around in one of about 30 billion runs.
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 && $1 - $0 <= 1 << 20 })
  }

  /// After the greatest number come the smallest ones.
  @Test func smallRangesWrapAround() {
    let bound: UInt64 = 3 << 20
    var sequence = AscendingNumbers(below: bound)
    let numbers = (0..<AscendingNumbers.burstCountMax).map { _ in sequence.next(at: 1) }
    let steps = zip(numbers, numbers.dropFirst()).map { $1 > $0 ? $1 - $0 : $1 + bound - $0 }
    #expect(steps.allSatisfy { (1...1 << 20).contains($0) })
    #expect(zip(numbers, numbers.dropFirst()).contains { $1 < $0 })
  }
}
