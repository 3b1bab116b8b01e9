import Basics

/// Splits a ruleset into tokens.
///
/// Accepts any bytes: a malformed part becomes an error, and the lexer continues after it. Cost: linear in the
/// length of the text.
struct Lexer {
  private let source: SourceText
  private let bytes: [UInt8]
  private var offset = 0
  private var tokens: [Token] = []
  private var errors: [Diagnostic] = []
  /// The offset of the last `*/`, so that many unclosed comments do not each search the rest of the text.
  private let lastCommentEnd: Int

  /// Returns the tokens of a text, the last of kind `end`, and errors for the malformed parts.
  static func tokens(of source: SourceText) -> ([Token], [Diagnostic]) {
    var lexer = Lexer(source)
    lexer.run()
    return (lexer.tokens, lexer.errors)
  }

  private init(_ source: SourceText) {
    self.source = source
    bytes = source.bytes
    var last = -1
    for index in bytes.indices.dropLast() where bytes[index] == UInt8(ascii: "*") {
      if bytes[index + 1] == UInt8(ascii: "/") { last = index }
    }
    lastCommentEnd = last
  }

  private func byte(_ ahead: Int = 0) -> UInt8 {
    let index = offset + ahead
    return index < bytes.count ? bytes[index] : 0
  }

  private mutating func add(_ kind: Token.Kind, _ end: Int) {
    tokens.append(Token(kind: kind, range: offset..<end))
    offset = end
  }

  private mutating func run() {
    while offset < bytes.count {
      switch byte() {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"), 0x0C: offset += 1
      case UInt8(ascii: "/"): slash()
      case UInt8(ascii: "\""), UInt8(ascii: "'"): string(.string, quoteAt: offset)
      case UInt8(ascii: "0")...UInt8(ascii: "9"): number()
      case UInt8(ascii: ".") where Self.isDigit(byte(1)): number()
      case UInt8(ascii: "b"), UInt8(ascii: "B"):
        if byte(1) == UInt8(ascii: "'") || byte(1) == UInt8(ascii: "\"") {
          string(.bytes, quoteAt: offset + 1)
        } else {
          word()
        }
      case UInt8(ascii: "$") where byte(1) == UInt8(ascii: "("): add(.symbol(.dollar), offset + 1)
      case let first where Self.startsWord(first): word()
      default: symbol()
      }
    }
    tokens.append(Token(kind: .end, range: bytes.count..<bytes.count))
  }

  static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  static func startsWord(_ byte: UInt8) -> Bool {
    (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "_")
      || byte == UInt8(ascii: "$")
  }

  private mutating func word() {
    var end = offset + 1
    while end < bytes.count, Self.startsWord(bytes[end]) || Self.isDigit(bytes[end]) { end += 1 }
    add(Token.keywords.contains(source.text(offset..<end)) ? .keyword : .identifier, end)
  }

  /// Reads `0`, `12`, `1.5`, `1.` or `.5`. A character that follows directly, such as the `x` of `0x1F`, starts a
  /// new token.
  private mutating func number() {
    var end = offset
    if bytes[end] == UInt8(ascii: "0") {
      end += 1
    } else {
      while end < bytes.count, Self.isDigit(bytes[end]) { end += 1 }
    }
    guard end < bytes.count, bytes[end] == UInt8(ascii: ".") else { return add(.integer, end) }
    end += 1
    while end < bytes.count, Self.isDigit(bytes[end]) { end += 1 }
    add(.float, end)
  }

  /// Reads a literal, which must end on its line. An unknown escape sequence is an error.
  private mutating func string(_ kind: Token.Kind, quoteAt quote: Int) {
    var end = quote + 1
    while end < bytes.count {
      switch bytes[end] {
      case bytes[quote]: return add(kind, end + 1)
      case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
        return unreadable(
          to: end, "A string must end on the line on which it starts.",
          hint: "add the closing quote, or write \\n for a line break")
      case UInt8(ascii: "\\"):
        guard let length = Literal.escapeLength(bytes, at: end) else {
          // Skip the rest of the literal, so that it is not read as tokens.
          let bad = end
          while end < bytes.count, bytes[end] != UInt8(ascii: "\n"), bytes[end] != bytes[quote] || end == bad + 1 {
            end += 1
          }
          errors.append(
            Diagnostic(
              .error, "Unknown escape sequence in a string.", at: bad..<bad + 2, in: source,
              suggestion: "write '\\\\' for a backslash"))
          offset = min(end + 1, bytes.count)
          return
        }
        end += length
      default: end += 1
      }
    }
    unreadable(to: end, "The string has no closing quote.", hint: "add the closing quote")
  }

  private mutating func unreadable(to end: Int, _ message: String, hint: String? = nil) {
    errors.append(Diagnostic(.error, message, at: offset..<max(end, offset + 1), in: source, suggestion: hint))
    offset = max(end, offset + 1)
  }

  /// Reads a comment, a path segment or a division. All of them begin with a slash; the longest match wins.
  private mutating func slash() {
    if byte(1) == UInt8(ascii: "/") {
      while offset < bytes.count, byte() != UInt8(ascii: "\n") { offset += 1 }
      return
    }
    let segmentEnd = pathSegmentEnd()
    if byte(1) == UInt8(ascii: "*"), lastCommentEnd >= offset + 2 {
      var end = offset + 2
      while end <= lastCommentEnd, !(bytes[end] == UInt8(ascii: "*") && bytes[end + 1] == UInt8(ascii: "/")) {
        end += 1
      }
      if end + 2 >= segmentEnd {
        offset = end + 2
        return
      }
    }
    if segmentEnd > offset + 1 { add(.pathSegment, segmentEnd) } else { add(.symbol(.slash), offset + 1) }
  }

  /// Returns the end of the path segment after the slash, or the end of the slash if no segment follows.
  private func pathSegmentEnd() -> Int {
    var end = offset + 1
    if end < bytes.count, bytes[end] == UInt8(ascii: "(") {
      var inner = end + 1
      while let next = segmentCharacter(at: inner) { inner = next }
      guard inner > end + 1, inner < bytes.count, bytes[inner] == UInt8(ascii: ")") else { return end }
      return inner + 1
    }
    while let next = segmentCharacter(at: end) { end = next }
    return end
  }

  /// Returns the offset after the character of a path segment at `index`, or `nil` if no such character is there.
  private func segmentCharacter(at index: Int) -> Int? {
    guard index < bytes.count else { return nil }
    switch bytes[index] {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"), UInt8(ascii: "*"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: ":"),
      UInt8(ascii: "@"), UInt8(ascii: "+"):
      return index + 1
    case UInt8(ascii: "%"):
      guard index + 2 < bytes.count, Hexadecimal.digit(bytes[index + 1]) != nil,
        Hexadecimal.digit(bytes[index + 2]) != nil
      else { return nil }
      return index + 3
    default: return nil
    }
  }

  private mutating func symbol() {
    if let two = Token.Symbol(rawValue: source.text(offset..<min(offset + 2, bytes.count))) {
      return add(.symbol(two), offset + two.rawValue.utf8.count)
    }
    if let one = Token.Symbol(rawValue: source.text(offset..<offset + 1)) { return add(.symbol(one), offset + 1) }
    var end = offset + 1
    while end < bytes.count, bytes[end] & 0xC0 == 0x80 { end += 1 }
    unreadable(to: end, "Unexpected character '\(source.text(offset..<end))'.")
  }
}
