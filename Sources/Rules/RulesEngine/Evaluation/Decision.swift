/// The result of evaluating rules for a request.
package struct Decision: Sendable {
  /// Whether an `allow` statement allows the request.
  package internal(set) var isAllowed = false
  /// The 1-based line of the `allow` statement that allows the request.
  package internal(set) var line: Int?
  /// The `allow` statements that were tried, in order. Empty unless ``Explanation/outcomes`` or more was requested.
  package internal(set) var outcomes: [Outcome] = []
  /// The value of every expression, in the order of evaluation. Empty unless ``Explanation/trace`` was requested.
  package internal(set) var trace: [Evaluator.TracedValue] = []
  /// Whether the rules read `request.time`. Then the decision can change without a change of any document.
  package internal(set) var usesTime = false

  /// The detail of a decision.
  package enum Explanation: Int, Sendable, Comparable {
    /// Only whether the request is allowed.
    case none
    /// Also the outcome of each `allow` statement.
    case outcomes
    /// Also the value of each expression.
    case trace

    package static func < (a: Explanation, b: Explanation) -> Bool { a.rawValue < b.rawValue }
  }

  /// The outcome of one `allow` statement.
  package struct Outcome: Sendable, Hashable {
    /// The statement's 1-based line.
    package let line: Int
    /// The statement's place, in bytes.
    package let range: Range<Int>
    /// `true`, `false`, or the error's message.
    package let result: String
  }

  /// Returns the message of a denial (rules-language.md, section 18).
  package func denialText(_ method: RulesMethod) -> String {
    guard !outcomes.isEmpty else { return "No matching allow statements" }
    return "\n" + outcomes.map { "\($0.result) for '\(method.rawValue)' @ L\($0.line)" }.joined(separator: ", ")
  }
}
