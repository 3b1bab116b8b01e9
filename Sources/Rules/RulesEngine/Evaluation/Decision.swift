/// What rules say about a request.
package struct Decision: Sendable {
  /// Whether some `allow` grants it.
  package internal(set) var isAllowed = false
  /// The 1-based line of the `allow` that grants it.
  package internal(set) var line: Int?
  /// The `allow` statements that were tried, in order. Empty unless ``Explanation/outcomes`` was asked for.
  package internal(set) var outcomes: [Outcome] = []
  /// What every expression gave, in the order of evaluation. Empty unless ``Explanation/trace`` was asked for.
  package internal(set) var trace: [Evaluator.TracedValue] = []
  /// Whether `request.time` was read: the decision may change without any document changing.
  package internal(set) var usesTime = false

  /// How much to tell.
  package enum Explanation: Int, Sendable, Comparable {
    /// Only the decision.
    case none
    /// Also what each `allow` gave.
    case outcomes
    /// Also what each expression gave.
    case trace

    package static func < (a: Explanation, b: Explanation) -> Bool { a.rawValue < b.rawValue }
  }

  /// What became of one `allow`.
  package struct Outcome: Sendable, Hashable {
    /// The statement's 1-based line.
    package let line: Int
    /// The statement's place, in bytes.
    package let range: Range<Int>
    /// `true`, `false`, or the error's message.
    package let result: String
  }

  /// The text that a denial carries (rules-language.md, section 18).
  package func denialText(_ method: RulesMethod) -> String {
    guard !outcomes.isEmpty else { return "No matching allow statements" }
    return "\n" + outcomes.map { "\($0.result) for '\(method.rawValue)' @ L\($0.line)" }.joined(separator: ", ")
  }
}
