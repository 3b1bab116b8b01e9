/// The statements, functions and expressions of a ruleset with their places. Coverage reports are based on it.
package struct RulesetOutline: Sendable {
  /// An expression and its operands, in the order of evaluation.
  package struct Place: Sendable {
    /// The number of the expression, as in ``Evaluator/TracedValue/node``.
    package let node: Int32
    /// The place in reports, in bytes. For an operation it ends with the operator.
    package let range: Range<Int>
    /// The place of the whole text, with the operands, in bytes.
    package let extent: Range<Int>
    /// Whether the expression is a literal, whose value reports do not show.
    package let isLiteral: Bool
    /// The operands. The body of a called function is not among them.
    package let children: [Place]
  }

  /// An `allow` statement that can apply.
  package struct Allow: Sendable {
    package let line: Int
    /// The place of the statement, in bytes.
    package let range: Range<Int>
    /// The condition, or `nil` if the statement always allows.
    package let condition: Place?
  }

  /// A function and its expressions.
  package struct Function: Sendable {
    package let name: String
    /// The values of the lets in order, then the result.
    package let expressions: [Place]
  }

  /// The `allow` statements, in the order of the text.
  package var allows: [Allow] = []
  /// The functions, in the order of their declarations.
  package var functions: [Function] = []
}

extension Ruleset {
  /// The evaluated parts of the ruleset. Empty if it has no rules for the service. Cost: builds a tree of all
  /// expressions.
  package var outline: RulesetOutline {
    guard let program else { return RulesetOutline() }
    var outline = RulesetOutline()
    outline.allows = program.allows.map { allow in
      RulesetOutline.Allow(
        line: Int(allow.line), range: Int(allow.start)..<Int(allow.end),
        condition: allow.condition < 0 ? nil : program.place(allow.condition, source))
    }
    outline.functions = program.functions.indices.map { number in
      let body = program.body(of: program.functions[number])
      return RulesetOutline.Function(
        name: program.functionNames[number], expressions: body.map { program.place($0, source) })
    }
    return outline
  }
}

extension Program {
  /// Returns the operands of a node, in the order of evaluation. Evaluation can skip some of them.
  func operands(of node: Node) -> [Int32] {
    switch node.operation {
    case .constant, .capture, .local, .request, .resource, .unknownVariable: []
    case .member, .not, .negate, .isType: [node.a]
    case .conditional, .range: [node.a, node.b, node.c]
    case .list, .map, .callFunction, .callBuiltin, .callMethod, .unknownFunction, .wrongCount:
      (0..<max(0, node.b)).map { operands[Int(node.a + $0)] }
    case .path:
      pathParts[Int(node.a)..<Int(node.a + node.b)].compactMap { part in
        if case .value(let inner) = part { inner } else { nil }
      }
    default: [node.a, node.b]
    }
  }

  /// Returns the values of a function's lets, then its result.
  func body(of function: Function) -> [Int32] {
    (0..<function.letCount).map { operands[Int(function.firstLet + $0)] } + [function.result]
  }

  /// Returns an expression with its operands. Recurses as deep as expressions nest, which the parser limits.
  func place(_ number: Int32, _ source: SourceText) -> RulesetOutline.Place {
    let node = nodes[Int(number)]
    let range = Int(node.start)..<Int(node.end)
    let children = operands(of: node).map { place($0, source) }
    let whole = children.reduce(range) {
      min($0.lowerBound, $1.extent.lowerBound)..<max($0.upperBound, $1.extent.upperBound)
    }
    return RulesetOutline.Place(
      node: number, range: range, extent: source.balanced(whole), isLiteral: node.operation == .constant,
      children: children)
  }
}

extension SourceText {
  /// Returns the range, extended so that every bracket in it has its partner.
  func balanced(_ range: Range<Int>) -> Range<Int> {
    var depth = 0
    var lowest = 0
    var quote: UInt8?
    func read(_ byte: UInt8) {
      if let open = quote {
        if byte == open { quote = nil }
        return
      }
      switch byte {
      case UInt8(ascii: "'"), UInt8(ascii: "\""): quote = byte
      case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
      case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
      lowest = min(lowest, depth)
    }
    for byte in bytes[range] { read(byte) }
    var (start, end) = (range.lowerBound, range.upperBound)
    while depth > lowest, end < bytes.count {
      read(bytes[end])
      end += 1
    }
    // A bracket closes before it opens: search before the start for its partner.
    while lowest < 0, start > 0 {
      start -= 1
      if bytes[start] == UInt8(ascii: "(") { lowest += 1 }
      if bytes[start] == UInt8(ascii: ")") { lowest -= 1 }
    }
    return start..<end
  }
}
