import CRE2

/// A compiled regular expression. Immutable.
final class Pattern: @unchecked Sendable {
  // `@unchecked` is safe: RE2 objects support concurrent use, and this one is never changed.

  /// The methods whose first argument is a pattern.
  static let methodNames: Set<String> = ["matches", "split", "replace"]

  /// The greatest number of groups that a replacement can refer to.
  static let groupsMax = 63
  private static let memoryBytesMax = 1 << 20

  private let compiled: OpaquePointer
  /// The number of capturing groups, at most ``groupsMax``.
  let groupCount: Int

  /// Compiles a pattern. Returns `nil` if RE2 rejects it.
  init?(_ text: some Collection<UInt8>) {
    let translated = Self.translated(Array(text))
    guard
      let compiled = translated.withUnsafeBytes({
        hearth_pattern_create($0.baseAddress, $0.count, Self.memoryBytesMax)
      })
    else { return nil }
    self.compiled = compiled
    groupCount = min(Int(hearth_pattern_group_count(compiled)), Self.groupsMax)
  }

  deinit { hearth_pattern_destroy(compiled) }

  /// Rewrites `(?<name>…)`, which this version of RE2 does not support, as `(?P<name>…)`.
  private static func translated(_ text: [UInt8]) -> [UInt8] {
    var out: [UInt8] = []
    var index = 0
    var isQuoted = false
    func at(_ word: String) -> Bool { text[index...].starts(with: word.utf8) }
    while index < text.count {
      if isQuoted {
        if at("\\E") { isQuoted = false }
      } else if text[index] == UInt8(ascii: "\\"), index + 1 < text.count {
        isQuoted = text[index + 1] == UInt8(ascii: "Q")
        out.append(text[index])
        index += 1
      } else if at("(?<"), index + 3 < text.count, Lexer.startsWord(text[index + 3]) {
        out += Array("(?P".utf8)
        index += 2
        continue
      }
      out.append(text[index])
      index += 1
    }
    return out
  }

  /// Whether the pattern matches the whole text.
  func matches(_ text: UnsafeRawBufferPointer) -> Bool {
    hearth_pattern_matches(compiled, text.baseAddress, text.count)
  }

  /// Returns the number of a named group, or `nil` if the pattern does not have it.
  func group(named name: UnsafeRawBufferPointer) -> Int? {
    let number = Int(hearth_pattern_group_named(compiled, name.baseAddress, name.count))
    return number >= 0 && number <= groupCount ? number : nil
  }

  /// Calls `body` with the limits of each match and its groups, until it returns `false`.
  ///
  /// Matches do not overlap. After an empty match the search continues one character later, and an empty match may
  /// directly follow another match, as in Google's engine.
  func forEachMatch(
    in text: UnsafeRawBufferPointer, groups: Int, _ body: (UnsafeBufferPointer<Int>) -> Bool
  ) {
    withUnsafeTemporaryAllocation(of: Int.self, capacity: 2 * (groups + 1)) { bounds in
      guard let base = bounds.baseAddress else { return }
      var start = 0
      while start <= text.count,
        hearth_pattern_find(compiled, text.baseAddress, text.count, start, base, Int32(groups + 1))
      {
        guard body(UnsafeBufferPointer(bounds)) else { return }
        start = bounds[1]
        if bounds[0] == bounds[1] {
          start += 1
          while start < text.count, text[start] & 0xC0 == 0x80 { start += 1 }
        }
      }
    }
  }
}
