/// A writer for JSON strings.
enum JSONStringText {
  /// Appends a text in quotes, with only the escapes that JSON requires.
  static func append(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    out.append(UInt8(ascii: "\""))
    var plainStart = 0
    for index in 0..<text.count {
      let byte = text[index]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[plainStart..<index]))
      plainStart = index + 1
      out.append(UInt8(ascii: "\\"))
      switch byte {
      case 0x08: out.append(UInt8(ascii: "b"))
      case 0x09: out.append(UInt8(ascii: "t"))
      case 0x0A: out.append(UInt8(ascii: "n"))
      case 0x0C: out.append(UInt8(ascii: "f"))
      case 0x0D: out.append(UInt8(ascii: "r"))
      case 0..<0x20:
        out.append(contentsOf: "u00".utf8)
        out.append(UInt8(ascii: "0") + byte >> 4)
        let low = byte & 0x0F
        out.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
      default: out.append(byte)
      }
    }
    out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[plainStart...]))
    out.append(UInt8(ascii: "\""))
  }

  /// Appends a text in quotes.
  static func append(_ text: String, to out: inout [UInt8]) {
    var copy = text
    copy.withUTF8 { append(UnsafeRawBufferPointer($0), to: &out) }
  }
}
