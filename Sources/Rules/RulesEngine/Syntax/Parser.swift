/// A recursive-descent parser of rulesets. Its recursion depth is limited. To compile a ruleset it stops at the first
/// error; to list the errors of a text it continues, see ``errors(in:)``.
struct Parser {
  /// The greatest nesting of match blocks during parsing. ``Checker/matchDepthMax`` is the documented limit.
  private static let matchDepthMax = 32

  let source: SourceText
  let tokens: [Token]
  var position = 0
  /// The errors after which the parser continued, or `nil` if it stops at the first error.
  var errors: [Diagnostic]?
  /// How many brackets and prefix operators enclose the current token.
  var nesting = 0

  /// A syntax error.
  struct Failure: Error {
    let diagnostic: Diagnostic
    /// Whether the mistake may be a consequence of an earlier one, such as a brace too many or too few.
    var isStructural = false
    /// Whether the error is already in the list.
    var isReported = false
    /// Whether the parser cannot continue after it.
    var isFinal = false
  }

  /// Returns the syntax tree of a text.
  /// - Throws: ``RulesetError`` if the text is too large or not valid.
  package static func parse(_ source: SourceText) throws(RulesetError) -> RulesetTree {
    guard source.bytes.count <= SourceText.bytesMax else {
      throw RulesetError(diagnostics: [
        Diagnostic(.error, "The ruleset is larger than \(SourceText.bytesMax) bytes.", at: 0..<1, in: source)
      ])
    }
    let (tokens, errors) = Lexer.tokens(of: source)
    guard errors.isEmpty else { throw RulesetError(diagnostics: Array(errors.prefix(Checker.diagnosticsMax))) }
    var parser = Parser(source: source, tokens: tokens)
    do throws(Failure) {
      return try parser.ruleset()
    } catch {
      throw RulesetError(diagnostics: [error.diagnostic])
    }
  }

  init(source: SourceText, tokens: [Token]) {
    self.source = source
    self.tokens = tokens
  }

  // MARK: Tokens

  var current: Token { tokens[position] }
  /// The end of the token before the current one, in bytes.
  var previousEnd: Int { position > 0 ? tokens[position - 1].range.upperBound : 0 }

  func following(_ ahead: Int) -> Token { tokens[min(position + ahead, tokens.count - 1)] }

  func text(_ token: Token) -> String { source.text(token.range) }

  mutating func advance() -> Token {
    defer { if position < tokens.count - 1 { position += 1 } }
    return tokens[position]
  }

  func isAt(_ symbol: Token.Symbol) -> Bool { current.kind == .symbol(symbol) }

  func isAt(word: String) -> Bool { Self.isWord(current) && text(current) == word }

  static func isWord(_ token: Token) -> Bool { token.kind == .identifier || token.kind == .keyword }

  mutating func take(_ symbol: Token.Symbol) -> Bool {
    guard isAt(symbol) else { return false }
    _ = advance()
    return true
  }

  mutating func take(word: String) -> Bool {
    guard isAt(word: word) else { return false }
    _ = advance()
    return true
  }

  mutating func expect(_ symbol: Token.Symbol, _ context: String) throws(Failure) {
    guard take(symbol) else { throw unexpected("expected '\(symbol.rawValue)' \(context)") }
  }

  func failure(_ message: String, at range: Range<Int>, suggestion: String? = nil) -> Failure {
    Failure(diagnostic: Diagnostic(.error, message, at: range, in: source, suggestion: suggestion))
  }

  func unexpected(_ hint: String? = nil) -> Failure {
    let found = current.kind == .end ? "<EOF>" : text(current)
    return failure("Unexpected '\(found)'.", at: current.range, suggestion: hint)
  }

  /// Reads an identifier to declare, which must not be a reserved word. The checker rejects the names of packages.
  mutating func name(_ what: String) throws(Failure) -> Expression.Name {
    guard current.kind == .identifier else { throw unexpected("expected \(what)") }
    let token = advance()
    return Expression.Name(text: text(token), range: token.range)
  }

  // MARK: Declarations

  mutating func ruleset() throws(Failure) -> RulesetTree {
    var version = 1
    var versionRange: Range<Int>?
    var start = position
    do throws(Failure) {
      (version, versionRange) = try rulesVersion()
    } catch { try resume(after: error, from: start) }
    var functions: [FunctionTree] = []
    var services: [ServiceTree] = []
    while current.kind != .end {
      start = position
      do throws(Failure) {
        if isAt(word: "service") {
          services.append(try service())
        } else if isAt(word: "function") {
          functions.append(try function())
        } else if isAt(word: "import") {
          throw failure(
            "Imports are not supported.", at: current.range, suggestion: "declare the functions in this file")
        } else {
          throw stray("expected 'service' or 'function'")
        }
      } catch { if try resumeDeclaration(after: error, from: start) { _ = try serviceBody() } }
    }
    guard !(functions.isEmpty && services.isEmpty) || errors?.isEmpty == false else {
      throw unexpected("expected 'service'")
    }
    return RulesetTree(version: version, versionRange: versionRange, functions: functions, services: services)
  }

  private mutating func rulesVersion() throws(Failure) -> (Int, Range<Int>?) {
    guard isAt(word: "rules_version") else { return (1, nil) }
    let version: Int
    let start = advance().range.lowerBound
    try expect(.assign, "after rules_version")
    guard current.kind == .string else { throw unexpected("expected '1' or '2' in quotes") }
    let token = advance()
    switch Literal.text(source.bytes[token.range]) {
    case [UInt8(ascii: "1")]: version = 1
    case [UInt8(ascii: "2")]: version = 2
    default:
      throw failure("Unknown rules version \(text(token)).", at: token.range, suggestion: "write rules_version = '2';")
    }
    _ = take(.semicolon)
    return (version, start..<token.range.upperBound)
  }

  private mutating func service() throws(Failure) -> ServiceTree {
    let start = position
    _ = advance()
    var name = Expression.Name(text: "", range: current.range)
    do throws(Failure) {
      name = try serviceName()
      try expect(.openBrace, "before the body of a service")
    } catch { try enterBody(after: error, from: start) }
    let errorCount = errors?.count
    let (functions, matches) = try serviceBody()
    guard !(functions.isEmpty && matches.isEmpty) || errors?.count != errorCount else {
      throw failure("The service is empty.", at: name.range, suggestion: "add a match block")
    }
    return ServiceTree(name: name, functions: functions, matches: matches)
  }

  private mutating func serviceBody() throws(Failure) -> ([FunctionTree], [MatchTree]) {
    var functions: [FunctionTree] = []
    var matches: [MatchTree] = []
    while try !isAtBlockEnd("expected 'match', 'function' or '}'") {
      let start = position
      do throws(Failure) {
        if isAt(word: "function") {
          functions.append(try function())
        } else if isAt(word: "match") {
          matches.append(try match(depth: 0))
        } else if isAt(word: "allow"), errors?.isEmpty == false {
          // After a brace too many, the statements of a match block are here.
          _ = try allow()
        } else {
          throw stray("expected 'match', 'function' or '}'")
        }
      } catch { try resume(after: error, from: start) }
    }
    return (functions, matches)
  }

  /// Reads the name of a service: letters, digits, dots and hyphens without spaces, as Google's engine does.
  private mutating func serviceName() throws(Failure) -> Expression.Name {
    let start = current.range.lowerBound
    guard current.kind != .keyword || following(1).range.lowerBound == current.range.upperBound else {
      throw unexpected("expected the name of a service, such as cloud.firestore")
    }
    var end = start
    while current.range.lowerBound == end, source.bytes[current.range].allSatisfy(Self.isServiceCharacter),
      current.kind != .end
    {
      end = advance().range.upperBound
    }
    guard end > start else { throw unexpected("expected the name of a service, such as cloud.firestore") }
    return Expression.Name(text: source.text(start..<end), range: start..<end)
  }

  private static func isServiceCharacter(_ byte: UInt8) -> Bool {
    Lexer.isDigit(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
      || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
  }

  private mutating func match(depth: Int) throws(Failure) -> MatchTree {
    let begin = position
    let start = advance().range.lowerBound
    guard depth < Self.matchDepthMax else {
      var failure = failure(
        "Match blocks are nested deeper than \(Checker.matchDepthMax) levels.", at: start..<previousEnd,
        suggestion: "write longer paths in fewer blocks")
      failure.isFinal = true
      throw failure
    }
    var segments: [MatchTree.Segment] = []
    var range = current.range
    do throws(Failure) {
      (segments, range) = try matchPath()
    } catch { try enterBody(after: error, from: begin) }
    let errorCount = errors?.count
    var functions: [FunctionTree] = []
    var members: [MatchTree.Member] = []
    while try !isAtBlockEnd("expected 'allow', 'match', 'function' or '}'") {
      let begin = position
      do throws(Failure) {
        if isAt(word: "allow") {
          members.append(.allow(try allow()))
        } else if isAt(word: "match") {
          members.append(.match(try match(depth: depth + 1)))
        } else if isAt(word: "function") {
          functions.append(try function())
        } else {
          throw stray("expected 'allow', 'match', 'function' or '}'")
        }
      } catch { try resume(after: error, from: begin) }
    }
    guard !(functions.isEmpty && members.isEmpty) || errors?.count != errorCount else {
      throw failure("The match block is empty.", at: range, suggestion: "add an allow statement or a match block")
    }
    return MatchTree(segments: segments, range: range, functions: functions, members: members)
  }

  /// Reads the path of a match block and the brace after it.
  private mutating func matchPath() throws(Failure) -> ([MatchTree.Segment], Range<Int>) {
    var segments: [MatchTree.Segment] = []
    let pathStart = current.range.lowerBound
    while true {
      if current.kind == .pathSegment {
        let token = advance()
        segments.append(.literal(Literal.decodedSegment(source.bytes[token.range].dropFirst())))
      } else if isAt(.slash), following(1).kind == .symbol(.openBrace) {
        _ = advance()
        let (name, isGlob) = try capture()
        segments.append(.capture(name, isGlob: isGlob))
      } else {
        break
      }
    }
    guard !segments.isEmpty else { throw unexpected("expected a path, such as /users/{id}") }
    let range = pathStart..<previousEnd
    guard take(.openBrace) else {
      let isWithoutSlash = Self.isWord(current) || current.kind == .symbol(.slash)
      throw unexpected(isWithoutSlash ? "write each segment of a path as /name or /{capture}" : "expected '{'")
    }
    return (segments, range)
  }

  /// Reads `{name}`, `{name=*}` or `{name=**}`.
  mutating func capture() throws(Failure) -> (Expression.Name, isGlob: Bool) {
    try expect(.openBrace, "before a capture")
    let name = try name("the name of a capture")
    var isGlob = false
    if take(.assign) {
      guard take(.star) else { throw unexpected("expected '*' or '**'") }
      isGlob = take(.star)
    }
    try expect(.closeBrace, "after a capture")
    return (name, isGlob)
  }

  private mutating func allow() throws(Failure) -> AllowTree {
    let start = advance().range.lowerBound
    var methods: [Expression.Name] = []
    repeat {
      methods.append(try name("a method, such as read"))
    } while take(.comma)
    var condition: Expression?
    if take(.colon) {
      guard take(word: "if") else { throw unexpected("write 'if' before the condition") }
      condition = try expression()
    }
    let end = previousEnd
    if condition == nil, isAt(word: "if") { throw unexpected("write ':' before 'if'") }
    let isFollowed = isAt(.closeBrace) || ["allow", "match", "function"].contains(text(current))
    guard take(.semicolon) || isFollowed else { throw unexpected("expected ';'") }
    return AllowTree(methods: methods, condition: condition, range: start..<end)
  }

  private mutating func function() throws(Failure) -> FunctionTree {
    _ = advance()
    let name = try name("the name of a function")
    try expect(.openParenthesis, "after the name of a function")
    var parameters: [Expression.Name] = []
    if !take(.closeParenthesis) {
      repeat { parameters.append(try self.name("the name of a parameter")) } while take(.comma)
      try expect(.closeParenthesis, "after the parameters")
    }
    try expect(.openBrace, "before the body of a function")
    var lets: [(name: Expression.Name, value: Expression)] = []
    while take(word: "let") {
      let name = try self.name("the name of a variable")
      try expect(.assign, "after the name of a variable")
      lets.append((name, try expression()))
      try expect(.semicolon, "after a let")
    }
    guard take(word: "return") else { throw unexpected("expected 'return'") }
    let result = try expression()
    _ = take(.semicolon)
    try expect(.closeBrace, "after the result of a function")
    return FunctionTree(name: name, parameters: parameters, lets: lets, result: result)
  }
}
