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

  /// Returns the width of a grapheme: terminals show its combining marks and joined emoji in one place.
  private static func width(_ character: Character) -> Int {
    var isInvisible = true
    for scalar in character.unicodeScalars {
      // Variation selector 16 requests the wide form of a symbol, as an emoji.
      if isWide(scalar.value) || scalar.value == 0xFE0F { return 2 }
      isInvisible = isInvisible && isInvisibleAlone(scalar)
    }
    return isInvisible ? 0 : 1
  }

  /// Whether a scalar takes no place of its own: joiners, selectors, and marks that combine with a letter.
  private static func isInvisibleAlone(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: true
    default: false
    }
  }

  /// Whether a scalar is an East Asian wide or full-width character, or an emoji.
  private static func isWide(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3,
      0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x231A...0x231B, 0x23E9...0x23EC,
      0x25FD...0x25FE, 0x2614...0x2615, 0x2648...0x2653, 0x26A1, 0x26BD...0x26BE, 0x26C4...0x26C5, 0x26CE, 0x26D4,
      0x26EA, 0x26F2...0x26F3, 0x26F5, 0x26FA, 0x26FD, 0x2705, 0x270A...0x270B, 0x2728, 0x274C, 0x274E,
      0x2753...0x2755, 0x2757, 0x2795...0x2797, 0x27B0, 0x2B1B...0x2B1C, 0x2B50, 0x2B55, 0x1F1E6...0x1F1FF,
      0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F7E0...0x1F7EB, 0x1F900...0x1FAFF, 0x20000...0x3FFFD:
      true
    default: false
    }
  }
}
