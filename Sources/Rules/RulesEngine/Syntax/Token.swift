/// A token of a ruleset.
struct Token: Sendable {
  enum Kind: Sendable, Equatable {
    case identifier
    /// A reserved word (rules-language.md, section 1.2).
    case keyword
    case integer
    case float
    case string
    case bytes
    /// A `/` and the segment that directly follows it. Never a division.
    case pathSegment
    /// An operator or a bracket.
    case symbol(Symbol)
    case end
  }

  /// The operators and brackets, by their text.
  enum Symbol: String, Sendable, CaseIterable {
    case equal = "==", notEqual = "!=", lessOrEqual = "<=", greaterOrEqual = ">=", and = "&&", or = "||"
    case increment = "++", decrement = "--"
    case less = "<", greater = ">", plus = "+", minus = "-", star = "*", slash = "/", percent = "%", not = "!"
    case assign = "=", question = "?", colon = ":", semicolon = ";", comma = ",", dot = ".", dollar = "$"
    case openParenthesis = "(", closeParenthesis = ")", openBracket = "[", closeBracket = "]"
    case openBrace = "{", closeBrace = "}"
  }

  let kind: Kind
  /// The place in the text, in bytes.
  let range: Range<Int>

  /// The words that cannot name a variable, parameter, function or capture.
  static let keywords: Set<String> = [
    "match", "allow", "function", "return", "let", "if", "in", "is", "true", "false", "null", "service",
    "rules_version", "import", "for", "while", "else", "var", "package", "break", "continue",
  ]
}
