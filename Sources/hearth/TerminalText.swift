/// Texts that others wrote, made safe to show: control characters and those that turn the direction of writing are
/// written out, so that no name steers the terminal, or looks like another. `--json` shows texts as they are.
enum TerminalText {
  /// A text on one line.
  static func line(_ text: String) -> String { escape(text, keepsLines: false) }

  /// A text with its line breaks and tabs.
  static func lines(_ text: String) -> String { escape(text, keepsLines: true) }

  private static func escape(_ text: String, keepsLines: Bool) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x09, 0x0A:
        if keepsLines { out.unicodeScalars.append(scalar) } else { out += scalar.value == 0x09 ? "\\t" : "\\n" }
      case 0x0D: out += "\\r"
      case 0..<0x20, 0x7F...0x9F, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
        out += "\\u{\(String(scalar.value, radix: 16))}"
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}
