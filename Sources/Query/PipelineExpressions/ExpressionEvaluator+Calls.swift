import Basics
import DocumentModel

extension ExpressionEvaluator {
  typealias Arguments = UnsafeBufferPointer<ExpressionValue>

  func fail(_ function: ExpressionFunction, _ reason: ExpressionFault.Reason, _ argument: Int = 0) -> ExpressionValue {
    .error(ExpressionFault(reason, in: function, argument: argument))
  }

  /// Computes a call whose arguments are evaluated. Arguments of a propagating function have the types of its
  /// signature.
  func apply(_ node: ExpressionProgram.Node, _ arguments: Arguments) -> ExpressionValue {
    let function = node.function
    switch function {
    case .equal: return .boolean(equal(arguments[0], arguments[1]))
    case .notEqual: return .boolean(!equal(arguments[0], arguments[1]))
    case .lessThan: return .boolean(strict(arguments) == .less)
    case .lessThanOrEqual: return .boolean(strict(arguments).map { $0 != .greater } ?? false)
    case .greaterThan: return .boolean(strict(arguments) == .greater)
    case .greaterThanOrEqual: return .boolean(strict(arguments).map { $0 != .less } ?? false)
    case .cmp:
      charge(comparing: arguments[0], arguments[1])
      return .integer(Int64(ExpressionOrder.compare(arguments[0], arguments[1]).rawValue))
    case .add, .subtract, .multiply, .divide, .mod, .abs, .ceil, .floor, .round, .trunc, .pow, .sqrt, .exp, .ln,
      .log10, .log:
      return arithmetic(function, arguments)
    case .xor, .not, .equalAny, .notEqualAny, .greatest, .least, .exists, .isAbsent, .error, .isNull, .isNotNull,
      .isNaN, .isNotNaN:
      return logic(node, arguments)
    case .charLength, .byteLength, .length, .stringConcat, .concat, .toLower, .toUpper, .trim, .ltrim, .rtrim,
      .reverse, .stringReverse, .substring, .stringRepeat, .split, .join:
      return text(function, arguments)
    case .stringContains, .startsWith, .endsWith, .stringIndexOf, .stringReplaceAll, .stringReplaceOne, .like,
      .regexContains, .regexMatch, .regexFind, .regexFindAll:
      return search(node, arguments)
    case .unixMicrosToTimestamp, .unixMillisToTimestamp, .unixSecondsToTimestamp, .timestampToUnixMicros,
      .timestampToUnixMillis, .timestampToUnixSeconds, .timestampAdd, .timestampSubtract, .timestampDiff,
      .timestampTrunc, .timestampExtract:
      return timestamp(node, arguments)
    case .array, .arrayConcat, .arrayContains, .arrayContainsAll, .arrayContainsAny, .arrayLength, .arrayReverse,
      .arrayGet, .arrayFirst, .arrayLast, .arrayFirstN, .arrayLastN, .arraySlice, .arrayIndexOf, .arrayIndexOfAll,
      .maximum, .minimum, .maximumN, .minimumN, .sum:
      return array(function, arguments)
    case .map, .mapGet, .mapSet, .mapRemove, .mapMerge, .mapKeys, .mapValues, .mapEntries:
      return map(function, arguments)
    case .type, .isType, .storageSize: return type(function, arguments)
    case .documentID, .collectionID, .parent, .referenceSlice: return reference(function, arguments)
    case .vectorLength, .euclideanDistance, .cosineDistance, .dotProduct, .manhattanDistance, .geoDistance:
      return distance(function, arguments)
    case .and, .or, .nor, .conditional, .switchOn, .ifNull, .coalesce, .ifAbsent, .isError, .ifError, .rand,
      .currentTimestamp, .currentDocument, .score, .arrayFilter, .arrayTransform, .scalar:
      return lazy(node)
    }
  }

  /// Computes a call that evaluates its arguments itself.
  func lazy(_ node: ExpressionProgram.Node) -> ExpressionValue {
    switch node.function {
    case .and: return conjunction(node)
    case .or: return disjunction(node)
    case .nor:
      let value = disjunction(node)
      if case .boolean(let flag) = value { return .boolean(!flag) }
      return value
    case .conditional:
      switch evaluate(operand(node, 0)) {
      case .boolean(true): return evaluate(operand(node, 1))
      case .boolean(false), .null, .absent: return evaluate(operand(node, 2))
      case .error(let fault): return .error(fault)
      default: return fail(.conditional, .type, 1)
      }
    case .switchOn: return switchOn(node)
    case .ifNull, .coalesce: return firstValue(node)
    case .ifAbsent:
      let value = evaluate(operand(node, 0))
      if case .absent = value { return evaluate(operand(node, 1)) }
      return value
    case .isError: return .boolean(evaluate(operand(node, 0)).isError)
    case .ifError:
      let value = evaluate(operand(node, 0))
      return value.isError ? evaluate(operand(node, 1)) : value
    case .rand: return .double(nextRandom())
    case .currentTimestamp: return .timestamp(now)
    case .currentDocument: return currentDocument()
    case .score: return row.score.map { .double($0) } ?? .absent
    case .arrayFilter: return filter(node)
    case .arrayTransform: return transform(node)
    default: return fail(node.function, .argument)
    }
  }

  // MARK: Comparison

  func equal(_ a: ExpressionValue, _ b: ExpressionValue) -> Bool {
    charge(comparing: a, b)
    return ExpressionOrder.equal(a, b)
  }

  private func strict(_ arguments: Arguments) -> Ordering? {
    charge(comparing: arguments[0], arguments[1])
    return ExpressionOrder.strict(arguments[0], arguments[1])
  }

  @inline(__always)
  func charge(comparing a: ExpressionValue, _ b: ExpressionValue) {
    _ = charge(min(ExpressionOrder.cost(a), ExpressionOrder.cost(b)))
  }

  // MARK: Logic

  private func conjunction(_ node: ExpressionProgram.Node) -> ExpressionValue {
    var isUnknown = false
    for index in 0..<Int(node.b) {
      switch evaluate(operand(node, index)) {
      case .boolean(true): break
      case .boolean(false): return .boolean(false)
      case .null, .absent: isUnknown = true
      case .error(let fault): return .error(fault)
      default: return fail(node.function, .type, index + 1)
      }
    }
    return isUnknown ? .null : .boolean(true)
  }

  private func disjunction(_ node: ExpressionProgram.Node) -> ExpressionValue {
    var isUnknown = false
    for index in 0..<Int(node.b) {
      switch evaluate(operand(node, index)) {
      case .boolean(true): return .boolean(true)
      case .boolean(false): break
      case .null, .absent: isUnknown = true
      case .error(let fault): return .error(fault)
      default: return fail(node.function, .type, index + 1)
      }
    }
    return isUnknown ? .null : .boolean(false)
  }

  private func switchOn(_ node: ExpressionProgram.Node) -> ExpressionValue {
    let count = Int(node.b)
    var index = 0
    while index + 1 < count {
      switch evaluate(operand(node, index)) {
      case .boolean(true): return evaluate(operand(node, index + 1))
      case .boolean(false), .null, .absent: break
      case .error(let fault): return .error(fault)
      default: return fail(.switchOn, .type, index + 1)
      }
      index += 2
    }
    return index < count ? evaluate(operand(node, index)) : .error(ExpressionFault(.noCase))
  }

  /// Evaluates `if_null` or `coalesce`. If no argument has a value, `if_null` gives the last one, and `coalesce` gives
  /// null unless all are absent.
  private func firstValue(_ node: ExpressionProgram.Node) -> ExpressionValue {
    var last = ExpressionValue.absent
    var wasNull = false
    for index in 0..<Int(node.b) {
      last = evaluate(operand(node, index))
      switch last {
      case .null: wasNull = true
      case .absent: break
      default: return last
      }
    }
    return node.function == .ifNull ? last : (wasNull ? .null : .absent)
  }

  private func logic(_ node: ExpressionProgram.Node, _ arguments: Arguments) -> ExpressionValue {
    let function = node.function
    let first = arguments[0]
    switch function {
    case .not:
      if case .boolean(let flag) = first { return .boolean(!flag) }
      return fail(.not, .type, 1)
    case .xor: return exclusive(arguments)
    case .equalAny: return isAny(node, first, of: arguments[1])
    case .notEqualAny:
      let result = isAny(node, first, of: arguments[1])
      if case .boolean(let flag) = result { return .boolean(!flag) }
      return result
    case .greatest, .least:
      var best = ExpressionValue.null
      for value in arguments where !value.isNothing { best = better(best, value, greatest: function == .greatest) }
      return best
    case .exists, .isAbsent:
      if case .absent = first { return .boolean(function == .isAbsent) }
      return .boolean(function == .exists)
    case .isNull, .isNotNull:
      switch first {
      case .absent: return fail(function, .type, 1)
      case .null: return .boolean(function == .isNull)
      default: return .boolean(function == .isNotNull)
      }
    case .isNaN, .isNotNaN:
      switch first.ordinary {
      case .null, .absent: return .null
      case .integer: return .boolean(function == .isNotNaN)
      case .double(let number): return .boolean(number.isNaN == (function == .isNaN))
      default: return fail(function, .type, 1)
      }
    default: return raise(first)
    }
  }

  private func exclusive(_ arguments: Arguments) -> ExpressionValue {
    var isUnknown = false
    var isOdd = false
    for (index, value) in arguments.enumerated() {
      switch value {
      case .boolean(let flag): isOdd = isOdd != flag
      case .null, .absent: isUnknown = true
      default: return fail(.xor, .type, index + 1)
      }
    }
    return isUnknown ? .null : .boolean(isOdd)
  }

  private func isAny(
    _ node: ExpressionProgram.Node, _ value: ExpressionValue, of array: ExpressionValue
  ) -> ExpressionValue {
    if array.isNothing { return .null }
    guard array.types == .array else { return fail(node.function, .type, 2) }
    if case .absent = value { return .boolean(false) }
    if node.c >= 0 {
      scratch.removeAll(keepingCapacity: true)
      guard charge(ExpressionOrder.cost(value)) else { return exhausted(.work) }
      guard ExpressionWriter.appendGroupKey(value, to: &scratch) else { return fail(node.function, .depth, 1) }
      return .boolean(scratch.withUnsafeBytes { program.sets[Int(node.c)].contains($0) })
    }
    return contains(array, value)
  }

  /// Returns the greater or the lesser of two values. If they are equal, or `best` is null, `best` loses only if it is
  /// null.
  func better(_ best: ExpressionValue, _ value: ExpressionValue, greatest: Bool) -> ExpressionValue {
    if case .null = best { return value }
    charge(comparing: best, value)
    return ExpressionOrder.compare(value, best) == (greatest ? .greater : .less) ? value : best
  }

  /// Evaluates `error(message)`.
  private func raise(_ message: ExpressionValue) -> ExpressionValue {
    guard case .string(let text) = message else { return fail(.error, .type, 1) }
    guard let memory = arena.take(UnsafeRawBufferPointer.self, 1) else { return exhausted(.memory) }
    memory.initialize(to: text)
    return .error(ExpressionFault(.raised, in: .error, message: UnsafePointer(memory)))
  }
}
