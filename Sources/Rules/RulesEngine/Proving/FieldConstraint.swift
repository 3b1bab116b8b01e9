import DocumentModel
import WireFormat

/// What one filter of a query says about a field whose value it does not fix.
struct FieldConstraint {
  /// How the field's value relates to ``value``.
  let relation: Relation
  let value: RuleValue

  enum Relation {
    case less, lessOrEqual, greater, greaterOrEqual
    case notEqual
    /// The value is a list and holds ``FieldConstraint/value``.
    case contains
    /// The value is none of a list.
    case notIn
    /// The value is the same; of a number it is open whether it is an int or a float.
    case same
    /// There is a value; nothing more is known.
    case exists
  }
}

/// What rules may conclude from constraints (rules-language.md, section 14.2). Whatever does not follow is an error,
/// which denies and which `||` and `&&` may absorb.
///
/// Several filters on one field stand side by side: any of them may prove a condition, none refutes one.
extension Evaluator {
  private var unknown: RuleValue { failure(.unknownByQuery) }

  /// What a field is known to be the same as. Google's engine concludes less from an equality beside other filters;
  /// it has its say in a proof of its own.
  private func soundValue(_ about: UnsafeBufferPointer<FieldConstraint>) -> RuleValue? {
    mode == .sound ? about.first { $0.relation == .same }?.value : nil
  }

  /// `field == value` or `field != value`.
  func constrained(
    _ about: UnsafeBufferPointer<FieldConstraint>, equals value: RuleValue, isNegated: Bool
  ) -> RuleValue {
    if value.type == .constraint || value.type == .any { return unknown }
    if let same = soundValue(about) { return equality(same, value, isNegated: isNegated) }
    let isProven = about.contains { constraint in
      isNegated ? excludes(constraint, value) : constraint.relation == .same && isSame(constraint.value, value)
    }
    return isProven ? .bool(true) : unknown
  }

  /// Whether a value of a query stands for a value of the rule: a float of the query proves nothing about an int of
  /// the rule, as in Google's engine.
  private func isSame(_ held: RuleValue, _ value: RuleValue) -> Bool {
    if case (.float, .int) = (held, value) { return false }
    return equality(held, value, isNegated: false).isTrue
  }

  /// Whether a constraint leaves a value out.
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

  /// Whether a value lies outside a range. Ranges of values that rules do not order say nothing, not even that there
  /// is a value.
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

  /// How a bound of a query lies to a value of the rule, where that lets anything be concluded.
  private func rangeOrder(_ constraint: FieldConstraint, _ value: RuleValue) -> Int? {
    if case (.float, .int) = (constraint.value, value) { return nil }
    if mode == .sound, !isOrderShared(constraint.value) { return nil }
    guard let order = order(constraint.value, value), order != 2 else { return nil }
    return order
  }

  /// `field < value` and the like.
  func constrained(
    _ about: UnsafeBufferPointer<FieldConstraint>, _ operation: Program.Operation, _ value: RuleValue
  ) -> RuleValue {
    if value.type == .constraint { return unknown }
    if let same = soundValue(about) { return arithmetic(operation, same, value) }
    for constraint in about {
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
      if isProven { return .bool(true) }
    }
    return unknown
  }

  /// Whether queries and rules order everything alike around a value. Queries order texts by bytes, rules by UTF-16
  /// code units: around texts with characters from U+D000 on the two differ. Queries put NaN before all numbers.
  private func isOrderShared(_ value: RuleValue) -> Bool {
    switch value {
    case .string(let text): text.allSatisfy { $0 < 0xED }
    case .float(let number): !number.isNaN
    default: true
    }
  }

  /// `value in field`.
  func constrained(_ about: UnsafeBufferPointer<FieldConstraint>, contains value: RuleValue) -> RuleValue {
    if value.type == .constraint { return unknown }
    let isProven = about.contains { $0.relation == .contains && isSameInList($0.value, value) }
    return isProven ? .bool(true) : unknown
  }

  /// Whether a list that holds `held` by the query's lights holds `value` by the rules'.
  private func isSameInList(_ held: RuleValue, _ value: RuleValue) -> Bool {
    // A query for 1 finds lists that hold 1.0, which `in` does not take for 1.
    if mode == .sound, holdsNumbers(held) { return false }
    if case (.int(let whole), .float(let number)) = (held, value) { return Double(whole) == number }
    return equal(held, value, .strict)
  }

  /// Whether a value of a query is a number or holds one.
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
      return entries.contains { holdsNumbers($0.value) }
    default: return true
    }
  }

  /// `field.hasAny(list)`.
  func constrained(_ field: RuleValue, hasAny list: RuleValue) -> RuleValue {
    guard case .constraint(let about) = field else { return unknown }
    var items = ItemCursor(list, self)
    while let item = items.next() {
      if constrained(about, contains: item).isTrue { return .bool(true) }
    }
    return mode == .emulator ? .bool(false) : unknown
  }

  /// `field is type`.
  func constrained(_ about: UnsafeBufferPointer<FieldConstraint>, isType type: RuleType) -> RuleValue {
    if mode == .emulator { return .bool(type == .constraint) }
    for constraint in about {
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

  /// `field in [ … ]`.
  func constrainedMembership() -> RuleValue {
    mode == .emulator ? .bool(false) : unknown
  }
}
