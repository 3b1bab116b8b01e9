import Basics
import Glibc

/// Arithmetic, comparison, `is` and `in`.
extension Evaluator {
  // MARK: Order

  /// Compares two values: -1, 0 or 1, or 2 if one of them is NaN. Returns `nil` if the types have no order.
  func order(_ a: RuleValue, _ b: RuleValue) -> Int? {
    func numbers(_ x: Double, _ y: Double) -> Int { x < y ? -1 : x > y ? 1 : x == y ? 0 : 2 }
    switch (a, b) {
    case (.int(let x), .int(let y)): return x < y ? -1 : x > y ? 1 : 0
    case (.int(let x), .float(let y)): return numbers(Double(x), y)
    case (.float(let x), .int(let y)): return numbers(x, Double(y))
    case (.float(let x), .float(let y)): return numbers(x, y)
    case (.string(let x), .string(let y)):
      return charge(min(x.count, y.count) >> 1) ? UTF16Text.compare(x, y) : nil
    case (.bytes(let x), .bytes(let y)):
      let common = min(x.count, y.count)
      guard charge(common >> 3) else { return nil }
      if common > 0, let left = x.baseAddress, let right = y.baseAddress {
        let result = memcmp(left, right, common)
        if result != 0 { return result < 0 ? -1 : 1 }
      }
      return x.count < y.count ? -1 : x.count > y.count ? 1 : 0
    case (.timestamp(let x), .timestamp(let y)), (.duration(let x), .duration(let y)):
      if x.seconds != y.seconds { return x.seconds < y.seconds ? -1 : 1 }
      return x.nanos < y.nanos ? -1 : x.nanos > y.nanos ? 1 : 0
    default: return nil
    }
  }

  /// Whether the result of ``order(_:_:)`` satisfies an operator.
  static func holds(_ operation: Program.Operation, _ order: Int) -> Bool {
    switch operation {
    case .less: order == -1
    case .lessOrEqual: order == -1 || order == 0
    case .greater: order == 1
    default: order == 1 || order == 0
    }
  }

  private static func mirrored(_ operation: Program.Operation) -> Program.Operation {
    switch operation {
    case .less: .greater
    case .lessOrEqual: .greaterOrEqual
    case .greater: .less
    default: .lessOrEqual
    }
  }

  private static func text(_ operation: Program.Operation) -> StaticString {
    switch operation {
    case .less: "<"
    case .lessOrEqual: "<="
    case .greater: ">"
    case .greaterOrEqual: ">="
    case .add: "+"
    case .subtract: "-"
    case .multiply: "*"
    case .divide: "/"
    default: "%"
    }
  }

  // MARK: Arithmetic

  /// Evaluates an arithmetic operator or an order comparison. The operands must not be failures.
  func arithmetic(_ operation: Program.Operation, _ left: RuleValue, _ right: RuleValue) -> RuleValue {
    switch operation {
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      if case .constraint(let constraints) = left { return constrained(constraints, operation, right) }
      if case .constraint(let constraints) = right { return constrained(constraints, Self.mirrored(operation), left) }
      if let order = order(left, right) { return .bool(Self.holds(operation, order)) }
      if stopped != nil { return stopFailure }
    case .add:
      switch (left, right) {
      case (.string(let a), .string(let b)): return concatenated(a, b)
      case (.duration(let a), .duration(let b)): return duration(Moment.sum(a, b, isDuration: true))
      case (.timestamp(let a), .duration(let b)), (.duration(let b), .timestamp(let a)):
        return timestamp(Moment.sum(a, b, isDuration: false))
      default: break
      }
      if let value = number(operation, left, right) { return value }
    case .subtract:
      switch (left, right) {
      case (.duration(let a), .duration(let b)):
        return duration(Moment.sum(a, b, negated: true, isDuration: true))
      case (.timestamp(let a), .duration(let b)):
        return timestamp(Moment.sum(a, b, negated: true, isDuration: false))
      case (.timestamp(let a), .timestamp(let b)):
        return duration(Moment.sum(a, b, negated: true, isDuration: true))
      default: break
      }
      if let value = number(operation, left, right) { return value }
    default:
      if let value = number(operation, left, right) { return value }
    }
    return failure(.operands, text: Self.text(operation), left, right)
  }

  private func number(_ operation: Program.Operation, _ left: RuleValue, _ right: RuleValue) -> RuleValue? {
    switch (left, right) {
    case (.int(let a), .int(let b)): integer(operation, a, b)
    case (.int(let a), .float(let b)): .float(Self.float(operation, Double(a), b))
    case (.float(let a), .int(let b)): .float(Self.float(operation, a, Double(b)))
    case (.float(let a), .float(let b)): .float(Self.float(operation, a, b))
    default: nil
    }
  }

  private func integer(_ operation: Program.Operation, _ a: Int64, _ b: Int64) -> RuleValue {
    let (value, overflow): (Int64, Bool)
    switch operation {
    case .add: (value, overflow) = a.addingReportingOverflow(b)
    case .subtract: (value, overflow) = a.subtractingReportingOverflow(b)
    case .multiply: (value, overflow) = a.multipliedReportingOverflow(by: b)
    case .divide:
      if b == 0 { return failure(.divideByZero) }
      // The least integer divided by -1 wraps to itself, as in the engine.
      return .int(a.dividedReportingOverflow(by: b).partialValue)
    default:
      if b == 0 { return failure(.divideByZero) }
      return .int(b == -1 ? 0 : a % b)
    }
    return overflow ? failure(.integerOverflow) : .int(value)
  }

  private static func float(_ operation: Program.Operation, _ a: Double, _ b: Double) -> Double {
    switch operation {
    case .add: a + b
    case .subtract: a - b
    case .multiply: a * b
    case .divide: a / b
    default: fmod(a, b)
    }
  }

  /// Evaluates `-operand`.
  func negated(_ operand: RuleValue) -> RuleValue {
    switch operand {
    case .int(let value): value == .min ? failure(.integerOverflow) : .int(-value)
    case .float(let value): .float(-value)
    case .duration(let value): .duration(Moment(seconds: -value.seconds, nanos: -value.nanos))
    default: failure(.operands, text: "-", operand)
    }
  }

  private func concatenated(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> RuleValue {
    concatenated([a, b])
  }

  /// Joins texts. Two halves of a surrogate pair that meet become one character.
  func concatenated(_ texts: [UnsafeRawBufferPointer]) -> RuleValue {
    let total = texts.reduce(0) { $0 + $1.count }
    guard charge(texts.count * 8 + total >> 1) else { return stopFailure }
    guard let memory = arena.take(bytes: total) else { return outOfMemory() }
    let out = UnsafeMutableRawBufferPointer(start: memory, count: total)
    var count = 0
    for text in texts where !text.isEmpty {
      if count >= 3, text.count >= 3, out[count - 3] == 0xED, out[count - 2] & 0xF0 == 0xA0, text[0] == 0xED,
        text[1] & 0xF0 == 0xB0
      {
        var offset = 0
        var before = count - 3
        let high = UTF16Text.scalar(UnsafeRawBufferPointer(out), &before)
        let low = UTF16Text.scalar(text, &offset)
        count = UTF16Text.encode(0x10000 + (high & 0x3FF) << 10 + (low & 0x3FF), to: out, at: count - 3)
        let rest = UnsafeRawBufferPointer(rebasing: text[offset...])
        UnsafeMutableRawBufferPointer(rebasing: out[count...]).copyBytes(from: rest)
        count += rest.count
      } else {
        UnsafeMutableRawBufferPointer(rebasing: out[count...]).copyBytes(from: text)
        count += text.count
      }
    }
    return .string(UnsafeRawBufferPointer(rebasing: out[..<count]))
  }

  /// Returns a timestamp, or a failure if the moment is `nil` or out of range.
  func timestamp(_ moment: Moment?) -> RuleValue {
    guard let moment, Moment.timestampSeconds.contains(moment.seconds) else { return failure(.timestamp) }
    return .timestamp(moment)
  }

  /// Returns a duration, or a failure if the moment is `nil` or out of range.
  func duration(_ moment: Moment?) -> RuleValue {
    guard let moment, Moment.durationSeconds.contains(moment.seconds) else { return failure(.duration) }
    return .duration(moment)
  }

  // MARK: Types and membership

  /// Evaluates `operand is type`.
  func isType(_ operand: RuleValue, _ type: RuleType) -> RuleValue {
    if case .constraint(let constraints) = operand { return constrained(constraints, isType: type) }
    switch (operand.type, type) {
    case (.int, .number), (.float, .number): return .bool(true)
    // Like the engine, report that a set is not a set: rulesets rely on the engine's results.
    case (.set, .set): return .bool(false)
    case (let actual, _): return .bool(actual == type)
    }
  }

  /// Evaluates `element in container`.
  func contains(_ container: RuleValue, _ element: RuleValue) -> RuleValue {
    switch container {
    case .failure: return container
    case .null: return failure(.nullValue)
    case .list, .encodedList:
      if element.isFailure { return element }
      if case .constraint = element { return constrainedMembership() }
      metUnknown = false
      return bool(isIn(element, container, .strict))
    case .set:
      if element.isFailure { return element }
      if case .constraint = element { return constrainedMembership() }
      metUnknown = false
      return bool(isIn(element, container, .lenient))
    case .map, .encodedMap, .encodedFields, .object, .partialMap:
      if element.isFailure { return element }
      guard case .string(let key) = element else {
        return failure(.arguments, text: RuleBytes.of("in"), items: [container, element], group: Builtins.inGroup)
      }
      if let found = entry(container, key) {
        if case .failure(let reason) = found, reason.pointee.reason == .damaged { return found }
        return .bool(true)
      }
      if case .partialMap = container { return failure(.unknownByQuery) }
      return .bool(false)
    case .partialKeys(let known, _):
      if element.isFailure { return element }
      return isKnownKey(element, known) ? .bool(true) : failure(.unknownByQuery)
    case .constraint(let constraints):
      return element.isFailure ? element : constrained(constraints, contains: element)
    default: return failure(.unknownFunction, text: RuleBytes.of("in"))
    }
  }

  /// Returns the result of a comparison, or a failure if the comparison read an unknown value or a budget is used up.
  func bool(_ value: Bool) -> RuleValue {
    if stopped != nil { return stopFailure }
    return metUnknown ? failure(.unknownByQuery) : .bool(value)
  }
}
