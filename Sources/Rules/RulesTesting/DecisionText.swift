package import RulesEngine

/// Formats decisions as trees: each `allow` statement that was tried, with the values of its expressions.
package enum DecisionText {
  /// The greatest number of lines for one decision.
  static let linesMax = 200
  /// The maximum length of an expression's text, in characters.
  private static let expressionCharactersMax = 100

  /// Returns a line for the decision, and indented lines for the statements and for expressions other than literals.
  ///
  ///     denied: get habits/read
  ///       habits.rules:12: allow get: false
  ///         isOwner(resource.data) → false
  package static func lines(_ part: Verdict.Part, _ ruleset: Ruleset, file: String) -> [String] {
    var lines = ["\(part.decision.isAllowed ? "allowed" : "denied"): \(part.method.rawValue) \(part.path)"]
    if part.decision.outcomes.isEmpty {
      lines.append("  no allow statement in \(file) applies to this path and method")
    }
    var trees = ruleset.tree(of: part.decision.trace)[...]
    for outcome in part.decision.outcomes {
      let head = ruleset.source.text(outcome.range).prefix { $0 != ":" && $0 != ";" }
      lines.append("  \(file):\(outcome.line): \(oneLine(String(head))): \(outcome.result)")
      // An `allow` without a condition has no trace.
      if let tree = trees.first, outcome.range.contains(tree.range.lowerBound) {
        trees = trees.dropFirst()
        append(tree, ruleset, depth: 2, &lines)
      }
    }
    guard lines.count > linesMax else { return lines }
    return lines.prefix(linesMax) + ["  … and \(lines.count - linesMax) more lines"]
  }

  private static func append(_ tree: TracedExpression, _ ruleset: Ruleset, depth: Int, _ lines: inout [String]) {
    let indent = String(repeating: "  ", count: depth)
    let isBody: Bool
    switch tree.kind {
    case .literal: return
    case .plain: isBody = false
    case .composed, .call: isBody = true
    }
    let text = oneLine(ruleset.source.text(tree.range))
    lines.append("\(indent)\(text) → \(ValueDisplay.text(tree.value))")
    guard isBody else { return }
    for child in tree.children { append(child, ruleset, depth: depth + 1, &lines) }
  }

  /// Returns a text without line breaks and comments, truncated if it is long.
  static func oneLine(_ text: String) -> String {
    let words = text.split(whereSeparator: \.isNewline).map { line in
      (line.range(of: "//").map { line[..<$0.lowerBound] } ?? line).split(separator: " ").joined(separator: " ")
    }
    let joined = words.filter { !$0.isEmpty }.joined(separator: " ")
    let max = expressionCharactersMax
    return joined.count <= max ? joined : "\(joined.prefix(max - 1))…"
  }
}

extension Substring {
  /// Returns the first occurrence of another text outside quotes.
  fileprivate func range(of text: String) -> Range<Index>? {
    var quote: Character?
    for index in indices {
      let character = self[index]
      if let open = quote {
        if character == open { quote = nil }
      } else if character == "'" || character == "\"" {
        quote = character
      } else if self[index...].hasPrefix(text) {
        return index..<self.index(index, offsetBy: text.count)
      }
    }
    return nil
  }
}
