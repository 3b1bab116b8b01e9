/// A small change to one condition of a ruleset, which good tests detect.
package struct Mutation: Sendable {
  /// The 1-based line of the changed expression.
  package let line: Int
  /// The change in words, such as ``without `&& request.auth != null` ``.
  package let change: String
  /// The start of the changed expression, in bytes.
  fileprivate let place: Int
  fileprivate let target: Expression
  fileprivate let substitute: Expression
}

extension Ruleset {
  /// The changes to try, in the order of the text: each condition becomes true, each operand of `&&`, `||` and `?:`
  /// replaces the whole expression, each comparison is inverted, and each `!` is removed.
  package var mutations: [Mutation] {
    var found: [Mutation] = []
    for function in tree.functions { collect(function, &found) }
    for service in tree.services where service.name.text == self.service {
      for function in service.functions { collect(function, &found) }
      for match in service.matches { collect(match, &found) }
    }
    return found.sorted { $0.place < $1.place }
  }

  /// Returns the ruleset with one change. Its places still refer to the original text. Cost: compiles the ruleset.
  package func applying(_ mutation: Mutation) -> Ruleset {
    Ruleset(self, tree: tree.replacing(mutation.target, with: mutation.substitute))
  }

  private func collect(_ match: MatchTree, _ found: inout [Mutation]) {
    for function in match.functions { collect(function, &found) }
    for member in match.members {
      switch member {
      case .match(let inner): collect(inner, &found)
      case .allow(let allow):
        guard let condition = allow.condition else { continue }
        collect(condition, isCondition: true, &found)
      }
    }
  }

  private func collect(_ function: FunctionTree, _ found: inout [Mutation]) {
    for (_, value) in function.lets { collect(value, isCondition: value.isBoolean, &found) }
    collect(function.result, isCondition: function.result.isBoolean, &found)
  }

  private func collect(_ expression: Expression, isCondition: Bool, _ found: inout [Mutation]) {
    func text(_ expression: Expression) -> String { TreePrinter.text(expression).withoutOuterParentheses }
    func change(to kind: Expression.Kind, _ words: (String) -> String) {
      let substitute = Expression(kind, expression.range)
      found.append(
        Mutation(
          line: source.line(of: expression.range.lowerBound), change: words(text(substitute)),
          place: expression.range.lowerBound, target: expression, substitute: substitute))
    }
    func operand(_ expression: Expression) -> String {
      expression.isBinary(.and) || expression.isBinary(.or) ? TreePrinter.text(expression) : text(expression)
    }
    let original = text(expression)
    func exchanged(_ replacement: String) -> String { "`\(original)` replaced by `\(replacement)`" }
    if isCondition, !expression.isTrueLiteral { change(to: .boolean(true)) { _ in "`\(original)` always true" } }
    switch expression.kind {
    case .binary(.and, let left, let right), .binary(.or, let left, let right):
      guard case .binary(let operation, _, _) = expression.kind else { break }
      // In a chain of one operator, leave out each operand separately.
      let word = operation.rawValue
      if !right.isBinary(operation) { change(to: left.kind) { _ in "without `\(word) \(operand(right))`" } }
      if !left.isBinary(operation) { change(to: right.kind) { _ in "without `\(operand(left)) \(word)`" } }
    case .binary(let operation, let left, let right):
      if let opposite = operation.opposite {
        change(to: .binary(opposite, left, right), exchanged)
      } else if operation == .in {
        change(to: .unary(.not, expression), exchanged)
      }
    case .isType: change(to: .unary(.not, expression), exchanged)
    case .unary(.not, let operand): change(to: operand.kind, exchanged)
    case .conditional(_, let yes, let no):
      change(to: yes.kind, exchanged)
      change(to: no.kind, exchanged)
    default: break
    }
    for child in expression.children { collect(child, isCondition: false, &found) }
  }
}

extension Expression {
  /// Whether the value is always a boolean or an error.
  fileprivate var isBoolean: Bool {
    switch kind {
    case .isType, .unary(.not, _): true
    case .binary(let operation, _, _): operation.opposite != nil || [.and, .or, .in].contains(operation)
    default: false
    }
  }

  fileprivate func isBinary(_ operation: BinaryOperator) -> Bool {
    if case .binary(operation, _, _) = kind { true } else { false }
  }

  fileprivate var isTrueLiteral: Bool { if case .boolean(true) = kind { true } else { false } }

  /// Returns the expression with one subexpression, found by identity, replaced.
  fileprivate func replacing(_ target: Expression, with substitute: Expression) -> Expression {
    if self === target { return substitute }
    func inside(_ inner: Expression) -> Expression { inner.replacing(target, with: substitute) }
    let changed: Kind =
      switch kind {
      case .null, .boolean, .integer, .float, .string, .bytes, .variable: kind
      case .list(let items): .list(items.map(inside))
      case .map(let entries): .map(entries.map { (inside($0.key), inside($0.value)) })
      case .path(let parts):
        .path(parts.map { if case .value(let inner) = $0 { .value(inside(inner)) } else { $0 } })
      case .member(let base, let name): .member(inside(base), name)
      case .index(let base, let index): .index(inside(base), inside(index))
      case .range(let base, let from, let to): .range(inside(base), from: from.map(inside), to: to.map(inside))
      case .call(let name, let arguments): .call(name, arguments.map(inside))
      case .method(let base, let name, let arguments): .method(inside(base), name, arguments.map(inside))
      case .unary(let operation, let operand): .unary(operation, inside(operand))
      case .binary(let operation, let left, let right): .binary(operation, inside(left), inside(right))
      case .isType(let operand, let type): .isType(inside(operand), type)
      case .conditional(let condition, let yes, let no): .conditional(inside(condition), inside(yes), inside(no))
      }
    return Expression(changed, range)
  }
}

extension Expression.BinaryOperator {
  /// The comparison with the opposite result, or `nil` if the operator is not a comparison.
  fileprivate var opposite: Expression.BinaryOperator? {
    switch self {
    case .equal: .notEqual
    case .notEqual: .equal
    case .less: .greaterOrEqual
    case .lessOrEqual: .greater
    case .greater: .lessOrEqual
    case .greaterOrEqual: .less
    default: nil
    }
  }
}

extension RulesetTree {
  fileprivate func replacing(_ target: Expression, with substitute: Expression) -> RulesetTree {
    RulesetTree(
      version: version, versionRange: versionRange,
      functions: functions.map { $0.replacing(target, with: substitute) },
      services: services.map { service in
        ServiceTree(
          name: service.name, functions: service.functions.map { $0.replacing(target, with: substitute) },
          matches: service.matches.map { $0.replacing(target, with: substitute) })
      })
  }
}

extension MatchTree {
  fileprivate func replacing(_ target: Expression, with substitute: Expression) -> MatchTree {
    MatchTree(
      segments: segments, range: range, functions: functions.map { $0.replacing(target, with: substitute) },
      members: members.map { member in
        switch member {
        case .match(let inner): .match(inner.replacing(target, with: substitute))
        case .allow(let allow):
          .allow(
            AllowTree(
              methods: allow.methods, condition: allow.condition?.replacing(target, with: substitute),
              range: allow.range))
        }
      })
  }
}

extension FunctionTree {
  fileprivate func replacing(_ target: Expression, with substitute: Expression) -> FunctionTree {
    FunctionTree(
      name: name, parameters: parameters,
      lets: lets.map { ($0.name, $0.value.replacing(target, with: substitute)) },
      result: result.replacing(target, with: substitute))
  }
}

extension String {
  /// The text without its outer parentheses. The printer adds them to every operation, but a text on its own needs
  /// none.
  fileprivate var withoutOuterParentheses: String {
    guard hasPrefix("("), hasSuffix(")") else { return self }
    var depth = 0
    for (index, character) in enumerated() {
      if character == "(" { depth += 1 }
      if character == ")" { depth -= 1 }
      if depth == 0, index < count - 1 { return self }
    }
    return String(dropFirst().dropLast())
  }
}
