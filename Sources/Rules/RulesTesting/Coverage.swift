package import RulesEngine

/// The values of a ruleset's expressions, over many decisions.
package struct Coverage: Sendable {
  /// The greatest number of distinct values kept per expression. Further values share one count.
  package static let valuesMax = 20

  /// The maximum size of a value that is kept, in bytes of its JSON. Larger values share one count.
  package static let valueBytesMax = 4 << 10

  /// A value and the number of its occurrences.
  package struct Count: Sendable {
    /// The typed JSON, or empty for all values beyond ``Coverage/valuesMax`` or ``Coverage/valueBytesMax``.
    package var value: String
    package var count: Int
  }

  package let file: String
  package let ruleset: Ruleset
  /// The evaluated parts of the rules.
  package let outline: RulesetOutline
  private var values: [Int32: [Count]] = [:]
  /// The counts of each `allow` statement's results, by its place.
  private var allows: [Int: [Count]] = [:]

  /// Empty coverage of a ruleset. `file` is the path of the rules.
  package init(file: String, _ ruleset: Ruleset) {
    self.file = file
    self.ruleset = ruleset
    outline = ruleset.outline
  }

  /// Adds a decision and its trace.
  package mutating func add(_ decision: Decision) {
    for traced in decision.trace { Self.add(traced.value, to: &values[traced.node, default: []]) }
    for outcome in decision.outcomes {
      let kind = outcome.result == "true" || outcome.result == "false" ? outcome.result : "error"
      Self.add(kind, to: &allows[outcome.range.lowerBound, default: []])
    }
  }

  private static func add(_ text: String, to counts: inout [Count]) {
    let value = text.utf8.count <= valueBytesMax ? text : ""
    if let known = counts.firstIndex(where: { $0.value.utf8.elementsEqual(value.utf8) }) {
      counts[known].count += 1
    } else if counts.count < valuesMax {
      counts.append(Count(value: value, count: 1))
    } else if counts.count == valuesMax {
      counts.append(Count(value: "", count: 1))
    } else {
      counts[valuesMax].count += 1
    }
  }

  /// Returns the values of an expression, in the order of their first occurrence.
  package func values(of place: RulesetOutline.Place) -> [Count] { values[place.node] ?? [] }

  /// Returns how often an `allow` statement gave `true`, `false` and `error`.
  package func outcomes(of allow: RulesetOutline.Allow) -> [Count] { allows[allow.range.lowerBound] ?? [] }

  /// Returns how often a statement was tried.
  package func hits(of allow: RulesetOutline.Allow) -> Int { outcomes(of: allow).reduce(0) { $0 + $1.count } }

  /// Returns how often an expression was evaluated.
  package func hits(of place: RulesetOutline.Place) -> Int { values(of: place).reduce(0) { $0 + $1.count } }

  /// The number of evaluations of each line with a condition. Lines are 1-based and ascending.
  package var lines: [(line: Int, hits: Int)] {
    var lines: [Int: Int] = [:]
    func note(_ place: RulesetOutline.Place) {
      if !place.isLiteral {
        let line = ruleset.source.line(of: place.range.lowerBound)
        lines[line] = max(lines[line] ?? 0, hits(of: place))
      }
      for child in place.children { note(child) }
    }
    for allow in outline.allows {
      lines[allow.line] = max(lines[allow.line] ?? 0, hits(of: allow))
      if let condition = allow.condition { note(condition) }
    }
    for function in outline.functions {
      for place in function.expressions { note(place) }
    }
    return lines.map { (line: $0.key, hits: $0.value) }.sorted { $0.line < $1.line }
  }
}
