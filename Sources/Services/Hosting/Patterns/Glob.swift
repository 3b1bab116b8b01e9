/// A glob of `firebase.json`, translated to regular expressions.
///
/// The syntax is that of minimatch, which Firebase's tools use: `*` and `?` match within a segment of the path, `**` as
/// a whole segment matches any number of segments, `[…]` a character, `{a,b}` and `@(a|b)` one of the alternatives, and
/// `?(…)`, `*(…)`, `+(…)` repeat them. `!(a|b)` matches a part of a segment for which the pattern with the alternatives
/// in its place does not match. Unlike in minimatch, `*` also matches names that start with a dot.
struct Glob {
  /// The reason why a glob is not valid.
  struct Failure: Error { let text: String }

  indirect enum Node {
    case text([UInt8])
    /// One character of a segment.
    case character
    /// A set of characters, as an expression.
    case set(String)
    /// Any part of a segment. It is not empty if it is the whole segment.
    case star(isWhole: Bool)
    /// Any number of segments: with their slashes, or those at the end of the pattern.
    case segments(isLast: Bool)
    case group(Kind, [[Node]])
    /// `:name` in the source of a redirect, with its modifier.
    case capture(String, Modifier)
  }

  enum Kind {
    case one, optional, any, some
    /// The number of the negation, and whether it is the whole segment.
    case none(Int, isWhole: Bool)
  }

  enum Modifier { case one, optional, any, some }

  private(set) var nodes: [Node]
  /// Whether a path matches if the pattern does not.
  let isNegated: Bool
  private(set) var negationCount = 0
  private(set) var hasCaptures = false

  /// Parses a glob. A path starts with a slash, so a missing one is added.
  ///
  /// - Parameter hasCaptures: whether `:name` captures a segment, as in the source of a redirect.
  /// - Throws: ``Failure`` if a group is not closed or groups are nested too deeply.
  init(_ text: String, hasCaptures: Bool = false) throws(Failure) {
    var parser = GlobParser(text, hasCaptures: hasCaptures)
    isNegated = parser.isNegated
    nodes = try parser.parse()
    negationCount = parser.negationCount
    self.hasCaptures = parser.foundCapture
  }

  /// The text that each match starts with.
  var prefix: [UInt8] {
    var prefix: [UInt8] = []
    for node in nodes {
      guard case .text(let text) = node else { break }
      prefix += text
    }
    // A capture may leave out the slash before it.
    return prefix
  }

  /// The path that the glob matches, if it matches only one.
  var exactPath: [UInt8]? {
    guard !isNegated else { return nil }
    for node in nodes { guard case .text = node else { return nil } }
    return prefix
  }

  /// Returns the regular expression for whole paths. `negation` is the number of the negated group whose alternatives
  /// are to match; the others match any text.
  func expression(negation: Int? = nil) -> String {
    // After a capture, a slash at the end of the path is ignored.
    "\\A(?:" + Self.expression(nodes, negation) + ")" + (hasCaptures ? "/?" : "") + "\\z"
  }

  private static func expression(_ nodes: [Node], _ negation: Int?) -> String {
    var out = ""
    for node in nodes {
      switch node {
      case .text(let text): out += quoted(text)
      case .character: out += "[^/]"
      case .set(let set): out += set
      case .star(let isWhole): out += isWhole ? "[^/]+" : "[^/]*"
      case .segments(let isLast): out += isLast ? "(?s:.*)" : "(?:[^/]*/)*"
      case .capture(let name, let modifier): out += capture(name, modifier)
      case .group(let kind, let alternatives):
        let body = "(?:" + alternatives.map { expression($0, negation) }.joined(separator: "|") + ")"
        switch kind {
        case .one: out += body
        case .optional: out += body + "?"
        case .any: out += body + "*"
        case .some: out += body + "+"
        case .none(let number, let isWhole): out += number == negation ? body : isWhole ? "[^/]+" : "[^/]*"
        }
      }
    }
    return out
  }

  /// The expression of a capture. A modifier also applies to the slash before it.
  private static func capture(_ name: String, _ modifier: Modifier) -> String {
    switch modifier {
    case .one: "(?P<\(name)>[^/]+)"
    case .optional: "(?:/(?P<\(name)>[^/]+))?"
    case .any: "(?:/(?P<\(name)>[^/]+(?:/[^/]+)*))?"
    case .some: "/(?P<\(name)>[^/]+(?:/[^/]+)*)"
    }
  }

  /// The expression that matches a text.
  static func quoted(_ text: [UInt8]) -> String {
    var out: [UInt8] = []
    for byte in text {
      let isPlain = byte >= 0x80 || byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "_")
      if !isPlain { out.append(UInt8(ascii: "\\")) }
      out.append(byte)
    }
    return String(decoding: out, as: UTF8.self)
  }
}
