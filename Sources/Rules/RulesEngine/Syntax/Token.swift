/// A word of a ruleset.
struct Token: Sendable {
  enum Kind: Sendable, Equatable {
    case identifier
    /// An identifier that names nothing (rules-language.md, section 1.2).
    case keyword
    case integer
    case float
    case string
    case bytes
    /// A `/` with the segment that follows it at once: it is never a division.
    case pathSegment
    /// One of the operators and brackets, by its text.
    case symbol(Symbol)
    case end
  }

  /// Operators and brackets.
  enum Symbol: String, Sendable, CaseIterable {
    case equal = "==", notEqual = "!=", lessOrEqual = "<=", greaterOrEqual = ">=", and = "&&", or = "||"
    case increment = "++", decrement = "--"
    case less = "<", greater = ">", plus = "+", minus = "-", star = "*", slash = "/", percent = "%", not = "!"
    case assign = "=", question = "?", colon = ":", semicolon = ";", comma = ",", dot = ".", dollar = "$"
    case openParenthesis = "(", closeParenthesis = ")", openBracket = "[", closeBracket = "]"
    case openBrace = "{", closeBrace = "}"
  }

  let kind: Kind
  /// Where it stands, in bytes.
  let range: Range<Int>

  /// The words that cannot name a variable, parameter, function or capture.
  static let keywords: Set<String> = [
    "match", "allow", "function", "return", "let", "if", "in", "is", "true", "false", "null", "service",
    "rules_version", "import", "for", "while", "else", "var", "package", "break", "continue",
  ]
}
