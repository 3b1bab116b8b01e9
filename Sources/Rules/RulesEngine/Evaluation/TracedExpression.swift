/// What an expression gave, and what gave it that: one decision as a tree.
package struct TracedExpression: Sendable {
  /// How much there is to see in it.
  package enum Kind: Sendable {
    /// A literal.
    case literal
    /// A name, or members of one: the value says it all.
    case plain
    /// An operation on others.
    case composed
    /// A call of a function of the ruleset, whose body stands behind the arguments.
    case call(String)
  }

  /// What it is.
  package let kind: Kind
  /// All of its text, in bytes.
  package let range: Range<Int>
  /// The value as typed JSON (see ``Evaluator/TracedValue``).
  package let value: String
  /// What was evaluated for it, in order; what `&&` and `||` passed over is missing.
  package let children: [TracedExpression]
}

extension Ruleset {
  /// The trace of a decision by this ruleset as trees, one for each condition that was evaluated, in order.
  package func tree(of trace: [Evaluator.TracedValue]) -> [TracedExpression] {
    guard let program else { return [] }
    // An expression comes behind its operands: those that nobody has taken yet lie on top.
    var stack: [(node: Int32, traced: TracedExpression)] = []
    for value in trace {
      let node = program.nodes[Int(value.node)]
      var operands = Set(program.operands(of: node))
      if node.operation == .callFunction { operands.formUnion(program.body(of: program.functions[Int(node.c)])) }
      let first = (stack.lastIndex { !operands.contains($0.node) } ?? -1) + 1
      let children = stack[first...].map(\.traced)
      stack.removeSubrange(first...)
      stack.append(
        (value.node,
         TracedExpression(
           kind: kind(of: node, program), range: program.place(value.node, source).extent, value: value.value,
           children: children)))
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
