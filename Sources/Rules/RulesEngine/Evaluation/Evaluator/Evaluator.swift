import Basics
import DocumentModel
import RegularExpressions

/// Evaluates the conditions of a program for one request at a time.
///
/// Evaluation never traps. For any rules, request and stored documents, it ends with a value and stays within its
/// budgets. An evaluator reuses the memory of earlier decisions; use it on one thread at a time.
package final class Evaluator {
  /// The greatest number of expressions that one document's decision may evaluate (rules-language.md, section 15).
  package static let expressionsMax = 1000
  /// The work of one decision, in steps of about a nanosecond: each byte and element that an expression reads costs
  /// some. Beyond this, the statement fails. Source: Hearth's own limit, which bounds the time that a decision holds an
  /// event loop.
  package static let workMax = 8_000_000
  /// The work of all decisions about one request, as a commit of many documents, in steps of about a nanosecond. Beyond
  /// this, the statement fails. Source: Hearth's own limit, which bounds the time that a request holds an event loop.
  package static let requestWorkMax = 32_000_000
  /// The work of a decision, in the same steps, that does not count for its request. So a request for any number of
  /// documents can have cheap decisions. Source: Hearth's own limit.
  package static let cheapWorkMax = 10_000
  /// The work, in the same steps, after which a request for several documents lets its event loop serve others, between
  /// two documents. Every document counts at least ``cheapWorkMax``. Source: Hearth's own limit.
  package static let sliceWorkMax = 4_000_000
  /// Whether a slice should end that has evaluated this many documents with this work.
  package static func isSliceSpent(work: Int, documents: Int) -> Bool {
    work + documents * cheapWorkMax >= sliceWorkMax
  }
  /// The compiled patterns that conditions computed last, which the server keeps for later decisions. Each takes at
  /// most 1 MiB. Beyond this, a pattern is compiled again when it is used. Source: Hearth's own limit, which bounds
  /// memory.
  static let patternsKeptMax = 16
  /// The computed values of one decision, in bytes. An expression that needs more fails. Source: Hearth's own limit,
  /// which bounds memory.
  static let memoryBytesMax = 32 << 20
  /// The patterns that conditions computed last, of all rulesets.
  static let patterns = PatternCache(patternsMax: patternsKeptMax)

  var arena = Arena(bytesMax: memoryBytesMax)
  var nodes: UnsafeMutablePointer<Program.Node>
  var operands: UnsafeMutablePointer<Int32>
  var constants: UnsafeMutablePointer<RuleValue>
  var program: Program?
  var captures: UnsafeMutablePointer<RuleValue>
  var remaining = Evaluator.expressionsMax
  var work = Evaluator.workMax
  /// ``work`` at the start of the decision.
  var workAtStart = Evaluator.workMax
  /// The work that is left for the request. `Int.max` if the decision is not part of a request.
  var requestWork = Int.max
  /// Whether a comparison read a value that the query does not determine. Then its result is meaningless.
  var metUnknown = false
  /// The nesting of the values being compared.
  var nesting = 0
  /// The failure once the budget or the memory is used up. After that every expression fails.
  var stopped: UnsafePointer<Failure>?
  /// The failure to report when the arena has no memory for another one.
  private let lastResort: UnsafeMutablePointer<Failure>

  var request = BorrowedRulesRequest()
  /// The segments of the request's path, from `databases`. For a query, the unknown document follows them.
  var requestPath = UnsafeBufferPointer<PathSegment>(start: nil, count: 0)
  /// The number of segments that `request.path` shows.
  var requestPathKnown = 0
  var writeFields: [String]?
  var transforms: [String]?
  var query: Query?
  var mode = ProofMode.sound
  /// Whether the filters of the query can find BSON values.
  var hasBSONTypes = false
  var lookupCount = 0
  var resource: RuleValue = .null
  var newResource: RuleValue = .null
  var lookups: DocumentLookups?
  var usesTime = false
  /// While tracing, the value of each expression, in the order of evaluation.
  var trace: [TracedValue] = []
  var isTracing = false
  /// An evaluator whose memory holds the texts of traced values.
  private lazy var traceReader = Evaluator()

  /// The value of one expression, in the text form of ``RuleValueText``.
  package struct TracedValue: Sendable {
    /// The place of the expression, in bytes.
    package let range: Range<Int>
    /// The value as typed JSON, as in coverage reports. An error is `{"undefined":{…}}`.
    package let value: String
    /// The number of the expression, as in ``RulesetOutline/Place/node``.
    package let node: Int32
  }

  /// An evaluator. It takes about 40 KiB of memory.
  package init() {
    lastResort = .allocate(capacity: 1)
    lastResort.initialize(to: Failure(reason: .tooMuchMemory))
    // Not dereferenced before a decision sets them.
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

  /// Charges for reading `amount` bytes or elements. Returns `false` if the budget of work is used up.
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

  /// The failure in ``stopped``.
  var stopFailure: RuleValue { .failure(stopped ?? UnsafePointer(lastResort)) }

  // MARK: Evaluation

  /// Charges for an expression. Returns `false` if the budget of expressions is used up.
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

  /// Returns the value of a node. `frame` holds the parameters and lets of the enclosing function.
  ///
  /// Recurses. The budget of expressions limits the depth.
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
    traceReader.work = Self.workMax
    traceReader.arena.reset()
    // `request` and its members are created when they are read.
    traceReader.request = request
    traceReader.requestPath = requestPath
    traceReader.requestPathKnown = requestPathKnown
    traceReader.newResource = newResource
    traceReader.query = query
    traceReader.writeFields = writeFields
    traceReader.transforms = transforms
    trace.append(
      TracedValue(
        range: Int(node.start)..<Int(node.end), value: RuleValueText.typedJSON(value, reader: traceReader),
        node: number))
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
      // Like the engine, evaluate the container first.
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

  /// Returns the operand of `&&` or `||`. A value other than a boolean becomes an error.
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

  /// Returns the values of a node's operands, consecutively in the arena, or `nil` if the arena is full.
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

  /// Calls a function. Arguments and lets are computed once, in order. An error in one surfaces where its name is used.
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
    // For a method, the receiver's failure takes precedence.
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
      guard charge(count * (4 + key.count >> 3)) else { return stopFailure }
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
    guard charge(segmentCount * 4), let segments = arena.take(PathSegment.self, segmentCount) else {
      return outOfMemory()
    }
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
