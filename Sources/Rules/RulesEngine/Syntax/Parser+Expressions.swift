extension Expression {
  /// The greatest depth of an expression (rules-language.md, section 15).
  static let depthMax = 99
  /// The greatest height of an expression. The compiler, the printer and the evaluator recurse as deep.
  static let heightMax = 400
}

extension Parser {
  /// The greatest nesting of brackets and prefix operators during parsing. It keeps the recursion within the stack.
  private static let nestingMax = 2 * Expression.depthMax

  /// Returns how tightly a binary operator binds. `in` and `is` are words, so ``binary(_:)`` handles them itself.
  private static func precedence(_ symbol: Token.Symbol) -> (Int, Expression.BinaryOperator)? {
    switch symbol {
    case .or: (1, .or)
    case .and: (2, .and)
    case .equal: (5, .equal)
    case .notEqual: (5, .notEqual)
    case .less: (6, .less)
    case .lessOrEqual: (6, .lessOrEqual)
    case .greater: (6, .greater)
    case .greaterOrEqual: (6, .greaterOrEqual)
    case .plus: (7, .add)
    case .minus: (7, .subtract)
    case .star: (8, .multiply)
    case .slash: (8, .divide)
    case .percent: (8, .remainder)
    default: nil
    }
  }

  private static let inPrecedence = 3
  private static let isPrecedence = 4
  private static let lowestPrecedence = 1

  mutating func expression() throws(Failure) -> Expression {
    nesting += 1
    defer { nesting -= 1 }
    guard nesting <= Self.nestingMax else { throw tooComplex(at: current.range) }
    let condition = try binary(Self.lowestPrecedence)
    guard take(.question) else { return condition }
    let yes = try expression()
    try expect(.colon, "between the branches of a condition")
    let no = try expression()
    return try checked(.conditional(condition, yes, no), from: condition.range.lowerBound)
  }

  private func tooComplex(at range: Range<Int>) -> Failure {
    failure("Expression is too complex to evaluate safely.", at: range, suggestion: "move parts of it into functions")
  }

  /// Returns an expression that ends after the last token read. Fails if the expression is too deep.
  private func checked(_ kind: Expression.Kind, from start: Int) throws(Failure) -> Expression {
    let result = Expression(kind, start..<previousEnd)
    guard result.depth <= Expression.depthMax, result.height <= Expression.heightMax else {
      throw tooComplex(at: result.range)
    }
    return result
  }

  private mutating func binary(_ least: Int) throws(Failure) -> Expression {
    var left = try unary()
    while true {
      let start = left.range.lowerBound
      if case .symbol(let symbol) = current.kind, let (level, operation) = Self.precedence(symbol), level >= least {
        _ = advance()
        left = try checked(.binary(operation, left, try binary(level + 1)), from: start)
      } else if Self.inPrecedence >= least, take(word: "in") {
        left = try checked(.binary(.in, left, try binary(Self.inPrecedence + 1)), from: start)
      } else if Self.isPrecedence >= least, take(word: "is") {
        let isNamed = Self.isWord(current)
        guard isNamed, let type = RuleType(rawValue: text(current)), type != .null, type != .any else {
          let hint = isNamed ? NearestName.hint(for: text(current), among: RuleType.names) : nil
          throw unexpected(hint ?? "expected a type, such as string")
        }
        _ = advance()
        left = try checked(.isType(left, type), from: start)
      } else {
        return left
      }
    }
  }

  private mutating func unary() throws(Failure) -> Expression {
    let start = current.range.lowerBound
    if isAt(.increment) || isAt(.decrement) {
      throw failure("Increment (++) and decrement (--) operators are not supported.", at: current.range)
    }
    if isAt(.plus) { throw unexpected("remove it; the language has no unary plus") }
    if take(.minus) {
      if isAt(.minus) || isAt(.not) { throw unexpected("write the operand in parentheses: -(…)") }
      if current.kind == .integer, text(current) == "9223372036854775808",
        following(1).kind != .symbol(.openBracket)
      {
        // This magnitude fits only together with its sign.
        return try postfix(Expression(.integer(.min), start..<advance().range.upperBound))
      }
      return try checked(.unary(.negate, try postfix(try primary())), from: start)
    }
    guard take(.not) else { return try postfix(try primary()) }
    nesting += 1
    defer { nesting -= 1 }
    guard nesting <= Self.nestingMax else { throw tooComplex(at: current.range) }
    return try checked(.unary(.not, try unary()), from: start)
  }

  private mutating func postfix(_ base: Expression) throws(Failure) -> Expression {
    var base = base
    while true {
      let start = base.range.lowerBound
      if take(.dot) {
        guard Self.isWord(current) else { throw unexpected("expected a name after '.'") }
        let token = advance()
        let name = Expression.Name(text: text(token), range: token.range)
        guard name.text != "service", name.text != "rules_version" else {
          throw failure("Unexpected '\(name.text)'.", at: name.range)
        }
        if take(.openParenthesis) {
          let items = try list(until: .closeParenthesis)
          if case .variable(let package) = base.kind, !base.isParenthesized, Builtins.packages.contains(package.text) {
            let full = Expression.Name(text: "\(package.text).\(name.text)", range: start..<name.range.upperBound)
            base = try checked(.call(full, items), from: start)
          } else {
            base = try checked(.method(base, name, items), from: start)
          }
        } else {
          base = try checked(.member(base, name), from: start)
        }
      } else if take(.openBracket) {
        var from: Expression?
        if !isAt(.colon) { from = try expression() }
        if take(.colon) {
          let to = isAt(.closeBracket) ? nil : try expression()
          try expect(.closeBracket, "after a range")
          base = try checked(.range(base, from: from, to: to), from: start)
        } else if let from {
          try expect(.closeBracket, "after an index")
          base = try checked(.index(base, from), from: start)
        }
      } else {
        return base
      }
    }
  }

  /// Reads expressions separated by commas, with an optional trailing comma.
  private mutating func list(until close: Token.Symbol) throws(Failure) -> [Expression] {
    var items: [Expression] = []
    while !take(close) {
      items.append(try expression())
      if take(close) { break }
      try expect(.comma, "or '\(close.rawValue)'")
    }
    return items
  }

  private mutating func primary() throws(Failure) -> Expression {
    let start = current.range.lowerBound
    switch current.kind {
    case .integer:
      let token = advance()
      guard let value = Int64(text(token)) else {
        throw failure("Invalid number literal \(text(token)).", at: token.range)
      }
      return Expression(.integer(value), token.range)
    case .float:
      let token = advance()
      guard let value = FloatText.parse(Array(source.bytes[token.range])) else {
        throw failure("Invalid number literal \(text(token)).", at: token.range)
      }
      return Expression(.float(value), token.range)
    case .string:
      let token = advance()
      return Expression(.string(Literal.text(source.bytes[token.range])), token.range)
    case .bytes:
      let token = advance()
      guard let value = Literal.bytes(source.bytes[token.range]) else {
        throw failure("Invalid bytes literal \(text(token)).", at: token.range)
      }
      return Expression(.bytes(value), token.range)
    case .pathSegment: return try path()
    case .symbol(.slash) where [.symbol(.dollar), .symbol(.openBrace)].contains(following(1).kind): return try path()
    case .symbol(.openParenthesis):
      _ = advance()
      let inner = try expression()
      try expect(.closeParenthesis, "after an expression")
      guard inner.depth < Expression.depthMax else { throw tooComplex(at: inner.range) }
      return inner.parenthesized
    case .symbol(.openBracket):
      _ = advance()
      return try checked(.list(try list(until: .closeBracket)), from: start)
    case .symbol(.openBrace): return try map()
    case .keyword:
      switch text(current) {
      case "true", "false":
        let token = advance()
        return Expression(.boolean(text(token) == "true"), token.range)
      case "null": return Expression(.null, advance().range)
      default: throw unexpected()
      }
    case .identifier:
      let token = advance()
      let name = Expression.Name(text: text(token), range: token.range)
      if take(.openParenthesis) { return try checked(.call(name, try list(until: .closeParenthesis)), from: start) }
      if Builtins.packages.contains(name.text) {
        guard isAt(.dot), Self.isWord(following(1)), following(2).kind == .symbol(.openParenthesis) else {
          throw failure("\(name.text) is a package and cannot be used as variable name.", at: name.range)
        }
      }
      return Expression(.variable(name), token.range)
    default: throw unexpected()
    }
  }

  private mutating func map() throws(Failure) -> Expression {
    let start = advance().range.lowerBound
    var entries: [(key: Expression, value: Expression)] = []
    while !take(.closeBrace) {
      let key = try expression()
      try expect(.colon, "after the key of a map")
      entries.append((key, try expression()))
      if take(.closeBrace) { break }
      try expect(.comma, "or '}'")
    }
    return try checked(.map(entries), from: start)
  }

  private mutating func path() throws(Failure) -> Expression {
    let start = current.range.lowerBound
    var parts: [Expression.PathPart] = []
    while true {
      if current.kind == .pathSegment {
        parts.append(.literal(Literal.decodedSegment(source.bytes[advance().range].dropFirst())))
      } else if isAt(.slash), following(1).kind == .symbol(.dollar) {
        _ = advance()
        _ = advance()
        try expect(.openParenthesis, "after '$'")
        parts.append(.value(try expression()))
        try expect(.closeParenthesis, "after a value in a path")
      } else if isAt(.slash), following(1).kind == .symbol(.openBrace) {
        _ = advance()
        let (name, isGlob) = try capture()
        parts.append(.capture(name, isGlob: isGlob))
      } else {
        return try checked(.path(parts), from: start)
      }
    }
  }
}

extension RuleType {
  /// The words that may follow `is`.
  static let names = allCases.filter { $0 != .null && $0 != .any }.map(\.rawValue)
}
