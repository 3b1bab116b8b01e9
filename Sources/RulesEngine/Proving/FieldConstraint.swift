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
extension Evaluator {
  private var unknown: RuleValue { failure(.unknownByQuery) }

  /// What a field is known to be the same as, where that says something about a value of the rule: beside other filters
  /// a float of the query proves nothing about an int of the rule, as in Google's engine.
  private func sameValue(_ about: UnsafeBufferPointer<FieldConstraint>, for value: RuleValue) -> RuleValue? {
    guard let same = about.first(where: { $0.relation == .same })?.value else { return nil }
    if about.count > 1, case (.float, .int) = (same, value) { return nil }
    return same
  }

  /// `field == value` or `field != value`.
  func constrained(
    _ about: UnsafeBufferPointer<FieldConstraint>, equals value: RuleValue, isNegated: Bool
  ) -> RuleValue {
    if value.type == .constraint || value.type == .any { return unknown }
    if let same = sameValue(about, for: value) { return equality(same, value, isNegated: isNegated) }
    guard isNegated else { return unknown }
    for constraint in about {
      switch constraint.relation {
      case .notEqual where equality(constraint.value, value, isNegated: false).isTrue: return .bool(true)
      case .notIn where isIn(value, constraint.value, .strict): return .bool(true)
      case .less, .lessOrEqual, .greater, .greaterOrEqual:
        if excludes(constraint, value) { return .bool(true) }
      default: break
      }
    }
    if case .null = value { return .bool(true) }
    return unknown
  }

  /// Whether a range leaves a value out.
  private func excludes(_ constraint: FieldConstraint, _ value: RuleValue) -> Bool {
    if mode == .sound, !isOrderShared(constraint.value) { return false }
    guard let order = order(constraint.value, value), order != 2 else { return false }
    return switch constraint.relation {
    case .greater: order >= 0
    case .greaterOrEqual: order > 0
    case .less: order <= 0
    case .lessOrEqual: order < 0
    default: false
    }
  }

  /// `field < value` and the like.
  func constrained(
    _ about: UnsafeBufferPointer<FieldConstraint>, _ operation: Program.Operation, _ value: RuleValue
  ) -> RuleValue {
    if value.type == .constraint { return unknown }
    if let same = sameValue(about, for: value) { return arithmetic(operation, same, value) }
    for constraint in about {
      // A float of the query does not prove anything about an int of the rule, as in Google's engine.
      if case .float = constraint.value, case .int = value { continue }
      if mode == .sound, !isOrderShared(constraint.value) { continue }
      guard let order = order(constraint.value, value), order != 2 else { continue }
      let isProven =
        switch (constraint.relation, operation) {
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
    return unknown
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
