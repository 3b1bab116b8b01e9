/// A parsed ruleset: what its text says, nothing resolved.
package struct RulesetTree: Sendable {
  /// 1 or 2.
  let version: Int
  /// Where the version is written; `nil` when the text does not say one.
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
    /// A segment that must be the same, decoded.
    case literal([UInt8])
    case capture(Expression.Name, isGlob: Bool)
  }

  /// What stands in the block, in the order of the text.
  enum Member: Sendable {
    case allow(AllowTree)
    case match(MatchTree)
  }

  let segments: [Segment]
  /// The pattern's place.
  let range: Range<Int>
  let functions: [FunctionTree]
  let members: [Member]
}

/// `allow read, write: if condition;`.
struct AllowTree: Sendable {
  let methods: [Expression.Name]
  /// What must hold; `nil` for always.
  let condition: Expression?
  /// From `allow` to the end of the condition.
  let range: Range<Int>
}

/// `function f(a) { let b = a; return b; }`.
struct FunctionTree: Sendable {
  let name: Expression.Name
  let parameters: [Expression.Name]
  let lets: [(name: Expression.Name, value: Expression)]
  let result: Expression
}
