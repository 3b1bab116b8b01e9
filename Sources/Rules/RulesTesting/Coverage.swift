package import RulesEngine

/// What the expressions of a ruleset gave, over many decisions.
package struct Coverage: Sendable {
  /// The most different values kept of one expression; what comes after them is counted together.
  package static let valuesMax = 20

  /// The longest value that is kept, in bytes of its JSON; longer ones are counted together.
  package static let valueBytesMax = 4 << 10

  /// A value and how often it came.
  package struct Count: Sendable {
    /// Typed JSON; empty for all that is beyond ``Coverage/valuesMax`` or ``Coverage/valueBytesMax``.
    package var value: String
    /// How often.
    package var count: Int
  }

  /// The path of the rules.
  package let file: String
  /// The rules.
  package let ruleset: Ruleset
  /// What of them is evaluated.
  package let outline: RulesetOutline
  private var values: [Int32: [Count]] = [:]
  /// How often each `allow` gave what, by where it stands.
  private var allows: [Int: [Count]] = [:]

  /// Nothing yet.
  package init(file: String, _ ruleset: Ruleset) {
    self.file = file
    self.ruleset = ruleset
    outline = ruleset.outline
  }

  /// Adds a decision with its trace.
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

  /// What an expression gave, in the order of first appearance.
  package func values(of place: RulesetOutline.Place) -> [Count] { values[place.node] ?? [] }

  /// How often an `allow` gave `true`, `false` or `error`.
  package func outcomes(of allow: RulesetOutline.Allow) -> [Count] { allows[allow.range.lowerBound] ?? [] }

  /// How often a statement was tried.
  package func hits(of allow: RulesetOutline.Allow) -> Int { outcomes(of: allow).reduce(0) { $0 + $1.count } }

  /// How often an expression was evaluated.
  package func hits(of place: RulesetOutline.Place) -> Int { values(of: place).reduce(0) { $0 + $1.count } }

  /// How often each line that holds a condition was evaluated, by 1-based line, ascending.
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
