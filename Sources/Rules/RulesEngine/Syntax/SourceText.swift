/// The text of a ruleset and its lines. Converts byte offsets to lines and columns.
package struct SourceText: Sendable {
  /// The maximum size of a ruleset in bytes (rules-language.md, section 15).
  package static let bytesMax = 256 << 10

  /// The UTF-8 bytes.
  package let bytes: [UInt8]
  /// The offset of each line's start, ascending.
  private let lineStarts: [Int]

  /// The number of lines.
  package var lineCount: Int { lineStarts.count }

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var starts = [0]
    for (offset, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") { starts.append(offset + 1) }
    lineStarts = starts
  }

  /// Returns the 1-based line of a byte offset. Cost: a binary search.
  package func line(of offset: Int) -> Int {
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    return low + 1
  }

  /// Returns the 1-based column of a byte offset, in characters (Unicode scalars).
  package func column(of offset: Int) -> Int {
    let start = lineStarts[line(of: offset) - 1]
    return 1 + bytes[start..<min(max(offset, start), bytes.count)].count { $0 & 0xC0 != 0x80 }
  }

  /// Returns the byte range of a 1-based line, without its `\n`. A `\r` before it remains.
  package func range(ofLine line: Int) -> Range<Int> {
    let start = lineStarts[line - 1]
    return start..<max(start, line < lineStarts.count ? lineStarts[line] - 1 : bytes.count)
  }

  /// Returns the text of a 1-based line, without its `\n`. A `\r` before it remains.
  package func text(ofLine line: Int) -> String { String(decoding: bytes[range(ofLine: line)], as: UTF8.self) }

  /// Returns a part of the text, by its byte range.
  package func text(_ range: Range<Int>) -> String {
    String(decoding: bytes[range.clamped(to: 0..<bytes.count)], as: UTF8.self)
  }
}
