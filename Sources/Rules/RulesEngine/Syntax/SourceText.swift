/// The text of a ruleset with its lines, so that a byte offset can be shown as a line, a column and a caret.
package struct SourceText: Sendable {
  /// The most bytes a ruleset may have (rules-language.md, section 15).
  package static let bytesMax = 256 << 10

  /// The UTF-8 bytes.
  package let bytes: [UInt8]
  /// Where each line starts, ascending.
  private let lineStarts: [Int]

  /// How many lines there are.
  package var lineCount: Int { lineStarts.count }

  /// Finds the lines of a text.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var starts = [0]
    for (offset, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") { starts.append(offset + 1) }
    lineStarts = starts
  }

  /// The 1-based line of an offset. Cost: a binary search.
  package func line(of offset: Int) -> Int {
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    return low + 1
  }

  /// The 1-based column of an offset, in characters (Unicode scalars).
  package func column(of offset: Int) -> Int {
    let start = lineStarts[line(of: offset) - 1]
    return 1 + bytes[start..<min(max(offset, start), bytes.count)].count { $0 & 0xC0 != 0x80 }
  }

  /// Where a 1-based line stands, in bytes, without its end.
  package func range(ofLine line: Int) -> Range<Int> {
    let start = lineStarts[line - 1]
    return start..<max(start, line < lineStarts.count ? lineStarts[line] - 1 : bytes.count)
  }

  /// The text of a 1-based line, without its end.
  package func text(ofLine line: Int) -> String {
    let start = lineStarts[line - 1]
    let end = line < lineStarts.count ? lineStarts[line] - 1 : bytes.count
    return String(decoding: bytes[start..<max(start, end)], as: UTF8.self)
  }

  /// A part of the text.
  package func text(_ range: Range<Int>) -> String {
    String(decoding: bytes[range.clamped(to: 0..<bytes.count)], as: UTF8.self)
  }
}
