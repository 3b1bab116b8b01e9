/// Prints compiled programs: each node with its number, operands and cost.
enum ProgramPrinter {
  /// Returns the text of a program.
  static func text(_ program: Program) -> String {
    var lines: [String] = []
    for (index, pattern) in program.patterns.enumerated() {
      lines.append("match \(program.patternTexts[index])")
      for place in 0..<Int(pattern.allowCount) {
        let allow = program.allows[Int(pattern.firstAllow) + place]
        let condition = allow.condition < 0 ? "true" : "%\(allow.condition)"
        lines.append("  allow \(names(allow.methods)) L\(allow.line): \(condition)")
      }
    }
    for (index, function) in program.functions.enumerated() {
      let lets = (0..<function.letCount).map { "%\(program.operands[Int(function.firstLet + $0)])" }
      lines.append(
        "function \(index) \(program.functionNames[index])/\(function.parameterCount)"
          + " lets [\(lets.joined(separator: " "))] result %\(function.result)")
    }
    for (index, node) in program.nodes.enumerated() {
      lines.append("%\(index) = \(text(node, program)) cost \(node.cost)")
    }
    return lines.joined(separator: "\n")
  }

  private static func names(_ methods: MethodSet) -> String {
    RulesMethod.allCases.filter { !methods.isDisjoint(with: $0.asSet) }.map(\.rawValue).joined(separator: ",")
  }

  private static func text(_ node: Program.Node, _ program: Program) -> String {
    func constant(_ index: Int32) -> String { RuleValueText.typedJSON(program.constants[Int(index)]) }
    func list() -> String {
      (0..<max(0, node.b)).map { "%\(program.operands[Int(node.a + $0)])" }.joined(separator: " ")
    }
    let name = "\(node.operation)"
    switch node.operation {
    case .constant: return "constant \(constant(node.a))"
    case .capture, .local: return "\(name) \(node.a)"
    case .request, .resource, .unknownVariable: return name
    case .member: return "member %\(node.a) \(constant(node.b))"
    case .not, .negate: return "\(name) %\(node.a)"
    case .isType: return "isType %\(node.a) \(RuleType.allCases[Int(node.b)].rawValue)"
    case .conditional, .range: return "\(name) %\(node.a) %\(node.b) %\(node.c)"
    case .list, .map: return "\(name) [\(list())]"
    case .path:
      let parts = program.pathParts[Int(node.a)..<Int(node.a + node.b)].map { part in
        switch part {
        case .constant(let segment): "/" + String(decoding: segment.text, as: UTF8.self)
        case .value(let inner): "/%\(inner)"
        }
      }
      return "path \(parts.joined())"
    case .callFunction: return "call \(program.functionNames[Int(node.c)]) [\(list())]"
    case .callBuiltin, .callMethod: return "call \(Builtins.groups[Int(node.c)].name) [\(list())]"
    case .unknownFunction, .wrongCount: return "\(name) \(constant(node.c)) [\(list())]"
    default: return "\(name) %\(node.a) %\(node.b)"
    }
  }
}
