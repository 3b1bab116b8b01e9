import RegularExpressions

/// Checks a parsed ruleset. Reports the errors and warnings of Google's engine in its words, and lint of Hearth's own.
struct Checker {
  /// The greatest number of diagnostics kept for one ruleset.
  static let diagnosticsMax = 200
  /// The greatest nesting of match blocks, counted below the outermost block.
  static let matchDepthMax = 10
  static let segmentsMax = 100
  static let capturesMax = 20
  static let parametersMax = 7
  /// The documentation says 10, but the engine accepts 11.
  static let letsMax = 11
  /// The greatest number of nested calls, counted after the first.
  static let callDepthMax = 20

  private let tree: RulesetTree
  let source: SourceText
  private var diagnostics: [Diagnostic] = []
  private var hasError = false
  /// All functions in the order of their declarations, and the numbers of the functions that each calls.
  private var functions: [FunctionTree] = []
  private var calls: [[Int]] = []
  private var isCalled: Set<Int> = []
  /// The function whose body is being checked.
  private var currentFunction: Int?
  private var usedNames: Set<String> = []
  private var profile = ServiceProfile.firestore

  /// Returns the diagnostics of a tree, in the order of the text.
  static func check(_ tree: RulesetTree, _ source: SourceText) -> [Diagnostic] {
    var checker = Checker(tree: tree, source: source)
    checker.run()
    return checker.diagnostics.sorted { ($0.range.lowerBound, $0.message) < ($1.range.lowerBound, $1.message) }
  }

  private init(tree: RulesetTree, source: SourceText) {
    self.tree = tree
    self.source = source
  }

  mutating func add(
    _ severity: Diagnostic.Severity, _ message: String, _ range: Range<Int>,
    suggestion: @autoclosure () -> String? = nil
  ) {
    // At the limit, keep only a first error, because a ruleset with an error must not compile. `suggestion` is an
    // autoclosure because the search for similar names takes time.
    guard diagnostics.count < Self.diagnosticsMax || (severity == .error && !hasError) else { return }
    hasError = hasError || severity == .error
    diagnostics.append(Diagnostic(severity, message, at: range, in: source, suggestion: suggestion()))
  }

  private mutating func run() {
    if tree.version == 1 {
      add(
        .warning, "Ruleset uses old version (version [1]). Please update to the latest version (version [2]).",
        tree.versionRange ?? 0..<1, suggestion: "begin with rules_version = '2';")
    }
    let file = Scope(in: nil)
    var bodies: [(Int, Scope)] = []
    declare(tree.functions, in: file, &bodies)
    var seen: Set<String> = []
    for service in tree.services {
      if !seen.insert(service.name.text).inserted {
        add(.error, "Duplicate service name declaration.", service.name.range)
      }
      let known = ServiceProfile.all.first { $0.name == service.name.text }
      if known == nil {
        add(
          .warning, "Invalid service name: \(service.name.text).", service.name.range,
          suggestion: NearestName.hint(for: service.name.text, among: ServiceProfile.all.map(\.name)))
      }
      profile = known ?? .firestore
      let scope = Scope(in: file)
      declare(service.functions, in: scope, &bodies)
      for match in service.matches { check(match, in: scope, Chain(), depth: 0) }
    }
    for (number, scope) in bodies where number < functions.count { checkBody(number, in: scope) }
    checkCallGraph()
    for (number, function) in functions.enumerated() where !isCalled.contains(number) {
      add(.warning, "Unused function: \(function.name.text).", function.name.range)
    }
  }

  private mutating func declare(_ trees: [FunctionTree], in scope: Scope, _ bodies: inout [(Int, Scope)]) {
    for function in trees {
      let number = functions.count
      functions.append(function)
      calls.append([])
      if !scope.declare(function: function.name.text, number) {
        add(.error, "Function \(function.name.text) is already defined.", function.name.range)
      }
      bodies.append((number, scope))
    }
  }

  // MARK: Match blocks

  /// The path of a block, joined with those of the blocks around it.
  private struct Chain {
    var segments: [MatchTree.Segment] = []
    var captureCount = 0
    var hasGlob = false
  }

  private mutating func check(_ match: MatchTree, in outer: Scope, _ chain: Chain, depth: Int) {
    let scope = Scope(in: outer)
    var chain = chain
    if depth > Self.matchDepthMax {
      add(
        .error, "Match blocks are nested deeper than \(Self.matchDepthMax) levels.", match.range,
        suggestion: "write longer paths in fewer blocks")
      return
    }
    if chain.hasGlob, tree.version == 1 {
      add(
        .lint, "This block never matches: it is inside a '**' block.", match.range,
        suggestion: "begin with rules_version = '2';")
    }
    var names: Set<String> = []
    for (index, segment) in match.segments.enumerated() {
      guard case .capture(let name, let isGlob) = segment else { continue }
      checkDeclared(name)
      if !names.insert(name.text).inserted {
        add(.error, "Variable \(name.text) already exists in the PathTemplate.", name.range)
      }
      scope.declare(capture: name.text)
      chain.captureCount += 1
      guard isGlob else { continue }
      if tree.version == 1, index + 1 < match.segments.count {
        add(
          .error,
          "Invalid glob match expression. Glob matches are permitted as the last segment in a match declaration path.",
          name.range)
      }
      if tree.version == 2, chain.hasGlob {
        add(
          .error,
          "Invalid glob match expression. Only one glob match is permitted in a match declaration path.", name.range)
      }
      chain.hasGlob = true
    }
    if tree.version == 1, names.count > 0, case .capture(_, true)? = match.segments.last,
      match.members.contains(where: { if case .match = $0 { true } else { false } })
    {
      add(.warning, "Glob(**) resource rules should not have child resource rules.", match.range)
    }
    chain.segments += match.segments
    if chain.segments.count > Self.segmentsMax {
      add(.error, "The path has more than \(Self.segmentsMax) segments.", match.range)
    }
    if chain.captureCount > Self.capturesMax {
      add(.error, "The path has more than \(Self.capturesMax) captures.", match.range)
    }
    var bodies: [(Int, Scope)] = []
    declare(match.functions, in: scope, &bodies)
    for member in match.members {
      switch member {
      case .match(let inner): check(inner, in: scope, chain, depth: depth + 1)
      case .allow(let allow):
        checkReachable(match, chain.segments)
        check(allow, in: scope)
      }
    }
    for (number, scope) in bodies { checkBody(number, in: scope) }
  }

  /// Lint: reports a path that no request can have.
  private mutating func checkReachable(_ match: MatchTree, _ segments: [MatchTree.Segment]) {
    var rest = segments[...]
    for expected in profile.prefix {
      guard let first = rest.first else {
        add(
          .lint, "This block never matches: its path is shorter than \(prefixText).", match.range,
          suggestion: "move the allow statements into a match block below that path")
        return
      }
      switch first {
      case .capture(_, isGlob: true): return
      case .literal(let text) where expected != nil && String(decoding: text, as: UTF8.self) != expected:
        add(.lint, "This block never matches: its path does not begin with \(prefixText).", match.range)
        return
      default: rest = rest.dropFirst()
      }
    }
    let hasGlob = rest.contains { if case .capture(_, isGlob: true) = $0 { true } else { false } }
    if profile.hasCollections, !hasGlob, !rest.count.isMultiple(of: 2) {
      add(
        .lint, "This block never matches: its path names a collection, not a document.", match.range,
        suggestion: "add a segment for the document, such as /{id}")
    }
  }

  private var prefixText: String { profile.prefix.map { "/" + ($0 ?? "{id}") }.joined() }

  private mutating func check(_ allow: AllowTree, in scope: Scope) {
    var methods: MethodSet = []
    for method in allow.methods {
      if let known = MethodSet(word: method.text) {
        methods.formUnion(known)
      } else {
        let words = ["read", "write", "get", "list", "create", "update", "delete"]
        add(
          .warning, "Invalid method name: \(method.text).", method.range,
          suggestion: NearestName.hint(for: method.text, among: words))
      }
    }
    if !methods.isDisjoint(with: .write), allow.condition.map(Self.isAlwaysTrue) ?? true {
      add(
        .lint, "Any caller can write here: the condition is always true.", allow.range,
        suggestion: "add a condition, such as if request.auth != null")
    }
    guard let condition = allow.condition else { return }
    check(condition, Context(scope: scope))
  }

  private static func isAlwaysTrue(_ expression: Expression) -> Bool {
    switch expression.kind {
    case .boolean(let value): value
    case .unary(.not, let operand):
      if case .boolean(false) = operand.kind { true } else { false }
    case .binary(.equal, let left, let right):
      switch (left.kind, right.kind) {
      case (.integer(let a), .integer(let b)): a == b
      case (.string(let a), .string(let b)): a == b
      case (.boolean(let a), .boolean(let b)): a == b
      default: false
      }
    case .binary(.or, let left, let right): isAlwaysTrue(left) || isAlwaysTrue(right)
    case .binary(.and, let left, let right): isAlwaysTrue(left) && isAlwaysTrue(right)
    default: false
    }
  }

  // MARK: Functions

  private mutating func checkDeclared(_ name: Expression.Name) {
    if Builtins.packages.contains(name.text) {
      add(.error, "\(name.text) is a package and cannot be used as variable name.", name.range)
    }
  }

  private mutating func checkBody(_ number: Int, in scope: Scope) {
    let function = functions[number]
    currentFunction = number
    defer { currentFunction = nil }
    usedNames = []
    var context = Context(scope: scope)
    if function.parameters.count > Self.parametersMax {
      add(
        .error,
        "Maximum allowed function arguments of \(Self.parametersMax) for function \(function.name.text) "
          + "is reached.", function.name.range)
    }
    for name in function.parameters {
      checkDeclared(name)
      if !context.locals.insert(name.text).inserted {
        add(.error, "Variable \(name.text) is already defined.", name.range)
      }
    }
    for (index, (name, value)) in function.lets.enumerated() {
      checkDeclared(name)
      if tree.version == 1 {
        add(
          .error, "Let bindings are not allowed in rules_version=\"1\";", name.range,
          suggestion: "begin with rules_version = '2';")
      }
      if index == Self.letsMax {
        add(
          .error, "Maximum allowed variable count of \(Self.letsMax - 1) for a given function has been reached.",
          name.range)
      }
      check(value, context)
      if !context.locals.insert(name.text).inserted {
        add(.error, "The identifier [\(name.text)] is already bound in the current scope.", name.range)
      }
    }
    check(function.result, context)
    for name in function.parameters + function.lets.map(\.name) where !usedNames.contains(name.text) {
      add(.warning, "Unused variable: \(name.text).", name.range)
    }
  }

  /// Reports recursion, and chains of calls that are too long.
  private mutating func checkCallGraph() {
    enum State {
      case unseen, open
      /// The number of functions in the longest chain of calls that begins here.
      case done(Int)
    }
    var states = [State](repeating: .unseen, count: functions.count)
    for root in functions.indices {
      guard case .unseen = states[root] else { continue }
      var path: [(function: Int, next: Int, longest: Int)] = [(root, 0, 0)]
      states[root] = .open
      while let (function, next, longest) = path.last {
        guard next < calls[function].count else {
          states[function] = .done(longest + 1)
          path.removeLast()
          if let last = path.indices.last { path[last].longest = max(path[last].longest, longest + 1) }
          if longest == Self.callDepthMax + 1 {
            add(
              .error, "Maximum allowed call depth of \(Self.callDepthMax) is reached.", functions[function].name.range)
          }
          continue
        }
        path[path.count - 1].next += 1
        let callee = calls[function][next]
        switch states[callee] {
        case .unseen:
          states[callee] = .open
          path.append((callee, 0, 0))
        case .open:
          let cycle = path.drop { $0.function != callee }.map { functions[$0.function].name.text }
          add(
            .error, "Detected a call cycle between [\(cycle.joined(separator: ","))] functions.",
            functions[callee].name.range)
        case .done(let count): path[path.count - 1].longest = max(longest, count)
        }
      }
    }
  }

  // MARK: Expressions

  /// The names that are visible to an expression.
  private struct Context {
    let scope: Scope
    var locals: Set<String> = []
  }

  private mutating func check(_ expression: Expression, _ context: Context) {
    switch expression.kind {
    case .variable(let name): checkVariable(name, context)
    case .call(let name, let arguments): checkCall(name, arguments.count, context)
    case .method(let receiver, let name, let arguments):
      if isDocumentLookup(receiver, name, context) {
        for argument in arguments { check(argument, context) }
        return
      }
      checkMethod(name, arguments, context)
    case .member(let base, let name): checkMember(base, name, context)
    case .binary(.in, let left, let right): checkPrecedence([left, right], "in")
    case .isType(let operand, _): checkPrecedence([operand], "is")
    case .path(let parts):
      for case .capture(let name, _) in parts { checkDeclared(name) }
    default: break
    }
    for child in expression.children { check(child, context) }
  }

  /// Whether this is a call such as `firestore.get(…)`, in rules for a service that has it.
  private func isDocumentLookup(_ receiver: Expression, _ name: Expression.Name, _ context: Context) -> Bool {
    guard case .variable(let variable) = receiver.kind, variable.text == "firestore" else { return false }
    return profile.functions.contains("firestore.\(name.text)") && !context.locals.contains(variable.text)
      && context.scope.capture(variable.text) == nil
  }

  private mutating func checkVariable(_ name: Expression.Name, _ context: Context) {
    if context.locals.contains(name.text) {
      usedNames.insert(name.text)
    } else if context.scope.capture(name.text) == nil, !profile.globals.contains(name.text) {
      let globals = profile.globals
      add(
        .warning, "Invalid variable name: \(name.text).", name.range,
        suggestion: NearestName.hint(
          for: name.text, among: context.locals.union(context.scope.captureNames).union(globals)))
    }
  }

  private mutating func checkCall(_ name: Expression.Name, _ count: Int, _ context: Context) {
    if let number = context.scope.function(name.text) {
      isCalled.insert(number)
      if let currentFunction { calls[currentFunction].append(number) }
      if functions[number].parameters.count != count {
        add(.warning, "Incorrect number of arguments supplied to function: \(name.text).", name.range)
      }
    } else if let group = Builtins.group(name.text, isMethod: false) {
      if !Builtins.groups[group].signatures.contains(where: { $0.parameters.count == count }) {
        add(.warning, "Incorrect number of arguments supplied to function: \(name.text).", name.range)
      }
    } else {
      add(
        .warning, "Invalid function name: \(name.text).", name.range,
        suggestion: NearestName.hint(
          for: name.text,
          among: context.scope.functionNames.union(Builtins.groups.filter { !$0.isMethod }.map(\.name))))
    }
  }

  private mutating func checkMethod(_ name: Expression.Name, _ arguments: [Expression], _ context: Context) {
    guard let group = Builtins.group(name.text, isMethod: true) else {
      if Builtins.group("firestore.\(name.text)", isMethod: false) == nil,
        !profile.functions.contains(
          "firestore.\(name.text)")
      {
        add(
          .warning, "Invalid function name: \(name.text).", name.range,
          suggestion: NearestName.hint(
            for: name.text, among: Builtins.groups.filter(\.isMethod).map(\.name)))
      }
      return
    }
    if !Builtins.groups[group].signatures.contains(where: { $0.parameters.count == arguments.count }) {
      add(.warning, "Incorrect number of arguments supplied to function: \(name.text).", name.range)
    }
    if Compiler.patternMethods.contains(name.text), case .string(let text)? = arguments.first?.kind,
      Pattern(text) == nil
    {
      add(
        .error, "Invalid regular expression pattern. Pattern: \(String(decoding: text, as: UTF8.self)).",
        arguments[0].range)
    }
  }

  /// Lint: reports a name that is almost the name of a member of `request` or `resource`.
  private mutating func checkMember(_ base: Expression, _ name: Expression.Name, _ context: Context) {
    guard let path = base.dottedPath, let known = ServiceProfile.members[path], !known.contains(name.text),
      let root = path.split(separator: ".").first.map(String.init), profile.hasCollections,
      !context.locals.contains(root), context.scope.capture(root) == nil,
      let hint = NearestName.hint(for: name.text, among: known)
    else { return }
    add(.lint, "'\(path)' has no member '\(name.text)'.", name.range, suggestion: hint)
  }

  /// Lint: reports operators whose precedence in the documentation differs from that in the engine.
  private mutating func checkPrecedence(_ operands: [Expression], _ word: String) {
    for operand in operands where !operand.isParenthesized {
      guard case .binary(let operation, _, _) = operand.kind, operation == .equal || operation == .notEqual else {
        continue
      }
      add(
        .lint, "'\(operation.rawValue)' binds more tightly than '\(word)', contrary to Firebase's documentation.",
        operand.range, suggestion: "add parentheses to make the order explicit")
    }
  }
}

extension Expression {
  /// The names of a chain of members, such as `request.auth`, or `nil` if the expression is not such a chain.
  var dottedPath: String? {
    switch kind {
    case .variable(let name): name.text
    case .member(let base, let name): base.dottedPath.map { "\($0).\(name.text)" }
    default: nil
    }
  }
}
