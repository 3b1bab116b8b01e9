/// A repeatable source of choices (SplitMix64): the same seed makes the same test on every machine.
struct Randomness: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func chance(percent: Int) -> Bool { number(below: 100) < percent }

  mutating func number(below bound: Int) -> Int { Int(next() % UInt64(bound)) }

  mutating func number(in range: ClosedRange<Int>) -> Int { range.lowerBound + number(below: range.count) }

  /// One of `choices`, which is not empty.
  mutating func pick<Choice>(_ choices: [Choice]) -> Choice { choices[number(below: choices.count)] }

  /// One of `choices`, each as often as its weight says.
  mutating func pick<Choice>(weighted choices: [(weight: Int, choice: Choice)]) -> Choice {
    var position = number(below: choices.reduce(0) { $0 + $1.weight })
    for (weight, choice) in choices {
      if position < weight { return choice }
      position -= weight
    }
    preconditionFailure("weights add up to more than their sum")
  }

  /// `count` of `choices`, none twice, in random order.
  mutating func sample<Choice>(_ choices: [Choice], count: Int) -> [Choice] {
    Array(choices.shuffled(using: &self).prefix(count))
  }
}
