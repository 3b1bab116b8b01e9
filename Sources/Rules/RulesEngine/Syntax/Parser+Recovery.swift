/// The search for further errors: after an error the parser continues at the next statement or block.
///
/// An error that may be a consequence of an earlier one is not reported. A mistake in a statement hides the rest of
/// that statement, and after the first error the braces of blocks are no longer checked.
extension Parser {
  /// Returns the syntax errors of a text, at most ``Checker/diagnosticsMax``. The first one is the error that
  /// ``parse(_:)`` reports. Cost: linear in the length of the text.
  static func errors(in source: SourceText) -> [Diagnostic] {
    do throws(RulesetError) { _ = try parse(source) } catch {
      let (tokens, malformed) = Lexer.tokens(of: source)
      guard malformed.isEmpty, source.bytes.count <= SourceText.bytesMax else { return error.diagnostics }
      var parser = Parser(source: source, tokens: tokens)
      parser.errors = []
      // The last error may end the parsing.
      do throws(Failure) { _ = try parser.ruleset() } catch { parser.report(error) }
      return parser.errors ?? error.diagnostics
    }
    return []
  }

  private mutating func report(_ failure: Failure) {
    guard var errors, !failure.isReported, errors.count < Checker.diagnosticsMax else { return }
    guard errors.isEmpty || !failure.isStructural && current.kind != .end else { return }
    errors.append(failure.diagnostic)
    self.errors = errors
  }

  /// Returns the error for a token that begins neither a statement nor a block. It is probably a mistake of its own if
  /// it is a misspelled word at the start of a line.
  func stray(_ hint: String) -> Failure {
    var failure = unexpected(hint)
    let isMisspelled =
      Self.isWord(current) && startsLine(position)
      && NearestName.hint(for: text(current), among: Self.statementWords) != nil
    failure.isStructural = !isMisspelled
    return failure
  }

  private static let statementWords = ["allow", "match", "function", "service"]

  /// Skips a closing brace and returns true if one is next, or if the text ends after an error.
  /// - Throws: ``Failure`` if the text ends and the parser stops at the first error.
  mutating func isAtBlockEnd(_ hint: String) throws(Failure) -> Bool {
    if take(.closeBrace) { return true }
    guard errors != nil, current.kind == .end else { return false }
    report(stray(hint))
    return true
  }

  /// Reports an error in the statement or block that begins at `start`, and moves to the next one.
  /// - Throws: the error, if the parser stops at the first one.
  mutating func resume(after failure: Failure, from start: Int) throws(Failure) {
    guard errors != nil else { throw failure }
    report(failure)
    nesting = 0
    position = failure.isFinal || errors?.count == Checker.diagnosticsMax ? tokens.count - 1 : next(after: start)
  }

  /// Reports an error outside of a service, and moves to the next declaration. Returns true if the parser is now in a
  /// body whose head is not valid, such as after `srevice cloud.firestore {`.
  /// - Throws: the error, if the parser stops at the first one.
  mutating func resumeDeclaration(after failure: Failure, from start: Int) throws(Failure) -> Bool {
    guard errors != nil else { throw failure }
    if isAt(word: "import") || text(tokens[start]) == "function" {
      try resume(after: failure, from: start)
      return false
    }
    report(failure)
    nesting = 0
    position = failure.isFinal ? tokens.count - 1 : max(position, start)
    while current.kind != .end {
      if position > start, startsStatement(position), ["service", "function"].contains(text(current)) { return false }
      let isCapture = position > 0 && tokens[position - 1].kind == .symbol(.slash)
      if advance().kind == .symbol(.openBrace), !isCapture { return true }
    }
    return false
  }

  /// Reports an error in the head of a block, and moves into the body: after its brace, or to the first statement if
  /// the brace is missing.
  /// - Throws: the error, if the parser stops at the first one or does not find the body.
  mutating func enterBody(after failure: Failure, from start: Int) throws(Failure) {
    guard errors != nil else { throw failure }
    report(failure)
    var reported = failure
    reported.isReported = true
    var captureDepth = 0
    var index = start + 1
    while tokens[index].kind != .end {
      if startsStatement(index) {
        position = index
        return
      }
      switch tokens[index].kind {
      case .symbol(.openBrace) where tokens[index - 1].kind == .symbol(.slash): captureDepth += 1
      case .symbol(.openBrace):
        position = index + 1
        return
      case .symbol(.closeBrace) where captureDepth > 0: captureDepth -= 1
      case .symbol(.closeBrace) where startsLine(index): throw reported
      case .symbol(.semicolon): throw reported
      default: break
      }
      index += 1
    }
    throw reported
  }

  /// Returns the position of the next statement or block, if the one that begins at `start` has an error at the
  /// current position.
  private func next(after start: Int) -> Int {
    let isFunction = text(tokens[start]) == "function"
    var depth = 0
    var hasBody = false
    var index = start
    while tokens[index].kind != .end {
      if index > start, startsStatement(index), index >= position || startsLine(index) { return index }
      switch tokens[index].kind {
      case .symbol(.openBrace):
        depth += 1
        hasBody = true
      case .symbol(.closeBrace) where depth > 0:
        depth -= 1
        if isFunction, depth == 0, index >= position { return index + 1 }
      case .symbol(.closeBrace) where index >= position:
        return isFunction && !hasBody ? index + 1 : max(index, start + 1)
      case .symbol(.semicolon) where !isFunction && index >= position: return index + 1
      default: break
      }
      index += 1
    }
    return index
  }

  /// Whether the token at a position begins a statement or block, as far as the tokens after it show.
  private func startsStatement(_ index: Int) -> Bool {
    let token = tokens[index]
    guard Self.isWord(token), index + 1 < tokens.count, index == 0 || tokens[index - 1].kind != .symbol(.dot) else {
      return false
    }
    let following = tokens[index + 1]
    switch text(token) {
    case "allow": return following.kind == .identifier
    case "match": return following.kind == .pathSegment || following.kind == .symbol(.slash)
    case "function": return following.kind == .identifier
    case "service": return following.kind == .identifier
    default: return false
    }
  }

  /// Whether the token at a position is the first one of its line.
  private func startsLine(_ index: Int) -> Bool {
    guard index > 0 else { return true }
    return source.line(of: tokens[index].range.lowerBound) != source.line(of: tokens[index - 1].range.lowerBound)
  }
}
