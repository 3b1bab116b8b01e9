/// Makes texts of other users safe to show: it escapes control characters and characters that change the direction of
/// writing, so that a name can neither control the terminal nor look like another name. `--json` shows texts unchanged.
enum TerminalText {
  /// Returns a text on one line.
  static func line(_ text: String) -> String { escape(text, as: .line) }

  /// Returns a text that keeps its line breaks and tabs.
  static func lines(_ text: String) -> String { escape(text, as: .lines) }

  /// Returns JSON that keeps its line breaks, and its meaning.
  static func json(_ text: String) -> String { escape(text, as: .json) }

  private enum Form { case line, lines, json }

  private static func escape(_ text: String, as form: Form) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x09, 0x0A:
        if form == .line { out += scalar.value == 0x09 ? "\\t" : "\\n" } else { out.unicodeScalars.append(scalar) }
      case 0x0D: out += "\\r"
      case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
        let digits = String(scalar.value, radix: 16)
        // In JSON, such characters occur only in strings, whose escapes have four digits.
        out += form == .json ? "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)" : "\\u{\(digits)}"
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}
