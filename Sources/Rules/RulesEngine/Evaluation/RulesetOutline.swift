/// What of a ruleset is evaluated, with places: the frame of coverage reports.
package struct RulesetOutline: Sendable {
  /// An expression and what it is made of, in the order of evaluation.
  package struct Place: Sendable {
    /// What ``Evaluator/TracedValue/node`` calls it.
    package let node: Int32
    /// Where reports say that it stands, in bytes: of an operation up to the operator.
    package let range: Range<Int>
    /// All of its text, with its operands.
    package let extent: Range<Int>
    /// Whether it is written as a value: then its value says nothing.
    package let isLiteral: Bool
    /// The operands. The body of a called function is none of them.
    package let children: [Place]
  }

  /// An `allow` statement that can be reached.
  package struct Allow: Sendable {
    /// The 1-based line.
    package let line: Int
    /// Where the statement stands, in bytes.
    package let range: Range<Int>
    /// `nil` where it always allows.
    package let condition: Place?
  }

  /// A function.
  package struct Function: Sendable {
    /// The name.
    package let name: String
    /// The values of the lets in order, then the result.
    package let expressions: [Place]
  }

  /// In the order of the text.
  package var allows: [Allow] = []
  /// In the order of their declaration.
  package var functions: [Function] = []
}

extension Ruleset {
  /// What of the ruleset is evaluated; nothing where it has no rules for the service. Cost: builds a tree of all
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
  /// The operands of a node, in the order in which they are evaluated as far as they are.
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

  /// The values of a function's lets, then its result.
  func body(of function: Function) -> [Int32] {
    (0..<function.letCount).map { operands[Int(function.firstLet + $0)] } + [function.result]
  }

  /// Expressions nest as deep as the parser lets them.
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
  /// A stretch of the text, made longer so that every bracket in it has its partner.
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
    // What was closed without having been opened: look for its partner before the start.
    while lowest < 0, start > 0 {
      start -= 1
      if bytes[start] == UInt8(ascii: "(") { lowest += 1 }
      if bytes[start] == UInt8(ascii: ")") { lowest -= 1 }
    }
    return start..<end
  }
}
