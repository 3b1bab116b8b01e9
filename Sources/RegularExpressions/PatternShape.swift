/// Properties of a pattern that determine the time to compile it and to search with it.
package struct PatternShape {
  /// Whether the automaton that matches a whole text has few states, whatever the text is.
  ///
  /// This holds for a sequence of single characters and classes of which only the last may repeat, with few
  /// alternatives: `data:image/.*`, `(a|b)c?[0-9]+`. Only such patterns read a long text at a low cost.
  let isSmall: Bool
  /// Whether the automaton that searches for the pattern anywhere in a text has few states.
  let isSmallAnywhere: Bool
  /// Whether a search may read all of the text to find a short match: it has to know whether a longer one, which the
  /// pattern prefers, follows. A repetition at the end of the pattern matches whatever it reads.
  let isUnbounded: Bool

  private static let alternativesMax = 3
  private static let bytesMax = 200
  /// An automaton with so few characters has at most some hundred states.
  private static let anywhereBytesMax = 8

  /// Reads a pattern that RE2 accepts.
  init(_ text: [UInt8]) {
    isSmall = Self.isSequence(text[...]) && text.count <= Self.bytesMax
    isSmallAnywhere = isSmall && text.count <= Self.anywhereBytesMax
    let repeats = text.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "+") } || Self.hasOpenCount(text)
    isUnbounded = repeats && !(isSmall && !text.contains(UInt8(ascii: "$")))
  }

  /// Whether a pattern has a count without an upper limit, as in `a{2,}`.
  private static func hasOpenCount(_ text: [UInt8]) -> Bool {
    zip(text, text.dropFirst()).contains { $0 == UInt8(ascii: ",") && $1 == UInt8(ascii: "}") }
  }

  /// Whether a pattern is a sequence of which only the last part may repeat. Returns `false` for rare syntax.
  private static func isSequence(_ text: ArraySlice<UInt8>) -> Bool {
    var rest = text
    var alternatives = 0
    var isAfterGroup = false
    while let byte = rest.popFirst() {
      defer { isAfterGroup = byte == UInt8(ascii: ")") }
      switch byte {
      case UInt8(ascii: "\\"):
        // Others have arguments or a special meaning: \pL, \x{10}, \Q…\E, \C, \123.
        guard let escaped = rest.popFirst(), "dDwWsSbBntrfv.-/^$*+?()[]{}|\\".utf8.contains(escaped) else {
          return false
        }
      case UInt8(ascii: "["):
        guard skipClass(&rest) else { return false }
      case UInt8(ascii: "("):
        if rest.first == UInt8(ascii: "?") { return false }
      case UInt8(ascii: "{"): return false
      case UInt8(ascii: "?"), UInt8(ascii: "|"): alternatives += 1
      case UInt8(ascii: "*"), UInt8(ascii: "+"):
        return !isAfterGroup && alternatives <= alternativesMax
          && rest.allSatisfy { $0 == UInt8(ascii: ")") || $0 == UInt8(ascii: "$") }
      default: break
      }
    }
    return alternatives <= alternativesMax
  }

  /// Skips the rest of a class. Returns `false` for a class within a class, as in `[[:alpha:]]`.
  private static func skipClass(_ rest: inout ArraySlice<UInt8>) -> Bool {
    if rest.first == UInt8(ascii: "^") { rest.removeFirst() }
    if rest.first == UInt8(ascii: "]") { rest.removeFirst() }
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "]"): return true
      case UInt8(ascii: "["): return false
      case UInt8(ascii: "\\"): rest = rest.dropFirst()
      default: break
      }
    }
    return false
  }

  // MARK: Compiling

  /// The cost of compiling a pattern, in steps of about a nanosecond: at least the time that RE2 takes for the worst
  /// pattern with as many bytes, classes and repetitions. Classes of Unicode's characters and repetitions with a count
  /// are the most expensive parts.
  package static func costOfCompiling(_ text: UnsafeRawBufferPointer) -> Int {
    var classes = 0
    var brackets = 0
    var counts = 0
    var hasFlags = false
    for (index, byte) in text.enumerated() {
      let next = index + 1 < text.count ? text[index + 1] : 0
      switch (byte, next) {
      case (UInt8(ascii: "\\"), UInt8(ascii: "p")), (UInt8(ascii: "\\"), UInt8(ascii: "P")): classes += 1
      case (UInt8(ascii: "["), _): brackets += 1
      case (UInt8(ascii: "{"), _): counts += 1
      case (UInt8(ascii: "("), UInt8(ascii: "?")): hasFlags = true
      default: break
      }
    }
    var cost = 20_000 + 400 * text.count + text.count * text.count / 3 + 100_000 * counts + 250_000 * classes
    // A repetition compiles a copy of its class for each count, up to the limit of RE2's memory.
    if counts > 0, classes + brackets > 0 { cost += 4_000_000 }
    // The flag (?i) adds the other case of each character.
    if hasFlags { cost += 500_000 * (classes + brackets) }
    return cost
  }
}
