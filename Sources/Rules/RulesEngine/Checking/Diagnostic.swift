/// A problem in a ruleset: an error, a warning or lint.
package struct Diagnostic: Sendable, Hashable {
  /// The severity of a diagnostic.
  package enum Severity: String, Sendable {
    /// The ruleset does not compile.
    case error
    /// The ruleset compiles. Firestore's engine gives the same warning, except about conditions that have expired.
    case warning
    /// The ruleset compiles but is probably a mistake.
    case lint
  }

  package let severity: Severity
  /// The problem, in one sentence.
  package let message: String
  /// The correction, or `nil` if the checker has no suggestion.
  package let suggestion: String?
  /// The place in the ruleset, in bytes.
  package let range: Range<Int>
  /// The 1-based line.
  package let line: Int
  /// The 1-based column, in characters.
  package let column: Int
  /// The text of the line, without its line break.
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

  /// Returns the diagnostic as text: file, line and column, severity, message and suggestion, then the line with a
  /// caret below the place.
  ///
  ///     firestore.rules:6:22: warning: Invalid function name: isOwnr; did you mean 'isOwner'?
  ///       |     allow create: if isOwnr(id);
  ///       |                      ^~~~~~
  ///
  /// `mark` may add colors to the severity and to the caret.
  package func rendered(file: String, mark: (Severity, String) -> String = { $1 }) -> String {
    var text = "\(file):\(line):\(column): \(mark(severity, severity.rawValue + ":")) \(message)"
    if let suggestion {
      if text.hasSuffix(".") { text.removeLast() }
      text += "; \(suggestion)"
    }
    let shown = lineText.unicodeScalars.prefix(Self.shownColumnsMax)
    text += "\n  | \(String(String.UnicodeScalarView(shown)))\n  | "
    guard column <= shown.count + 1 else { return text }
    // Repeat tabs, so that the caret is below the place for any tab width.
    for scalar in shown.prefix(column - 1) { text.unicodeScalars.append(scalar == "\t" ? "\t" : " ") }
    let marked = max(0, min(range.count, lineText.utf8.count) - 1)
    return text + mark(severity, "^" + String(repeating: "~", count: max(0, min(marked, shown.count - column))))
  }

  private static let shownColumnsMax = 160
}

/// An error that reports the diagnostics of a ruleset that does not compile.
package struct RulesetError: Error, Sendable {
  /// The errors, warnings and lint, in the order of the text.
  package let diagnostics: [Diagnostic]

  /// The errors as the control endpoint reports them: `L<line>:<column> text`, one per line.
  package var summary: String {
    diagnostics.filter { $0.severity == .error }.map { "L\($0.line):\($0.column) \($0.message)" }.joined(
      separator: "\n")
  }
}
