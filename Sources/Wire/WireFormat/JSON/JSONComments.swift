/// JSON with comments, as the Firebase tools accept it in `firebase.json`: `// …` up to the end of the line, and `/* …
/// */`.
package enum JSONComments {
  /// Returns the text with spaces in place of comments, so that positions in error messages stay correct.
  package static func removed(from bytes: [UInt8]) -> [UInt8] {
    enum Part { case code, string, line, block }
    var result = bytes
    var part = Part.code
    var index = 0
    while index < bytes.count {
      let pair = (bytes[index], index + 1 < bytes.count ? bytes[index + 1] : 0)
      var count = 1
      switch (part, pair.0, pair.1) {
      case (.code, UInt8(ascii: "\""), _): part = .string
      case (.code, UInt8(ascii: "/"), UInt8(ascii: "/")): part = .line
      case (.code, UInt8(ascii: "/"), UInt8(ascii: "*")):
        part = .block
        count = 2
        (result[index], result[index + 1]) = (0x20, 0x20)
      case (.string, UInt8(ascii: "\\"), _): count = 2
      case (.string, UInt8(ascii: "\""), _): part = .code
      case (.line, UInt8(ascii: "\n"), _): part = .code
      case (.block, UInt8(ascii: "*"), UInt8(ascii: "/")):
        part = .code
        count = 2
        (result[index], result[index + 1]) = (0x20, 0x20)
      default: break
      }
      if part == .line || part == .block, bytes[index] != UInt8(ascii: "\n") { result[index] = 0x20 }
      index += count
    }
    return result
  }
}
