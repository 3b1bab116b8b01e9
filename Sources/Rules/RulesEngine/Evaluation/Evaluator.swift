import DocumentModel

/// Evaluates conditions of a program for one request at a time. Total: whatever the rules, the request and the stored
/// documents hold, an evaluation ends with a value within its budgets, and never traps.
///
/// Holds the memory that decisions need, for reuse; belongs to one thread at a time.
package final class Evaluator {
  /// The most expressions one document's judgement may evaluate (rules-language.md, section 15).
  package static let expressionsMax = 1000
  /// The most elementary steps (bytes and elements looked at) of one judgement; far above what documents need.
  static let workMax = 64 << 20

  var arena = Arena()
  var nodes: UnsafeMutablePointer<Program.Node>
  var operands: UnsafeMutablePointer<Int32>
  var constants: UnsafeMutablePointer<RuleValue>
  var program: Program?
  var captures: UnsafeMutablePointer<RuleValue>
  var remaining = Evaluator.expressionsMax
  var work = Evaluator.workMax
  /// Whether a comparison met something that a query does not determine: then its outcome means nothing.
  var metUnknown = false
  /// How deep a comparison has gone into values.
  var nesting = 0
  /// Set once the budget or the memory is used up: from then on every expression fails.
  var stopped: UnsafePointer<Failure>?
  /// The failure for when there is no memory for another.
  private let lastResort: UnsafeMutablePointer<Failure>

  var request = BorrowedRulesRequest()
  /// The segments of the request's path, from `databases`; for a query with the unknown document behind them.
  var requestPath = UnsafeBufferPointer<PathSegment>(start: nil, count: 0)
  /// How many of them `request.path` shows.
  var requestPathKnown = 0
  var writeFields: [String]?
  var transforms: [String]?
  var query: Query?
  var mode = ProofMode.sound
  var lookupCount = 0
  var resource: RuleValue = .null
  var newResource: RuleValue = .null
  var lookups: DocumentLookups?
  var usesTime = false
  /// Filled while tracing: what each expression gave, in the order of evaluation.
  var trace: [TracedValue] = []
  var isTracing = false
  /// Lends its memory to texts of traced values.
  private lazy var traceReader = Evaluator()

  /// What one expression gave, in the text form of ``RuleValueText``.
  package struct TracedValue: Sendable {
    /// Where the expression stands, in bytes.
    package let range: Range<Int>
    /// The value as typed JSON, as the coverage report writes it; `{"undefined":{…}}` for an error.
    package let value: String
    /// The number of the expression in ``RulesetOutline``.
    package let node: Int32
  }

  /// Takes about 40 KiB of memory.
  package init() {
    lastResort = .allocate(capacity: 1)
    lastResort.initialize(to: Failure(reason: .tooMuchMemory))
    // Never followed before a decision sets them.
    nodes = .allocate(capacity: 1)
    operands = .allocate(capacity: 1)
    constants = .allocate(capacity: 1)
    captures = .allocate(capacity: Checker.capturesMax)
    placeholders = (nodes, operands, constants)
    captures.initialize(repeating: .null, count: Checker.capturesMax)
  }

  private let placeholders:
    (UnsafeMutablePointer<Program.Node>, UnsafeMutablePointer<Int32>, UnsafeMutablePointer<RuleValue>)

  deinit {
    lastResort.deallocate()
    placeholders.0.deallocate()
    placeholders.1.deallocate()
    placeholders.2.deallocate()
    captures.deallocate()
  }

  // MARK: Failures

  @inline(never)
  func failure(
    _ reason: Failure.Reason, text: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
    group: Int32 = -1
  ) -> RuleValue {
    guard let memory = arena.take(Failure.self, 1) else { return outOfMemory() }
    memory.initialize(to: Failure(reason: reason, group: group, text: text))
    return .failure(UnsafePointer(memory))
  }

  @inline(never)
  func failure(
    _ reason: Failure.Reason, text: StaticString, _ items: RuleValue...
  ) -> RuleValue {
    failure(reason, text: text.bytes, items: items)
  }

  func failure(
    _ reason: Failure.Reason, text: UnsafeRawBufferPointer, items: some Collection<RuleValue>, group: Int32 = -1
  ) -> RuleValue {
    guard let copy = arena.take(RuleValue.self, items.count), let memory = arena.take(Failure.self, 1) else {
      return outOfMemory()
    }
    var count = 0
    for item in items {
      (copy + count).initialize(to: item)
      count += 1
    }
    memory.initialize(
      to: Failure(
        reason: reason, group: group, text: text, items: UnsafeBufferPointer(start: copy, count: count)))
    return .failure(UnsafePointer(memory))
  }

  func outOfMemory() -> RuleValue {
    if stopped == nil { stopped = UnsafePointer(lastResort) }
    return .failure(UnsafePointer(lastResort))
  }

  /// Pays for looking at so many bytes or elements; `false` when the judgement has done too much.
  @inline(__always)
  func charge(_ amount: Int) -> Bool {
    work -= amount
    return work >= 0 || stopForWork()
  }

  @inline(never)
  private func stopForWork() -> Bool {
    if stopped == nil, case .failure(let reason) = failure(.tooMuchWork) { stopped = reason }
    return false
  }

  /// The failure behind ``stopped``.
  var stopFailure: RuleValue { .failure(stopped ?? UnsafePointer(lastResort)) }

  // MARK: Evaluation

  /// Pays for an expression; `false` when the budget is used up.
  @inline(__always)
  func pay(_ cost: Int) -> Bool {
    remaining -= cost
    return remaining >= 0 && stopped == nil || stopForBudget()
  }

  @inline(never)
  private func stopForBudget() -> Bool {
    if stopped == nil, case .failure(let reason) = failure(.tooManyExpressions) { stopped = reason }
    return false
  }

  /// The value of a node. `frame` holds the parameters and lets of the function it belongs to.
  ///
  /// Calls itself; the budget of expressions bounds how often.
  func evaluate(_ number: Int32, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    let node = nodes[Int(number)]
    guard pay(Int(node.cost)) else { return stopFailure }
    let value = apply(node, frame)
    if isTracing { record(value, of: number, node) }
    return value
  }

  @inline(never)
  private func record(_ value: RuleValue, of number: Int32, _ node: Program.Node) {
    traceReader.beginEvaluation()
    traceReader.arena.reset()
    // `request` and what hangs on it is made when asked for.
    traceReader.request = request
    traceReader.requestPath = requestPath
    traceReader.requestPathKnown = requestPathKnown
    traceReader.newResource = newResource
    traceReader.query = query
    traceReader.writeFields = writeFields
    traceReader.transforms = transforms
    trace.append(
      TracedValue(
        range: Int(node.start)..<Int(node.end), value: RuleValueText.typedJSON(value, reader: traceReader), node: number))
  }

  @inline(__always)
  private func apply(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    switch node.operation {
    case .constant: return constants[Int(node.a)]
    case .capture: return captures[Int(node.a)]
    case .local: return frame[Int(node.a)]
    case .request: return .object(.request)
    case .resource: return resource
    case .unknownVariable: return failure(.nullValue)
    case .member:
      let base = evaluate(node.a, frame)
      guard case .string(let name) = constants[Int(node.b)] else { return failure(.damaged) }
      return member(base, name, property: Int(node.c))
    case .and: return and(node, frame)
    case .or: return or(node, frame)
    case .equal, .notEqual:
      let left = evaluate(node.a, frame)
      let right = evaluate(node.b, frame)
      if left.isFailure { return left }
      if right.isFailure { return right }
      return equality(left, right, isNegated: node.operation == .notEqual)
    case .not:
      let operand = evaluate(node.a, frame)
      if case .bool(let value) = operand { return .bool(!value) }
      return operand.isFailure ? operand : failure(.operands, text: "!", operand)
    case .conditional:
      let condition = evaluate(node.a, frame)
      guard case .bool(let value) = condition else {
        return condition.isFailure ? condition : failure(.type, text: "bool", condition)
      }
      guard pay(1) else { return stopFailure }
      return evaluate(value ? node.b : node.c, frame)
    case .less, .lessOrEqual, .greater, .greaterOrEqual, .add, .subtract, .multiply, .divide, .remainder:
      let left = evaluate(node.a, frame)
      let right = evaluate(node.b, frame)
      if left.isFailure { return left }
      if right.isFailure { return right }
      return arithmetic(node.operation, left, right)
    case .negate:
      let operand = evaluate(node.a, frame)
      return operand.isFailure ? operand : negated(operand)
    case .in:
      // The engine looks at the container first.
      let container = evaluate(node.b, frame)
      let element = evaluate(node.a, frame)
      return contains(container, element)
    case .isType:
      let operand = evaluate(node.a, frame)
      return operand.isFailure ? operand : isType(operand, RuleType.allCases[Int(node.b)])
    case .index:
      let base = evaluate(node.a, frame)
      let index = evaluate(node.b, frame)
      return self.index(base, index)
    case .range:
      let base = evaluate(node.a, frame)
      let from = evaluate(node.b, frame)
      let to = evaluate(node.c, frame)
      return range(base, from, to)
    case .list: return list(node, frame)
    case .map: return map(node, frame)
    case .path: return path(node, frame)
    case .callFunction: return callFunction(node, frame)
    case .callBuiltin, .callMethod: return callBuiltin(node, frame)
    case .unknownFunction: return unknownFunction(node, frame)
    case .wrongCount:
      guard let arguments = evaluateOperands(node, frame) else { return outOfMemory() }
      guard case .string(let signature) = constants[Int(node.c)] else { return failure(.damaged) }
      return failure(.argumentCount, text: signature, items: arguments)
    }
  }

  /// An operand of `&&` and `||`: anything but a boolean counts as an error of its own.
  @inline(__always)
  private func condition(_ value: RuleValue) -> RuleValue {
    switch value {
    case .bool, .failure: value
    default: failure(.type, text: "bool", value)
    }
  }

  private func and(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    let left = condition(evaluate(node.a, frame))
    if case .bool(false) = left { return left }
    guard pay(1) else { return stopFailure }
    let right = condition(evaluate(node.b, frame))
    if case .bool(false) = right { return right }
    return left.isFailure ? left : right
  }

  private func or(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    let left = condition(evaluate(node.a, frame))
    if left.isTrue { return left }
    guard pay(1) else { return stopFailure }
    let right = condition(evaluate(node.b, frame))
    if right.isTrue { return right }
    return left.isFailure ? left : right
  }

  // MARK: Calls and literals

  /// The values of a node's operands, side by side in the arena; `nil` when that is used up.
  func evaluateOperands(
    _ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>
  ) -> UnsafeBufferPointer<RuleValue>? {
    let count = Int(node.b)
    guard let values = arena.take(RuleValue.self, count) else { return nil }
    for place in 0..<count {
      (values + place).initialize(to: evaluate(operands[Int(node.a) + place], frame))
    }
    return UnsafeBufferPointer(start: values, count: count)
  }

  /// Arguments and lets are computed once, in order; an error among them surfaces where its name is used.
  private func callFunction(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    guard let program else { return failure(.damaged) }
    let function = program.functions[Int(node.c)]
    let count = Int(function.parameterCount)
    let lets = Int(function.letCount)
    guard let inner = arena.take(RuleValue.self, count + lets) else { return outOfMemory() }
    for place in 0..<count {
      (inner + place).initialize(to: evaluate(operands[Int(node.a) + place], frame))
    }
    for place in 0..<lets {
      guard pay(1) else { return stopFailure }
      (inner + count + place).initialize(to: evaluate(operands[Int(function.firstLet) + place], inner))
    }
    return evaluate(function.result, inner)
  }

  private func unknownFunction(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    guard let values = evaluateOperands(node, frame), case .string(let name) = constants[Int(node.c)] else {
      return outOfMemory()
    }
    // A method of nothing is the receiver's failure.
    let isMethod = node.pattern < 0
    if isMethod, let receiver = values.first {
      if receiver.isFailure { return receiver }
      if case .null = receiver { return failure(.nullValue) }
    }
    return failure(.unknownFunction, text: name)
  }

  private func list(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    guard let values = evaluateOperands(node, frame) else { return outOfMemory() }
    return values.first { $0.isFailure } ?? .list(values)
  }

  private func map(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    guard let values = evaluateOperands(node, frame),
      let entries = arena.take(MapEntry.self, values.count / 2)
    else { return outOfMemory() }
    var count = 0
    for place in stride(from: 0, to: values.count, by: 2) {
      guard case .string(let key) = values[place] else {
        return values[place].isFailure ? values[place] : failure(.type, text: "string", values[place])
      }
      if values[place + 1].isFailure { return values[place + 1] }
      guard charge(count) else { return stopFailure }
      let known = UnsafeMutableBufferPointer(start: entries, count: count).firstIndex { RuleBytes.equal($0.key, key) }
      if let known {
        entries[known].value = values[place + 1]
      } else {
        (entries + count).initialize(to: MapEntry(key: key, value: values[place + 1]))
        count += 1
      }
    }
    return .map(UnsafeBufferPointer(start: entries, count: count))
  }

  private func path(_ node: Program.Node, _ frame: UnsafeMutablePointer<RuleValue>) -> RuleValue {
    guard let program else { return failure(.damaged) }
    let parts = program.pathParts[Int(node.a)..<Int(node.a + node.b)]
    guard let values = arena.take(RuleValue.self, parts.count) else { return outOfMemory() }
    var segmentCount = 0
    for (place, part) in parts.enumerated() {
      guard case .value(let inner) = part else {
        (values + place).initialize(to: .null)
        segmentCount += 1
        continue
      }
      var value = evaluate(inner, frame)
      switch value {
      case .failure: return value
      case .path(let spliced): segmentCount += spliced.count
      default:
        value = string(value)
        if value.isFailure { return value }
        segmentCount += 1
      }
      (values + place).initialize(to: value)
    }
    guard let segments = arena.take(PathSegment.self, segmentCount) else { return outOfMemory() }
    var count = 0
    func append(_ segment: PathSegment) {
      (segments + count).initialize(to: segment)
      count += 1
    }
    for (place, part) in parts.enumerated() {
      switch (part, values[place]) {
      case (.constant(let segment), _): append(segment)
      case (.value, .path(let spliced)): for segment in spliced { append(segment) }
      case (.value, .string(let text)): append(PathSegment(text))
      default: break
      }
    }
    return .path(UnsafeBufferPointer(start: segments, count: count))
  }
}
