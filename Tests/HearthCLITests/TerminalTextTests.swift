import Testing

@testable import HearthCLI

/// Texts of other users do not control the terminal.
@Suite struct TerminalTextTests {
  @Test(arguments: [
    ("a b", "a b"), ("\u{1B}[31mred", "\\u{1b}[31mred"), ("a\u{7}\u{8}", "a\\u{7}\\u{8}"), ("\u{9B}2J", "\\u{9b}2J"),
    ("a\rb", "a\\rb"), ("a\r\nb", "a\\r\\nb"), ("\u{202E}gpj.exe", "\\u{202e}gpj.exe"), ("\u{2066}x", "\\u{2066}x"),
    ("a\u{2028}b", "a\\u{2028}b"), ("Überraschung 😀", "Überraschung 😀"), ("e\u{301}", "e\u{301}"), ("\0", "\\u{0}"),
    ("a\u{61C}b", "a\\u{61c}b"),
    ("a\tb\nc", "a\\tb\\nc"),
  ])
  func linesHaveNoControlCharacters(text: String, shown: String) { #expect(TerminalText.line(text) == shown) }

  @Test func linesKeepTheirBreaks() {
    #expect(TerminalText.lines("a\tb\n\u{1B}c\r\n") == "a\tb\n\\u{1b}c\\r\n")
  }

  @Test func jsonStaysJSON() {
    #expect(TerminalText.json("{\n  \"a\": \"\u{9B}7m\u{202E}\"\n}") == "{\n  \"a\": \"\\u009b7m\\u202e\"\n}")
  }
}
