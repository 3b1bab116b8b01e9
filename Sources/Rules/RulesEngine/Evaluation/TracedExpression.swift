/// An expression of one decision with its value, and the expressions that were evaluated for it.
package struct TracedExpression: Sendable {
  /// The form of an expression, for display.
  package enum Kind: Sendable {
    /// A literal.
    case literal
    /// A name, or a chain of members. Its value needs no explanation.
    case plain
    /// An operation on other expressions.
    case composed
    /// A call of a function of the ruleset. The children are the arguments, then the body.
    case call(String)
  }

  package let kind: Kind
  /// The place of the whole text, in bytes.
  package let range: Range<Int>
  /// The value as typed JSON (see ``Evaluator/TracedValue``).
  package let value: String
  /// The operands that were evaluated, in order. Those that `&&` and `||` skipped are missing.
  package let children: [TracedExpression]
}

extension Ruleset {
  /// Returns the trace of a decision by this ruleset as trees, one for each evaluated condition, in order.
  package func tree(of trace: [Evaluator.TracedValue]) -> [TracedExpression] {
    guard let program else { return [] }
    // An expression follows its operands in the trace, so its operands are at the end of the stack.
    var stack: [(node: Int32, traced: TracedExpression)] = []
    for value in trace {
      let node = program.nodes[Int(value.node)]
      var operands = Set(program.operands(of: node))
      if node.operation == .callFunction { operands.formUnion(program.body(of: program.functions[Int(node.c)])) }
      let first = (stack.lastIndex { !operands.contains($0.node) } ?? -1) + 1
      let children = stack[first...].map(\.traced)
      stack.removeSubrange(first...)
      stack.append(
        (
          value.node,
          TracedExpression(
            kind: kind(of: node, program), range: program.place(value.node, source).extent, value: value.value,
            children: children)
        ))
    }
    return stack.map(\.traced)
  }

  private func kind(of node: Program.Node, _ program: Program) -> TracedExpression.Kind {
    switch node.operation {
    case .constant: .literal
    case .capture, .local, .request, .resource, .unknownVariable: .plain
    case .member:
      if case .plain = kind(of: program.nodes[Int(node.a)], program) { .plain } else { .composed }
    case .callFunction: .call(program.functionNames[Int(node.c)])
    default: .composed
    }
  }
}
