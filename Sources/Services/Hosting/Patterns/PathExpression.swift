import CRE2

/// A regular expression for paths, in RE2's syntax. Immutable. Time is linear in the path.
final class PathExpression: @unchecked Sendable {
  // `@unchecked` is safe: RE2 objects support concurrent use, and this one is never changed.

  private let compiled: OpaquePointer
  /// The number of capturing groups, at most ``HostingLimits/capturesMax``.
  let groupCount: Int

  /// Compiles an expression. Returns `nil` if RE2 rejects it or it is too large.
  init?(_ text: String) {
    let translated = Self.translated(Array(text.utf8))
    guard
      let compiled = translated.withUnsafeBytes({
        hearth_pattern_create($0.baseAddress, $0.count, HostingLimits.patternBytesMax)
      })
    else { return nil }
    self.compiled = compiled
    groupCount = min(Int(hearth_pattern_group_count(compiled)), HostingLimits.capturesMax)
  }

  deinit { hearth_pattern_destroy(compiled) }

  /// Rewrites `(?<name>…)` as `(?P<name>…)`, the only form that older versions of RE2 support.
  private static func translated(_ text: [UInt8]) -> [UInt8] {
    var out: [UInt8] = []
    var index = 0
    while index < text.count {
      if text[index] == UInt8(ascii: "\\"), index + 1 < text.count {
        out += text[index...(index + 1)]
        index += 2
      } else if text[index...].starts(with: "(?<".utf8), index + 3 < text.count, isLetter(text[index + 3]) {
        out += Array("(?P<".utf8)
        index += 3
      } else {
        out.append(text[index])
        index += 1
      }
    }
    return out
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "_") }

  /// Whether a part of the path matches.
  func matches(_ path: [UInt8]) -> Bool {
    var unused = 0
    return path.withUnsafeBytes { hearth_pattern_find(compiled, $0.baseAddress, $0.count, 0, &unused, 0) }
  }

  /// Returns the match and its groups as ranges of the path, with `nil` for a group that did not take part, or `nil` if
  /// no part of the path matches.
  func groups(in path: [UInt8]) -> [Range<Int>?]? {
    var bounds = [Int](repeating: -1, count: 2 * (groupCount + 1))
    let isFound = path.withUnsafeBytes {
      hearth_pattern_find(compiled, $0.baseAddress, $0.count, 0, &bounds, Int32(groupCount + 1))
    }
    guard isFound else { return nil }
    return (0...groupCount).map { bounds[2 * $0] < 0 ? nil : bounds[2 * $0]..<bounds[2 * $0 + 1] }
  }

  /// Returns the number of the group with a name, or `nil` if no group has it.
  func group(named name: String) -> Int? {
    let number = Array(name.utf8).withUnsafeBytes {
      Int(hearth_pattern_group_named(compiled, $0.baseAddress, $0.count))
    }
    return number >= 0 && number <= groupCount ? number : nil
  }
}
