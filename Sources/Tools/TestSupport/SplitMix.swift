/// A small random generator (SplitMix64). The same seed produces the same sequence.
package struct SplitMix: RandomNumberGenerator {
  private var state: UInt64

  /// Starts a sequence.
  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }

  /// Returns `true` with a probability of 1 in `count`.
  package mutating func chance(oneIn count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

  /// Returns a random element of a non-empty collection.
  package mutating func pick<C: RandomAccessCollection>(_ items: C) -> C.Element {
    items[items.index(items.startIndex, offsetBy: Int.random(in: 0..<items.count, using: &self))]
  }
}
