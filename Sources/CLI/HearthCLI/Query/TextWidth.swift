/// Measures texts in columns of a terminal, and cuts them.
enum TextWidth {
  /// Returns the number of columns of a text without control characters.
  static func of(_ text: String) -> Int {
    text.utf8.allSatisfy { $0 < 0x80 } ? text.utf8.count : text.reduce(0) { $0 + width($1) }
  }

  /// Returns a text of at most `columns` columns. A text that was cut ends with `…`.
  static func cut(_ text: String, to columns: Int) -> String {
    guard of(text) > columns else { return text }
    var kept = ""
    var used = 0
    for character in text {
      let width = width(character)
      guard used + width < columns else { break }
      kept.append(character)
      used += width
    }
    return kept + "…"
  }

  private static func width(_ character: Character) -> Int {
    character.unicodeScalars.contains { isWide($0.value) } ? 2 : 1
  }

  /// Whether a scalar is an East Asian wide or full-width character, or an emoji.
  private static func isWide(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3,
      0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF,
      0x1F900...0x1FAFF, 0x20000...0x3FFFD:
      true
    default: false
    }
  }
}
