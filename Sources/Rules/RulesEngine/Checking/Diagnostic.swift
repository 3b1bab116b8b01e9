/// Something to say about a ruleset: why it does not compile, or what looks wrong with it.
package struct Diagnostic: Sendable, Hashable {
  /// How bad it is.
  package enum Severity: String, Sendable {
    /// The ruleset does not compile.
    case error
    /// The ruleset compiles; the engine Firestore runs would say this too.
    case warning
    /// The ruleset compiles and does what it says, which is hardly what was meant.
    case lint
  }

  /// How bad it is.
  package let severity: Severity
  /// What is wrong, one sentence.
  package let message: String
  /// What to write instead, where that can be guessed.
  package let suggestion: String?
  /// Where, in bytes from the start.
  package let range: Range<Int>
  /// The 1-based line.
  package let line: Int
  /// The 1-based column, in characters.
  package let column: Int
  /// The line's text.
  package let lineText: String

  init(_ severity: Severity, _ message: String, at range: Range<Int>, in source: SourceText, suggestion: String? = nil)
  {
    self.severity = severity
    self.message = message
    self.suggestion = suggestion
    self.range = range
    line = source.line(of: range.lowerBound)
    column = source.column(of: range.lowerBound)
    lineText = source.text(ofLine: line)
  }

  /// The message for a person: place, text, the line and a caret below the place.
  ///
  ///     firestore.rules:6:39: error: no function is called 'isOwnr'; did you mean 'isOwner'?
  ///       |     allow create: if isOwnr(id);
  ///       |                      ^~~~~~
  package func rendered(file: String) -> String {
    var text = "\(file):\(line):\(column): \(severity.rawValue): \(message)"
    if let suggestion {
      if text.hasSuffix(".") { text.removeLast() }
      text += "; \(suggestion)"
    }
    let shown = lineText.unicodeScalars.prefix(Self.shownColumnsMax)
    text += "\n  | \(String(String.UnicodeScalarView(shown)))\n  | "
    guard column <= shown.count + 1 else { return text }
    // Tabs are repeated so that the caret stands where the reader's tabs put it.
    for scalar in shown.prefix(column - 1) { text.unicodeScalars.append(scalar == "\t" ? "\t" : " ") }
    text += "^"
    let marked = min(range.count, lineText.utf8.count) - 1
    if marked > 0 { text += String(repeating: "~", count: max(0, min(marked, shown.count - column))) }
    return text
  }

  private static let shownColumnsMax = 160
}

/// A ruleset that does not compile.
package struct RulesetError: Error, Sendable {
  /// The errors, and what else was noticed, in the order of the source.
  package let diagnostics: [Diagnostic]

  /// The form in which the control endpoint reports them: `L<line>:<column> text`, one a line.
  package var summary: String {
    diagnostics.filter { $0.severity == .error }.map { "L\($0.line):\($0.column) \($0.message)" }.joined(
      separator: "\n")
  }
}
