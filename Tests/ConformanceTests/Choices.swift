import TestSupport

extension SplitMix {
  mutating func chance(percent: Int) -> Bool { number(below: 100) < percent }

  mutating func number(below bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

  mutating func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

  /// A random element of `choices`, by weight.
  mutating func pick<Choice>(weighted choices: [(weight: Int, choice: Choice)]) -> Choice {
    var position = number(below: choices.reduce(0) { $0 + $1.weight })
    for (weight, choice) in choices {
      if position < weight { return choice }
      position -= weight
    }
    preconditionFailure("the position is below the sum of the weights")
  }

  /// `count` different elements of `choices`, in random order.
  mutating func sample<Choice>(_ choices: [Choice], count: Int) -> [Choice] {
    Array(choices.shuffled(using: &self).prefix(count))
  }
}
