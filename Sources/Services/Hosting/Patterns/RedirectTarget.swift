import Basics

/// The destination of a redirect: a URL or a path in which `:name` is replaced by a captured part of the path.
struct RedirectTarget: Sendable {
  private enum Piece: Sendable {
    case text(String)
    case group(Int)
  }

  private let pieces: [Piece]
  private let expression: PathExpression?

  /// Parses a destination. Names that the source does not capture are ordinary text.
  init(_ text: String, source: PathPattern) {
    expression = source.expression
    let bytes = Array(text.utf8)
    var pieces: [Piece] = []
    var literal: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: ":"), let expression = source.expression {
        let name = bytes[(index + 1)...].prefix {
          ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || $0 == UInt8(ascii: "_")
        }
        // A number after a host is a port.
        let isStart = index == 0 || bytes[index - 1] == UInt8(ascii: "/") || !name.allSatisfy { $0 &- 0x30 < 10 }
        let word = String(decoding: name, as: UTF8.self)
        if isStart, let group = expression.group(named: word) ?? Self.number(word, expression) {
          pieces += [.text(RedirectTarget.encoded(literal)), .group(group)]
          literal = []
          index = name.endIndex
          if index < bytes.count, bytes[index] == UInt8(ascii: "*") || bytes[index] == UInt8(ascii: "+") { index += 1 }
          continue
        }
      }
      literal.append(bytes[index])
      index += 1
    }
    self.pieces = pieces + [.text(RedirectTarget.encoded(literal))]
  }

  private static func number(_ text: String, _ expression: PathExpression) -> Int? {
    Int(text).flatMap { (1...max(1, expression.groupCount)).contains($0) && $0 <= expression.groupCount ? $0 : nil }
  }

  /// Returns the URL for a path, or `nil` if the source does not match it.
  func location(for path: [UInt8]) -> String? {
    guard pieces.count > 1, let expression else {
      if case .text(let text)? = pieces.first { return text }
      return nil
    }
    guard let groups = expression.groups(in: path) else { return nil }
    var location = ""
    for piece in pieces {
      switch piece {
      case .text(let text): location += text
      case .group(let number): if let range = groups[number] { location += SitePath.encoded(path[range]) }
      }
    }
    return withOwnOrigin(location)
  }

  /// Returns a location without the slashes that captures add at the start of its path.
  ///
  /// Without this, an empty capture, or one that starts with a slash, makes the path `//name`, which browsers read as
  /// the URL of the host `name`. They read a backslash as a slash. A destination that starts with a capture, or has one
  /// in its host, decides itself where it leads.
  private func withOwnOrigin(_ location: String) -> String {
    guard case .text(let start)? = pieces.first, !start.isEmpty else { return location }
    let isSlash = { (letter: Character) in letter == "/" || letter == "\\" }
    if start.hasPrefix("/"), !start.hasPrefix("//") { return "/" + location.drop(while: isSlash) }
    let scheme = start.prefix { $0 != "/" }
    guard scheme.isEmpty || scheme.hasSuffix(":"), start[scheme.endIndex...].hasPrefix("//") else { return location }
    let afterScheme = location.dropFirst(scheme.count + 2)
    let path = afterScheme.drop { !isSlash($0) && $0 != "?" && $0 != "#" }
    guard let first = path.first, isSlash(first) else { return location }
    return location[..<path.startIndex] + "/" + path.drop(while: isSlash)
  }

  /// The text of the configuration with the bytes escaped that a URL cannot contain.
  private static func encoded(_ text: [UInt8]) -> String {
    var out: [UInt8] = []
    for byte in text {
      if byte > 0x20 && byte < 0x7F { out.append(byte) } else { SitePath.appendEscaped(byte, to: &out) }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
