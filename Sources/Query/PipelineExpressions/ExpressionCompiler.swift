import DocumentModel
import RegularExpressions
import WireFormat

/// Checks expressions and compiles them to one program.
package struct ExpressionCompiler {
  /// The variables that the expressions may read, with their positions in ``ExpressionRow/variables``.
  private let variables: [String: Int]
  /// Whether the functions that only `search` offers are allowed.
  private let isSearch: Bool
  private var parts = ExpressionProgram.Parts()
  private var fieldNumbers: [FieldPath: Int32] = [:]
  /// The parameters of the enclosing lambdas. The innermost is last.
  private var parameters: [(name: String, number: Int32)] = []
  /// The node of each foldable call, and the constant that is reserved for its result.
  private var foldable: [(node: Int32, constant: Int32)] = []
  private var depth = 0
  /// The number of enclosing functions that catch errors.
  private var catchers = 0

  /// A compiled expression.
  private struct Compiled {
    var node: Int32
    /// The places on the evaluator's stack that the node needs.
    var stackCount = 0
    var isConstant = false
  }

  /// Creates a compiler for the expressions of one stage.
  package init(variables: [String: Int] = [:], isSearch: Bool = false) {
    self.variables = variables
    self.isSearch = isSearch
  }

  /// Compiles the expressions of one stage. Cost: linear in their size, and one evaluation of each constant part.
  /// - Throws: ``ExpressionError`` if a function, a variable, an option, a count of arguments or a constant argument is
  ///   illegal.
  package static func compile(
    _ expressions: [PipelineExpression], variables: [String: Int] = [:], isSearch: Bool = false
  ) throws(ExpressionError) -> ExpressionProgram {
    var compiler = ExpressionCompiler(variables: variables, isSearch: isSearch)
    for expression in expressions {
      let compiled = try compiler.compile(expression)
      compiler.parts.roots.append(compiled.node)
      compiler.parts.stackCount = max(compiler.parts.stackCount, compiled.stackCount)
    }
    let program = ExpressionProgram(compiler.parts)
    ExpressionEvaluator.fold(compiler.foldable, of: program, keeping: compiler.parts.storage)
    return program
  }

  // MARK: Nodes

  private mutating func compile(_ expression: PipelineExpression) throws(ExpressionError) -> Compiled {
    depth += 1
    defer { depth -= 1 }
    guard depth <= ExpressionLimits.depthMax else { throw .tooDeep }
    switch expression {
    case .constant(let value): return Compiled(node: try append(constant: value), isConstant: true)
    case .field(let path): return Compiled(node: try append(field: path))
    case .variable(let name): return Compiled(node: try append(variable: name))
    case .call(let call): return try compile(call)
    case .subpipeline: throw .misplacedPipeline
    case .array(let elements): return try compile(.array, elements)
    case .map(let entries):
      return try compile(.map, entries.flatMap { [.constant(.string($0.key)), $0.value] })
    }
  }

  private mutating func append(_ node: ExpressionProgram.Node) throws(ExpressionError) -> Int32 {
    guard parts.nodes.count < ExpressionLimits.nodesMax else { throw .tooLarge }
    parts.nodes.append(node)
    return Int32(parts.nodes.count - 1)
  }

  private mutating func append(constant value: Value) throws(ExpressionError) -> Int32 {
    var bytes: [UInt8] = []
    ValueCodec.append(value, to: &bytes)
    parts.constants.append(ExpressionValue(EncodedValue(parts.storage.keep(bytes))))
    return try append(ExpressionProgram.Node(operation: .constant, a: Int32(parts.constants.count - 1)))
  }

  private mutating func append(field path: FieldPath) throws(ExpressionError) -> Int32 {
    if path.segments.count == 1 {
      switch path.segments[0] {
      case "__name__":
        parts.usesName = true
        return try append(ExpressionProgram.Node(operation: .name))
      case "__create_time__", "__update_time__":
        parts.usesTimes = true
        let isCreation = path.segments[0] == "__create_time__"
        return try append(ExpressionProgram.Node(operation: isCreation ? .createTime : .updateTime))
      default: break
      }
    }
    let number: Int32
    if let known = fieldNumbers[path] {
      number = known
    } else {
      number = Int32(parts.fields.count)
      parts.fields.append(path)
      fieldNumbers[path] = number
    }
    return try append(ExpressionProgram.Node(operation: .field, a: number))
  }

  private mutating func append(variable name: String) throws(ExpressionError) -> Int32 {
    if let parameter = parameters.last(where: { $0.name == name }) {
      return try append(ExpressionProgram.Node(operation: .parameter, a: parameter.number))
    }
    guard let number = variables[name] else { throw .unknownVariable(name) }
    return try append(ExpressionProgram.Node(operation: .variable, a: Int32(number)))
  }

  // MARK: Calls

  private mutating func compile(_ call: PipelineExpression.FunctionCall) throws(ExpressionError) -> Compiled {
    let name = call.name
    guard let function = ExpressionFunction.named(name, argumentCount: call.arguments.count) else {
      if AccumulatorFunction(rawValue: name) != nil { throw .misplacedFunction(name, stage: "aggregate") }
      if name == "document_matches" { throw .misplacedFunction(name, stage: "search") }
      throw .unknownFunction(name)
    }
    if let option = call.options.first { throw .unknownOption(function: name, option: option) }
    if function == .score, !isSearch { throw .misplacedFunction(name, stage: "search") }
    try check(call.arguments.count, of: function, name: name)
    if function == .array || function == .scalar, case .subpipeline(let number)? = call.arguments.first {
      guard call.arguments.count == 1 else { throw .misplacedPipeline }
      parts.subpipelines.append(number)
      parts.usesWholeRow = true
      let node = ExpressionProgram.Node(operation: .subpipeline, a: Int32(number), b: function == .scalar ? 1 : 0)
      return Compiled(node: try append(node))
    }
    switch function {
    case .scalar:
      throw .invalidArgument(function: name, argument: 1, reason: "must be a nested pipeline")
    case .arrayFilter, .arrayTransform: return try compileLambda(function, call)
    case .currentDocument:
      parts.usesWholeRow = true
      parts.usesName = true
      parts.usesTimes = true
    case .isError, .ifError:
      catchers += 1
      defer { catchers -= 1 }
      return try compile(function, call.arguments)
    default: break
    }
    return try compile(function, call.arguments, calledAs: name)
  }

  private func check(_ count: Int, of function: ExpressionFunction, name: String) throws(ExpressionError) {
    let counts = function.signature.counts
    guard !counts.contains(count) else {
      if function == .map || function == .mapSet, count.isMultiple(of: 2) != (function == .map) {
        throw .wrongArgumentCount(function: name, expected: "a value for each key", found: count)
      }
      return
    }
    let expected =
      counts.upperBound == Int.max
      ? "at least \(counts.lowerBound) arguments"
      : counts.count == 1
        ? (counts.lowerBound == 1 ? "1 argument" : "\(counts.lowerBound) arguments")
        : "\(counts.lowerBound) to \(counts.upperBound) arguments"
    throw .wrongArgumentCount(function: name, expected: expected, found: count)
  }

  private mutating func compile(
    _ function: ExpressionFunction, _ arguments: [PipelineExpression], calledAs name: String? = nil
  ) throws(ExpressionError) -> Compiled {
    let mode = function.signature.mode
    var operands: [Int32] = []
    var stackCount = 0
    var isConstant = function.isPure
    for argument in arguments {
      let operand = try compile(argument)
      operands.append(operand.node)
      stackCount = max(stackCount, operand.stackCount)
      isConstant = isConstant && operand.isConstant
    }
    if mode != .lazy { stackCount += arguments.count }
    var node = ExpressionProgram.Node(
      operation: .call, function: function, mode: mode, a: Int32(parts.operands.count), b: Int32(operands.count))
    node.c = try prepare(function, arguments, name: name ?? function.name)
    parts.operands += operands
    let number = try append(node)
    if isConstant {
      parts.constants.append(.null)
      foldable.append((number, Int32(parts.constants.count - 1)))
    }
    return Compiled(node: number, stackCount: stackCount, isConstant: isConstant)
  }

  /// Compiles `array_filter(array, "x", predicate)` or `array_transform(array, "x", ["i",] result)`. The node has two
  /// operands: the array and the body.
  private mutating func compileLambda(
    _ function: ExpressionFunction, _ call: PipelineExpression.FunctionCall
  ) throws(ExpressionError) -> Compiled {
    let array = try compile(call.arguments[0])
    var names: [String] = []
    for (index, argument) in call.arguments.enumerated().dropFirst().dropLast() {
      guard case .constant(.string(let name)) = argument, !name.isEmpty else {
        throw .invalidArgument(
          function: call.name, argument: index + 1, reason: "must be the name of a variable, a constant string")
      }
      names.append(name)
    }
    let first = Int32(parts.parameterCount)
    for name in names {
      parameters.append((name, Int32(parts.parameterCount)))
      parts.parameterCount += 1
    }
    let body = try compile(call.arguments[call.arguments.count - 1])
    parameters.removeLast(names.count)
    var node = ExpressionProgram.Node(operation: .call, function: function, a: Int32(parts.operands.count))
    node.b = Int32(names.count)
    node.c = first
    parts.operands += [array.node, body.node]
    return Compiled(node: try append(node), stackCount: max(array.stackCount, body.stackCount))
  }

  // MARK: Constant arguments

  /// Checks and prepares the constant arguments of a call. Returns the number of a literal pattern or time zone, or -1.
  ///
  /// Within `is_error` and `if_error` an illegal argument is an error of the evaluation, so that the function can
  /// catch it.
  private mutating func prepare(
    _ function: ExpressionFunction, _ arguments: [PipelineExpression], name: String
  ) throws(ExpressionError) -> Int32 {
    func text(_ index: Int) -> String? {
      guard index < arguments.count, case .constant(.string(let text)) = arguments[index] else { return nil }
      return text
    }
    var isLegal = true
    var illegal = 2
    var reason = ""
    var result: Int32 = -1
    switch function {
    case .regexContains, .regexMatch, .regexFind, .regexFindAll:
      guard let pattern = text(1) else { return -1 }
      if let compiled = Pattern(pattern.utf8) {
        parts.patterns.append(compiled)
        result = Int32(parts.patterns.count - 1)
      } else {
        isLegal = false
        reason = "is not a valid regular expression"
      }
    case .timestampAdd, .timestampSubtract:
      isLegal = text(1).map { TimePart($0)?.isFixed ?? false } ?? true
      reason = "is not a unit of time"
    case .timestampDiff:
      isLegal = text(2).map { TimePart($0)?.isFixed ?? false } ?? true
      illegal = 3
      reason = "is not a unit of time"
    case .timestampTrunc, .timestampExtract:
      isLegal = text(1).map { TimePart($0)?.isLegal(in: function) ?? false } ?? true
      reason = "is not a unit of time"
      guard isLegal, let zone = text(2) else { break }
      if let rules = ZoneRules.named(zone) {
        parts.zones.append(rules)
        result = Int32(parts.zones.count - 1)
      } else {
        (isLegal, illegal, reason) = (false, 3, "is not a known time zone")
      }
    case .isType:
      isLegal = text(1).map { TypeName.all.contains($0) } ?? true
      reason = "is not the name of a type"
    default: return -1
    }
    guard isLegal || catchers > 0 else {
      throw .invalidArgument(function: name, argument: illegal, reason: reason)
    }
    return result
  }
}
