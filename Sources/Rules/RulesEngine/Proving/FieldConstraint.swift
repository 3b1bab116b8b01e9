import DocumentModel
import WireFormat

/// The condition of one query filter on a field whose value the query does not determine.
struct FieldConstraint {
  /// The relation of the field's value to ``value``.
  let relation: Relation
  let value: RuleValue

  enum Relation {
    case less, lessOrEqual, greater, greaterOrEqual
    case notEqual
    /// The field is a list that contains ``FieldConstraint/value``.
    case contains
    /// The field is not in the list ``FieldConstraint/value``.
    case notIn
    /// The field equals ``FieldConstraint/value``. A number may be an int or a float.
    case same
    /// The field exists. Nothing else is known.
    case exists
  }
}

/// Conclusions that rules may draw from constraints (rules-language.md, section 14.2). A condition that does not
/// follow is an error, which denies unless `||` or `&&` absorbs it.
///
/// If several filters constrain one field, any of them may prove a condition, but none disproves one.
extension Evaluator {
  private var unknown: RuleValue { failure(.unknownByQuery) }

  /// Returns the value that a field is known to equal. Google's engine concludes less from an equality beside other
  /// filters; its conclusions count in a separate proof.
  private func soundValue(_ constraints: UnsafeBufferPointer<FieldConstraint>) -> RuleValue? {
    mode == .sound ? constraints.first { $0.relation == .same }?.value : nil
  }

  /// Returns the result of a comparison with a field that equals a value. A field that equals a number may contain its
  /// int or its float; if their results differ, the result is unknown.
  private func ofEveryForm(_ same: RuleValue, _ compared: (RuleValue) -> RuleValue) -> RuleValue {
    let result = compared(same)
    guard !result.isFailure, let other = otherForm(of: same) else { return result }
    let second = compared(other)
    return second.isFailure || second.isTrue == result.isTrue ? second : unknown
  }

  /// Evaluates `field == value`, or `field != value` if `isNegated`.
  func constrained(
    _ constraints: UnsafeBufferPointer<FieldConstraint>, equals value: RuleValue, isNegated: Bool
  ) -> RuleValue {
    if value.type == .constraint || value.type == .any { return unknown }
    if let same = soundValue(constraints) {
      return ofEveryForm(same) { equality($0, value, isNegated: isNegated) }
    }
    let isProven = constraints.contains { constraint in
      guard isNegated else { return constraint.relation == .same && isSame(constraint.value, value) }
      return excludes(constraint, value) && (mode == .emulator || excludesEveryForm(constraint, value))
    }
    return isProven ? .bool(true) : unknown
  }

  /// Whether a value of a query equals a value of the rule. As in Google's engine, a float of the query proves
  /// nothing about an int of the rule.
  private func isSame(_ held: RuleValue, _ value: RuleValue) -> Bool {
    if case (.float, .int) = (held, value) { return false }
    return equality(held, value, isNegated: false).isTrue
  }

  /// Whether a constraint excludes a value.
  private func excludes(_ constraint: FieldConstraint, _ value: RuleValue) -> Bool {
    switch (constraint.relation, value) {
    case (.notEqual, .null), (.notIn, .null), (.contains, .null), (.exists, .null): return true
    case (.notEqual, _): return isSame(constraint.value, value)
    case (.notIn, _):
      var items = ItemCursor(constraint.value, self)
      while let item = items.next() {
        if isSame(item, value) { return true }
      }
      return false
    case (.contains, _), (.exists, _): return false
    case (.same, .null): return constraint.value.type != .null
    case (.same, _):
      return (areNumbers(constraint.value, value) || constraint.value.type == value.type)
        && !isSame(constraint.value, value)
    default: return isBeyond(constraint, value)
    }
  }

  private func areNumbers(_ a: RuleValue, _ b: RuleValue) -> Bool {
    func isNumber(_ value: RuleValue) -> Bool { value.type == .int || value.type == .float }
    return isNumber(a) && isNumber(b)
  }

  /// Whether a value is outside a range. A range over a type that rules do not order proves nothing, not even that
  /// the field exists.
  private func isBeyond(_ constraint: FieldConstraint, _ value: RuleValue) -> Bool {
    if case .null = value { return order(constraint.value, constraint.value) != nil }
    guard let order = rangeOrder(constraint, value) else { return false }
    return switch constraint.relation {
    case .greater: order >= 0
    case .greaterOrEqual: order > 0
    case .less: order <= 0
    default: order < 0
    }
  }

  /// Compares a limit of the query with a value of the rule. Returns `nil` if nothing follows from the comparison.
  private func rangeOrder(_ constraint: FieldConstraint, _ value: RuleValue) -> Int? {
    if case (.float, .int) = (constraint.value, value) { return nil }
    if mode == .sound, !isOrderShared(constraint.value) { return nil }
    guard let order = order(constraint.value, value), order != 2 else { return nil }
    return order
  }

  /// Evaluates an order comparison of a field with a value.
  func constrained(
    _ constraints: UnsafeBufferPointer<FieldConstraint>, _ operation: Program.Operation, _ value: RuleValue
  ) -> RuleValue {
    if value.type == .constraint { return unknown }
    if let same = soundValue(constraints) { return ofEveryForm(same) { arithmetic(operation, $0, value) } }
    for constraint in constraints {
      guard let order = rangeOrder(constraint, value) else { continue }
      let isProven =
        switch (constraint.relation, operation) {
        case (.same, _): Self.holds(operation, order)
        case (.greater, .greater), (.greater, .greaterOrEqual), (.greaterOrEqual, .greaterOrEqual): order >= 0
        case (.greaterOrEqual, .greater): order > 0
        case (.less, .less), (.less, .lessOrEqual), (.lessOrEqual, .lessOrEqual): order <= 0
        case (.lessOrEqual, .less): order < 0
        default: false
        }
      if isProven, mode == .emulator || holdsForEveryNumber(in: constraint, operation, value) { return .bool(true) }
    }
    return unknown
  }

  /// Whether queries and rules order all values near this one in the same way. Queries order strings by bytes,
  /// rules by UTF-16 code units; the orders differ for characters from U+D000 on. Queries order NaN before all
  /// numbers.
  private func isOrderShared(_ value: RuleValue) -> Bool {
    switch value {
    case .string(let text): text.allSatisfy { $0 < 0xED }
    case .float(let number): !number.isNaN
    default: true
    }
  }

  /// Evaluates `value in field`.
  func constrained(_ constraints: UnsafeBufferPointer<FieldConstraint>, contains value: RuleValue) -> RuleValue {
    if value.type == .constraint { return unknown }
    let isProven = constraints.contains { $0.relation == .contains && isSameInList($0.value, value) }
    return isProven ? .bool(true) : unknown
  }

  /// Whether every list that the query finds by `held` contains `value` according to the rules.
  private func isSameInList(_ held: RuleValue, _ value: RuleValue) -> Bool {
    // A query for 1 also finds lists with 1.0, which `in` distinguishes from 1.
    if mode == .sound, holdsNumbers(held) { return false }
    if case (.int(let whole), .float(let number)) = (held, value) { return Double(whole) == number }
    return equal(held, value, .strict)
  }

  /// Whether a value of a query is a number or contains one. BSON numbers count if the database has them.
  func holdsNumbers(_ value: RuleValue) -> Bool {
    switch value {
    case .null, .bool, .string, .bytes, .timestamp, .duration, .latlng, .path: return false
    case .list, .encodedList:
      var items = ItemCursor(value, self)
      while let item = items.next() {
        if holdsNumbers(item) { return true }
      }
      return false
    case .map, .encodedMap:
      guard let entries = entries(value) else { return true }
      return isBSONNumber(value) || entries.contains { holdsNumbers($0.value) }
    default: return true
    }
  }

  /// Evaluates `field.hasAny(list)`.
  func constrained(_ field: RuleValue, hasAny list: RuleValue) -> RuleValue {
    guard case .constraint(let constraints) = field else { return unknown }
    var items = ItemCursor(list, self)
    while let item = items.next() {
      if constrained(constraints, contains: item).isTrue { return .bool(true) }
    }
    return mode == .emulator ? .bool(false) : unknown
  }

  /// Evaluates `field is type`.
  func constrained(_ constraints: UnsafeBufferPointer<FieldConstraint>, isType type: RuleType) -> RuleValue {
    if mode == .emulator { return .bool(type == .constraint) }
    for constraint in constraints {
      let known: RuleType
      switch constraint.relation {
      case .contains: known = .list
      case .same, .less, .lessOrEqual, .greater, .greaterOrEqual: known = constraint.value.type
      case .notEqual, .notIn, .exists: continue
      }
      switch (known, type) {
      case (.int, .number), (.float, .number): return .bool(true)
      case (.int, .int), (.int, .float), (.float, .int), (.float, .float): continue
      default: return .bool(known == type)
      }
    }
    return unknown
  }

  /// Evaluates `field in [ … ]`.
  func constrainedMembership() -> RuleValue {
    mode == .emulator ? .bool(false) : unknown
  }
}
