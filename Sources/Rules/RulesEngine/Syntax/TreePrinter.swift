/// Prints syntax trees. Declarations are indented; an expression is one line with explicit parentheses around every
/// operation.
enum TreePrinter {
  /// Returns the text of a ruleset.
  static func text(_ tree: RulesetTree) -> String {
    var lines = ["version \(tree.version)"]
    for function in tree.functions { append(function, 0, &lines) }
    for service in tree.services {
      lines.append("service \(service.name.text)")
      for function in service.functions { append(function, 1, &lines) }
      for match in service.matches { append(match, 1, &lines) }
    }
    return lines.joined(separator: "\n")
  }

  /// Returns the text of one segment of a pattern, with its slash.
  static func text(_ segment: MatchTree.Segment) -> String {
    switch segment {
    case .literal(let text): "/" + String(decoding: text, as: UTF8.self)
    case .capture(let name, let isGlob): "/{\(name.text)\(isGlob ? "=**" : "")}"
    }
  }

  private static func indent(_ depth: Int) -> String { String(repeating: "  ", count: depth) }

  private static func append(_ function: FunctionTree, _ depth: Int, _ lines: inout [String]) {
    let parameters = function.parameters.map(\.text).joined(separator: ", ")
    lines.append("\(indent(depth))function \(function.name.text)(\(parameters))")
    for (name, value) in function.lets { lines.append("\(indent(depth + 1))let \(name.text) = \(text(value))") }
    lines.append("\(indent(depth + 1))return \(text(function.result))")
  }

  private static func append(_ match: MatchTree, _ depth: Int, _ lines: inout [String]) {
    lines.append("\(indent(depth))match \(match.segments.map(text).joined())")
    for function in match.functions { append(function, depth + 1, &lines) }
    for member in match.members {
      switch member {
      case .match(let inner): append(inner, depth + 1, &lines)
      case .allow(let allow):
        let methods = allow.methods.map(\.text).joined(separator: ", ")
        lines.append("\(indent(depth + 1))allow \(methods): \(allow.condition.map(text) ?? "true")")
      }
    }
  }

  /// Returns the text of one expression.
  static func text(_ expression: Expression) -> String {
    func list(_ items: [Expression]) -> String { items.map(text).joined(separator: ", ") }
    switch expression.kind {
    case .null: return "null"
    case .boolean(let value): return String(value)
    case .integer(let value): return String(value)
    case .float(let value): return RuleValueText.plain(.float(value))
    case .string(let value): return quoted(value)
    case .bytes(let value): return "b" + quoted(value)
    case .variable(let name): return name.text
    case .list(let items): return "[\(list(items))]"
    case .map(let entries): return "{\(entries.map { "\(text($0.key)): \(text($0.value))" }.joined(separator: ", "))}"
    case .path(let parts): return parts.map(text).joined()
    case .member(let base, let name): return "\(text(base)).\(name.text)"
    case .index(let base, let index): return "\(text(base))[\(text(index))]"
    case .range(let base, let from, let to):
      return "\(text(base))[\(from.map(text) ?? ""):\(to.map(text) ?? "")]"
    case .call(let name, let arguments): return "\(name.text)(\(list(arguments)))"
    case .method(let receiver, let name, let arguments): return "\(text(receiver)).\(name.text)(\(list(arguments)))"
    case .unary(let operation, let operand): return "(\(operation.rawValue)\(text(operand)))"
    case .binary(let operation, let left, let right): return "(\(text(left)) \(operation.rawValue) \(text(right)))"
    case .isType(let operand, let type): return "(\(text(operand)) is \(type.rawValue))"
    case .conditional(let condition, let yes, let no): return "(\(text(condition)) ? \(text(yes)) : \(text(no)))"
    }
  }

  private static func text(_ part: Expression.PathPart) -> String {
    switch part {
    case .literal(let text): "/" + String(decoding: text, as: UTF8.self)
    case .value(let inner): "/$(\(text(inner)))"
    case .capture(let name, let isGlob): "/{\(name.text)\(isGlob ? "=**" : "")}"
    }
  }

  private static func quoted(_ bytes: [UInt8]) -> String {
    var text = "'"
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
      switch scalar {
      case "'", "\\": text += "\\\(scalar)"
      case "\n": text += "\\n"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "'"
  }
}
