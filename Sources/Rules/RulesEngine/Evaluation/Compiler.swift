import RegularExpressions

/// Compiles one service of a checked tree: names become numbers, and literals become constants.
struct Compiler {
  /// The methods whose first argument is a pattern.
  static let patternMethods: Set<String> = ["matches", "split", "replace"]

  private let tree: RulesetTree
  private let source: SourceText
  private var program = Program.Parts()
  private var textConstants: [[UInt8]: Int32] = [:]
  private let profile: ServiceProfile

  /// Compiles a service. The tree must have passed the checker without errors.
  static func compile(_ tree: RulesetTree, _ service: ServiceTree, _ source: SourceText) -> Program {
    var compiler = Compiler(tree: tree, source: source, ServiceProfile.named(service.name.text))
    compiler.compile(service)
    return Program(compiler.program)
  }

  private init(tree: RulesetTree, source: SourceText, _ profile: ServiceProfile) {
    self.profile = profile
    self.tree = tree
    self.source = source
    program.version = tree.version
  }

  private mutating func compile(_ service: ServiceTree) {
    let file = Scope(in: nil)
    let scope = Scope(in: file)
    let bodies = declare(tree.functions, in: file)
    let inner = declare(service.functions, in: scope)
    compile(bodies, in: file)
    compile(inner, in: scope)
    for match in service.matches { compile(match, in: scope, [], "") }
  }

  // MARK: Declarations

  private mutating func declare(_ trees: [FunctionTree], in scope: Scope) -> [(Int, FunctionTree)] {
    trees.map { tree in
      let number = program.functions.count
      program.functions.append(Program.Function(parameterCount: Int32(tree.parameters.count)))
      program.functionNames.append(tree.name.text)
      _ = scope.declare(function: tree.name.text, number)
      signatures.append("\(tree.name.text)(\(tree.parameters.map(\.text).joined(separator: ", ")))")
      return (number, tree)
    }
  }

  /// The signature of each function, for error messages.
  private var signatures: [String] = []

  private mutating func compile(_ bodies: [(Int, FunctionTree)], in scope: Scope) {
    for (number, tree) in bodies {
      var context = Context(scope: scope)
      for name in tree.parameters { context.locals[name.text] = context.locals.count }
      var lets: [Int32] = []
      for (name, value) in tree.lets {
        lets.append(compile(value, context))
        context.locals[name.text] = context.locals.count
      }
      program.functions[number].result = compile(tree.result, context)
      program.functions[number].firstLet = Int32(program.operands.count)
      program.functions[number].letCount = Int32(lets.count)
      program.operands += lets
    }
  }

  private mutating func compile(_ match: MatchTree, in outer: Scope, _ above: [MatchPattern.Segment], _ text: String) {
    let scope = Scope(in: outer)
    var segments = above
    let isBelowGlob = above.contains { if case .glob = $0 { true } else { false } }
    for segment in match.segments {
      switch segment {
      case .literal(let text): segments.append(.literal(program.storage.text(text)))
      case .capture(let name, let isGlob):
        segments.append(isGlob ? .glob(scope.captureCount) : .capture(scope.captureCount))
        scope.declare(capture: name.text)
      }
    }
    let text = text + match.segments.map(TreePrinter.text).joined()
    let bodies = declare(match.functions, in: scope)
    compile(bodies, in: scope)
    // The engine of version 1 never enters a block inside a glob.
    let isReachable = tree.version == 2 || !isBelowGlob
    let allows = match.members.compactMap { if case .allow(let allow) = $0 { allow } else { nil } }
      .map { compile($0, in: scope) }
    if isReachable, !allows.isEmpty {
      let globIndex = segments.firstIndex { if case .glob = $0 { true } else { false } }
      let globMin = tree.version == 1 ? 1 : 0
      program.patterns.append(
        MatchPattern(
          firstSegment: Int32(program.segments.count), segmentCount: Int32(segments.count),
          globIndex: Int32(globIndex ?? -1),
          segmentsMin: Int32(globIndex == nil ? segments.count : segments.count - 1 + globMin),
          captureCount: Int32(scope.captureCount), firstAllow: Int32(program.allows.count),
          allowCount: Int32(allows.count), methods: allows.reduce(into: []) { $0.formUnion($1.methods) }))
      program.segments += segments
      program.allows += allows
      program.patternTexts.append(text)
    }
    for case .match(let inner) in match.members { compile(inner, in: scope, segments, text) }
  }

  private mutating func compile(_ allow: AllowTree, in scope: Scope) -> MatchPattern.Allow {
    MatchPattern.Allow(
      methods: allow.methods.reduce(into: []) { $0.formUnion(MethodSet(word: $1.text) ?? []) },
      condition: allow.condition.map { compile($0, Context(scope: scope)) } ?? -1,
      line: Int32(source.line(of: allow.range.lowerBound)), start: Int32(allow.range.lowerBound),
      end: Int32(allow.range.upperBound))
  }

  // MARK: Expressions

  /// The names that are visible to an expression.
  private struct Context {
    let scope: Scope
    /// The parameters and lets, with their indexes in the frame.
    var locals: [String: Int] = [:]
  }

  private mutating func add(_ node: Program.Node, _ expression: Expression) -> Int32 {
    var node = node
    node.start = Int32(expression.range.lowerBound)
    node.end = Int32(expression.range.upperBound)
    program.nodes.append(node)
    return Int32(program.nodes.count - 1)
  }

  private mutating func constant(_ value: RuleValue) -> Int32 {
    program.constants.append(value)
    return Int32(program.constants.count - 1)
  }

  private mutating func text(_ bytes: [UInt8]) -> Int32 {
    if let known = textConstants[bytes] { return known }
    let number = constant(.string(program.storage.text(bytes)))
    textConstants[bytes] = number
    return number
  }

  /// Compiles operands, and stores their numbers consecutively.
  private mutating func list(_ expressions: [Expression], _ context: Context) -> (first: Int32, count: Int32) {
    let numbers = expressions.map { compile($0, context) }
    let first = Int32(program.operands.count)
    program.operands += numbers
    return (first, Int32(numbers.count))
  }

  private mutating func compile(_ expression: Expression, _ context: Context) -> Int32 {
    typealias Node = Program.Node
    switch expression.kind {
    case .null: return add(Node(operation: .constant, a: constant(.null)), expression)
    case .boolean(let value): return add(Node(operation: .constant, a: constant(.bool(value))), expression)
    case .integer(let value): return add(Node(operation: .constant, a: constant(.int(value))), expression)
    case .float(let value): return add(Node(operation: .constant, a: constant(.float(value))), expression)
    case .string(let value): return add(Node(operation: .constant, a: text(value)), expression)
    case .bytes(let value):
      return add(Node(operation: .constant, a: constant(.bytes(program.storage.text(value)))), expression)
    case .variable(let name): return variable(name, expression, context)
    case .list(let items):
      let (first, count) = list(items, context)
      return add(Node(operation: .list, a: first, b: count), expression)
    case .map(let entries):
      let (first, count) = list(entries.flatMap { [$0.key, $0.value] }, context)
      return add(Node(operation: .map, a: first, b: count), expression)
    case .path(let parts): return path(parts, expression, context)
    case .member(let base, let name):
      let inner = compile(base, context)
      let property = RequestProperty(rawValue: name.text).map { Int32($0.number) } ?? -1
      return add(Node(operation: .member, a: inner, b: text(Array(name.text.utf8)), c: property), expression)
    case .index(let base, let index):
      let inner = compile(base, context)
      return add(Node(operation: .index, a: inner, b: compile(index, context)), expression)
    case .range(let base, let from, let to):
      let inner = compile(base, context)
      // A missing limit of a slice is a literal null.
      let bounds = [from, to].map { bound in
        bound.map { compile($0, context) } ?? add(Node(operation: .constant, a: constant(.null)), base)
      }
      return add(Node(operation: .range, a: inner, b: bounds[0], c: bounds[1]), expression)
    case .unary(let operation, let operand):
      let inner = compile(operand, context)
      return add(Node(operation: operation == .not ? .not : .negate, a: inner), expression)
    case .binary(let operation, let left, let right):
      let first = compile(left, context)
      return add(Node(operation: Self.operation(operation), a: first, b: compile(right, context)), expression)
    case .isType(let operand, let type):
      let inner = compile(operand, context)
      let number = RuleType.allCases.firstIndex(of: type) ?? 0
      return add(Node(operation: .isType, cost: 2, a: inner, b: Int32(number)), expression)
    case .conditional(let condition, let yes, let no):
      let inner = compile(condition, context)
      let first = compile(yes, context)
      return add(Node(operation: .conditional, a: inner, b: first, c: compile(no, context)), expression)
    case .call(let name, let arguments): return call(name, arguments, expression, context)
    case .method(let receiver, let name, let arguments):
      if let lookup = documentLookup(receiver, name, context) {
        let (first, count) = list(arguments, context)
        return add(Node(operation: .callBuiltin, a: first, b: count, c: lookup), expression)
      }
      let (first, count) = list([receiver] + arguments, context)
      guard let group = Builtins.group(name.text, isMethod: true) else {
        return add(
          Node(operation: .unknownFunction, a: first, b: count, c: text(Array(name.text.utf8))), expression)
      }
      let pattern = Self.patternMethods.contains(name.text) ? literalPattern(arguments) : -1
      return add(Node(operation: .callMethod, pattern: pattern, a: first, b: count, c: Int32(group)), expression)
    }
  }

  /// Returns the group of `get` for `firestore.get`, if the service has lookups with this prefix.
  private func documentLookup(_ receiver: Expression, _ name: Expression.Name, _ context: Context) -> Int32? {
    guard case .variable(let variable) = receiver.kind, variable.text == "firestore",
      context.locals[variable.text] == nil, context.scope.capture(variable.text) == nil,
      profile.functions.contains("firestore.\(name.text)")
    else { return nil }
    return Builtins.group(name.text, isMethod: false).map { Int32($0) }
  }

  private mutating func literalPattern(_ arguments: [Expression]) -> Int32 {
    guard case .string(let text)? = arguments.first?.kind, let pattern = Pattern(text) else { return -1 }
    program.regularExpressions.append(pattern)
    return Int32(program.regularExpressions.count - 1)
  }

  private mutating func variable(_ name: Expression.Name, _ expression: Expression, _ context: Context) -> Int32 {
    let node: Program.Node
    if let slot = context.locals[name.text] {
      node = Program.Node(operation: .local, a: Int32(slot))
    } else if let slot = context.scope.capture(name.text) {
      node = Program.Node(operation: .capture, a: Int32(slot))
    } else if name.text == "request" {
      node = Program.Node(operation: .request)
    } else if name.text == "resource" {
      node = Program.Node(operation: .resource)
    } else {
      node = Program.Node(operation: .unknownVariable)
    }
    return add(node, expression)
  }

  private mutating func call(
    _ name: Expression.Name, _ arguments: [Expression], _ expression: Expression, _ context: Context
  ) -> Int32 {
    let (first, count) = list(arguments, context)
    if let function = context.scope.function(name.text) {
      guard Int(program.functions[function].parameterCount) == arguments.count else {
        let signature = text(Array(signatures[function].utf8))
        return add(Program.Node(operation: .wrongCount, a: first, b: count, c: signature), expression)
      }
      return add(Program.Node(operation: .callFunction, a: first, b: count, c: Int32(function)), expression)
    }
    if let group = Builtins.group(name.text, isMethod: false) {
      return add(Program.Node(operation: .callBuiltin, a: first, b: count, c: Int32(group)), expression)
    }
    let unknown = text(Array(name.text.utf8))
    return add(Program.Node(operation: .unknownFunction, pattern: 0, a: first, b: count, c: unknown), expression)
  }

  private mutating func path(_ parts: [Expression.PathPart], _ expression: Expression, _ context: Context) -> Int32 {
    var compiled: [Program.PathPart] = []
    var literalCount = 0
    for part in parts {
      switch part {
      case .literal(let text):
        compiled.append(.constant(PathSegment(program.storage.text(text))))
        literalCount += 1
      case .value(let inner): compiled.append(.value(node: compile(inner, context)))
      case .capture(let name, let isGlob):
        compiled.append(
          .constant(
            PathSegment(
              isGlob ? .globCapture : .capture, name: program.storage.text(Array(name.text.utf8)),
              text: program.storage.text([]))))
      }
    }
    let cost = UInt16(min(1 + literalCount, 1 << 12))
    let segments = compiled.compactMap { if case .constant(let segment) = $0 { segment } else { nil } }
    if segments.count == compiled.count {
      let value = constant(.path(program.storage.segments(segments)))
      return add(Program.Node(operation: .constant, cost: cost, a: value), expression)
    }
    let first = Int32(program.pathParts.count)
    program.pathParts += compiled
    return add(Program.Node(operation: .path, cost: cost, a: first, b: Int32(compiled.count)), expression)
  }

  private static func operation(_ operation: Expression.BinaryOperator) -> Program.Operation {
    switch operation {
    case .or: .or
    case .and: .and
    case .in: .in
    case .equal: .equal
    case .notEqual: .notEqual
    case .less: .less
    case .lessOrEqual: .lessOrEqual
    case .greater: .greater
    case .greaterOrEqual: .greaterOrEqual
    case .add: .add
    case .subtract: .subtract
    case .multiply: .multiply
    case .divide: .divide
    case .remainder: .remainder
    }
  }
}
