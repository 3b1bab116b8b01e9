import CRE2

/// A compiled regular expression of RE2. Immutable.
package final class Pattern: @unchecked Sendable {
  // `@unchecked` is safe: RE2 objects support concurrent use, and this one is never changed.

  /// The greatest number of groups that a replacement can refer to.
  package static let groupsMax = 63
  private static let memoryBytesMax = 1 << 20

  private let compiled: OpaquePointer
  /// The number of instructions of the compiled pattern.
  private let size: Int
  private let shape: PatternShape
  /// The number of capturing groups, at most ``groupsMax``.
  package let groupCount: Int

  /// Compiles a pattern. Returns `nil` if RE2 rejects it.
  package init?(_ text: some Collection<UInt8>) {
    let translated = Self.translated(Array(text))
    guard
      let compiled = translated.withUnsafeBytes({
        hearth_pattern_create($0.baseAddress, $0.count, Self.memoryBytesMax)
      })
    else { return nil }
    self.compiled = compiled
    size = max(1, Int(hearth_pattern_size(compiled)))
    shape = PatternShape(translated)
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
      } else if at("(?<"), index + 3 < text.count, startsName(text[index + 3]) {
        out += Array("(?P".utf8)
        index += 2
        continue
      }
      out.append(text[index])
      index += 1
    }
    return out
  }

  private static func startsName(_ byte: UInt8) -> Bool {
    (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "_")
      || byte == UInt8(ascii: "$")
  }

  /// Whether the pattern matches the whole text. Returns `false` if `charge` refuses a cost, in steps.
  package func matches(_ text: UnsafeRawBufferPointer, charge: (Int) -> Bool) -> Bool {
    guard charge(text.count * costOfByte(text, isSmall: shape.isSmall)) else { return false }
    return hearth_pattern_matches(compiled, text.baseAddress, text.count)
  }

  /// The cost of reading a byte of a text, in steps.
  ///
  /// RE2 builds an automaton while it reads, which takes two steps a byte once its states are known. If it has too many
  /// states for its memory, RE2 uses an algorithm that visits up to all instructions of the pattern for each byte.
  private func costOfByte(_ text: UnsafeRawBufferPointer, isSmall: Bool) -> Int {
    // A text creates at most one state for each byte, and a state has up to four bytes for each instruction.
    let stateBytes = text.count * (4 * size + 200)
    return isSmall || stateBytes < Self.automatonBytesMin ? 2 : 3 * size
  }

  /// The greatest number of bytes that a search reads from `start`, not counting those up to the end of its match.
  private func ahead(of start: Int, _ text: UnsafeRawBufferPointer) -> Int {
    // Without repetitions, each byte of a match takes another instruction.
    min(text.count - start, shape.isUnbounded ? text.count : size)
  }

  /// The memory that RE2 has at least for the states of one automaton, with a margin.
  private static let automatonBytesMin = 150_000

  /// Returns the number of a named group, or `nil` if the pattern does not have it.
  package func group(named name: UnsafeRawBufferPointer) -> Int? {
    let number = Int(hearth_pattern_group_named(compiled, name.baseAddress, name.count))
    return number >= 0 && number <= groupCount ? number : nil
  }

  /// Calls `body` with the limits of each match and its groups, until it returns `false` or `charge` refuses a cost, in
  /// steps.
  ///
  /// Matches do not overlap. After an empty match the search continues one character later, and an empty match may
  /// directly follow another match, as in Google's engine.
  package func forEachMatch(
    in text: UnsafeRawBufferPointer, groups: Int, charge: (Int) -> Bool,
    _ body: (UnsafeBufferPointer<Int>) -> Bool
  ) {
    let costOfByte = costOfByte(text, isSmall: shape.isSmallAnywhere)
    withUnsafeTemporaryAllocation(of: Int.self, capacity: 2 * (groups + 1)) { bounds in
      guard let base = bounds.baseAddress else { return }
      var start = 0
      while start <= text.count, charge(250 + ahead(of: start, text) * costOfByte),
        hearth_pattern_find(compiled, text.baseAddress, text.count, start, base, 1),
        charge((base[1] - start) * costOfByte),
        groups == 0 || findGroups(in: text, from: start, base, groups: groups, costOfByte, charge)
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

  /// Finds the groups of a match that is known. RE2 visits up to all instructions of the pattern for each byte of it.
  private func findGroups(
    in text: UnsafeRawBufferPointer, from start: Int, _ bounds: UnsafeMutablePointer<Int>, groups: Int,
    _ costOfByte: Int, _ charge: (Int) -> Bool
  ) -> Bool {
    let searched = max(ahead(of: start, text), bounds[1] - start)
    guard charge(250 + 4 * (bounds[1] - bounds[0]) * size + searched * costOfByte) else { return false }
    return hearth_pattern_find(compiled, text.baseAddress, text.count, start, bounds, Int32(groups + 1))
  }
}
