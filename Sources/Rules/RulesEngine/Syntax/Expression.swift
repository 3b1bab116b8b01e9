/// An expression of a ruleset. Immutable, and at most ``Expression/depthMax`` deep.
package final class Expression: Sendable {
  /// A name and its place in the text.
  struct Name: Sendable {
    let text: String
    let range: Range<Int>
  }

  /// The form of an expression, with its operands.
  enum Kind: Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case float(Double)
    /// A string in UTF-8. Lone halves of surrogate pairs are kept.
    case string([UInt8])
    case bytes([UInt8])
    case variable(Name)
    case list([Expression])
    case map([(key: Expression, value: Expression)])
    case path([PathPart])
    case member(Expression, Name)
    case index(Expression, Expression)
    case range(Expression, from: Expression?, to: Expression?)
    /// A call of a function of the language, of a package (`math.abs`) or of the ruleset.
    case call(Name, [Expression])
    case method(Expression, Name, [Expression])
    case unary(UnaryOperator, Expression)
    case binary(BinaryOperator, Expression, Expression)
    case isType(Expression, RuleType)
    case conditional(Expression, Expression, Expression)
  }

  /// One segment of a path literal.
  enum PathPart: Sendable {
    /// A percent-decoded segment.
    case literal([UInt8])
    case value(Expression)
    case capture(Name, isGlob: Bool)
  }

  /// An operator before one operand.
  enum UnaryOperator: String, Sendable {
    case not = "!"
    case negate = "-"
  }

  /// An operator between two operands.
  enum BinaryOperator: String, Sendable {
    case or = "||"
    case and = "&&"
    case `in` = "in"
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case add = "+"
    case subtract = "-"
    case multiply = "*"
    case divide = "/"
    case remainder = "%"
  }

  let kind: Kind
  /// The place in the text, in bytes, without enclosing parentheses.
  let range: Range<Int>
  let isParenthesized: Bool
  /// The depth as the documented limit counts it: parentheses add a level, but the base of `.` and `[` and the
  /// operand of `-` do not (rules-language.md, section 15).
  let depth: Int
  /// The height of the tree: 1 for an expression without operands.
  let height: Int

  init(_ kind: Kind, _ range: Range<Int>) {
    self.kind = kind
    self.range = range
    isParenthesized = false
    let children = Self.children(of: kind)
    height = 1 + children.reduce(0) { max($0, $1.height) }
    switch kind {
    case .member(let base, _), .unary(.negate, let base): depth = base.depth
    case .method(let base, _, _), .index(let base, _), .range(let base, _, _):
      depth = max(base.depth, 1 + children.dropFirst().reduce(0) { max($0, $1.depth) })
    default: depth = 1 + children.reduce(0) { max($0, $1.depth) }
    }
  }

  private init(parenthesising inner: Expression) {
    kind = inner.kind
    range = inner.range
    isParenthesized = true
    depth = inner.depth + 1
    height = inner.height
  }

  /// The same expression in parentheses.
  var parenthesized: Expression { Expression(parenthesising: self) }

  /// The direct operands, in the order of the text.
  var children: [Expression] { Self.children(of: kind) }

  private static func children(of kind: Kind) -> [Expression] {
    switch kind {
    case .null, .boolean, .integer, .float, .string, .bytes, .variable: []
    case .list(let items), .call(_, let items): items
    case .map(let entries): entries.flatMap { [$0.key, $0.value] }
    case .path(let parts): parts.compactMap { if case .value(let inner) = $0 { inner } else { nil } }
    case .member(let base, _), .unary(_, let base), .isType(let base, _): [base]
    case .index(let base, let index): [base, index]
    case .range(let base, let from, let to): [base, from, to].compactMap(\.self)
    case .method(let base, _, let items): [base] + items
    case .binary(_, let left, let right): [left, right]
    case .conditional(let condition, let yes, let no): [condition, yes, no]
    }
  }
}

/// The types of values, by the words that `is` and messages use. `number` is int or float.
package enum RuleType: String, Sendable, CaseIterable {
  case bool, bytes, constraint, duration, float, int, latlng, list, map, mapDiff = "map_diff", number, path, set, string
  case timestamp, vector, null, any
}
