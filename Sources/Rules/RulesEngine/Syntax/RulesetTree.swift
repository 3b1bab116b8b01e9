/// The syntax tree of a ruleset. Names are not resolved.
package struct RulesetTree: Sendable {
  /// The rules version, 1 or 2.
  let version: Int
  /// The place of `rules_version`, or `nil` if the text has none.
  let versionRange: Range<Int>?
  let functions: [FunctionTree]
  let services: [ServiceTree]
}

/// `service cloud.firestore { … }`.
struct ServiceTree: Sendable {
  let name: Expression.Name
  let functions: [FunctionTree]
  let matches: [MatchTree]
}

/// `match /path { … }`.
struct MatchTree: Sendable {
  /// One segment of a pattern.
  enum Segment: Sendable {
    /// A percent-decoded segment that the path must equal.
    case literal([UInt8])
    case capture(Expression.Name, isGlob: Bool)
  }

  /// A statement or nested block, in the order of the text.
  enum Member: Sendable {
    case allow(AllowTree)
    case match(MatchTree)
  }

  let segments: [Segment]
  /// The place of the path, in bytes.
  let range: Range<Int>
  let functions: [FunctionTree]
  let members: [Member]
}

/// `allow read, write: if condition;`.
struct AllowTree: Sendable {
  let methods: [Expression.Name]
  /// The condition, or `nil` if the statement always allows.
  let condition: Expression?
  /// The place from `allow` to the end of the condition, in bytes.
  let range: Range<Int>
}

/// `function f(a) { let b = a; return b; }`.
struct FunctionTree: Sendable {
  let name: Expression.Name
  let parameters: [Expression.Name]
  let lets: [(name: Expression.Name, value: Expression)]
  let result: Expression
}
