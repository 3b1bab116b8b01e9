import DocumentModel

/// Conclusions about the numbers that a filter finds.
///
/// A query compares an int with a float exactly. A rule converts the int to a float first, which rounds beyond 2^53.
/// So a filter can find numbers for which the same comparison of a rule is false: `n < 9007199254740993` finds the
/// float 9007199254740992.0, but the rule compares it with 9007199254740992.0. Each function here determines the
/// numbers that the filter finds, or those that the rule compares as equal, and nothing follows from the operands
/// alone.
///
/// Rules and queries agree for all numbers of which both forms, int and float, are exact.
///
/// In an enterprise database, a filter on numbers also finds the BSON numbers int32 and decimal128. Rules read these as
/// maps, so no comparison with a number holds for them. There such a filter proves only that the field exists.
extension Evaluator {
  private func isNumber(_ value: RuleValue) -> Bool { value.type == .int || value.type == .float }

  /// Compares two numbers as queries do: exactly. Returns `nil` if one is not a number, or if one is NaN.
  private func exactOrder(_ a: RuleValue, _ b: RuleValue) -> Ordering? {
    switch (a, b) {
    case (.int(let x), .int(let y)): Ordering(x, y)
    case (.int(let x), .float(let y)): y.isNaN ? nil : Value.compare(x, y)
    case (.float(let x), .int(let y)): x.isNaN ? nil : Value.compare(y, x).reversed
    case (.float(let x), .float(let y)): x.isNaN || y.isNaN ? nil : Ordering(x, y)
    default: nil
    }
  }

  // MARK: BSON numbers

  /// Whether an equality or a range can find BSON numbers, which rules read as maps, although the operand is one
  /// number. The same applies if the operand is a BSON number, which finds ordinary numbers.
  func findsMaps(_ operand: RuleValue) -> Bool {
    mode == .sound && hasBSONTypes && (isNumber(operand) || isBSONNumber(operand))
  }

  /// Whether a value of a query is a BSON number.
  func isBSONNumber(_ value: RuleValue) -> Bool {
    guard hasBSONTypes, value.type == .map, let entries = entries(value), entries.count == 1 else { return false }
    return switch BSONType(key: entries[0].key) {
    case .int32, .decimal128: true
    default: false
    }
  }

  // MARK: Equality

  /// Returns the number in its other form, a float for an int and an int for a float, if that form is exact. A query
  /// for one form also finds the other.
  func otherForm(of value: RuleValue) -> RuleValue? {
    switch value {
    case .int(let whole): Value.compare(whole, Double(whole)) == .equal ? .float(Double(whole)) : nil
    case .float(let number): Int64(exactly: number).map(RuleValue.int)
    default: nil
    }
  }

  /// Whether no number that a constraint permits equals `value` according to the rules. Returns `true` for values other
  /// than numbers, of which this says nothing.
  func excludesEveryForm(_ constraint: FieldConstraint, _ value: RuleValue) -> Bool {
    guard let equals = numbersEqual(to: value) else { return true }
    return equals.allSatisfy { number in
      switch constraint.relation {
      case .less, .lessOrEqual, .greater, .greaterOrEqual: !finds(constraint, number)
      case .notEqual: exactOrder(constraint.value, number) == .equal
      case .notIn: holdsExactly(constraint.value, number)
      case .same, .contains, .exists: true
      }
    } && (equals.count < 3 || isRange(constraint.relation))
  }

  private func isRange(_ relation: FieldConstraint.Relation) -> Bool {
    switch relation {
    case .less, .lessOrEqual, .greater, .greaterOrEqual: true
    case .notEqual, .notIn, .contains, .same, .exists: false
    }
  }

  /// Whether a range finds a number.
  private func finds(_ range: FieldConstraint, _ number: RuleValue) -> Bool {
    guard let order = exactOrder(number, range.value) else { return false }
    return switch range.relation {
    case .less: order == .less
    case .lessOrEqual: order != .greater
    case .greater: order == .greater
    default: order != .less
    }
  }

  private func holdsExactly(_ list: RuleValue, _ number: RuleValue) -> Bool {
    var items = ItemCursor(list, self)
    while let item = items.next() {
      if exactOrder(item, number) == .equal { return true }
    }
    return false
  }

  /// Returns the float and the ints that equal a number according to the rules, or `nil` if the value is not a number.
  ///
  /// Several ints equal a float beyond 2^53. Of these, the result has the least and the greatest, or slightly lesser
  /// and greater ints.
  private func numbersEqual(to value: RuleValue) -> [RuleValue]? {
    switch value {
    case .int(let whole): return [.float(Double(whole)), value]
    case .float(let number):
      if number.isNaN { return [] }
      if number.magnitude < 0x1p53 { return [value] + (Int64(exactly: number).map { [.int($0)] } ?? []) }
      // The ints between the floats before and after this one.
      let (before, after) = (number.nextDown, number.nextUp)
      if before >= 0x1p63 || after <= -0x1p63 { return [value] }
      let least = before < -0x1p63 ? Int64.min : Int64(before) + 1
      let greatest = after >= 0x1p63 ? Int64.max : Int64(after) - 1
      return [value, .int(least), .int(greatest)]
    default: return nil
    }
  }

  // MARK: Order

  /// Whether a comparison holds, according to the rules, for every number that a range finds. Returns `true` if the
  /// range is not one of numbers, of which this says nothing.
  ///
  /// If a comparison with `<` or `<=` holds for an int, it holds for every lesser int, and so for floats. Therefore the
  /// greatest of each decide, and for `>` and `>=` the least.
  func holdsForEveryNumber(
    in range: FieldConstraint, _ operation: Program.Operation, _ value: RuleValue
  ) -> Bool {
    guard isNumber(range.value), isRange(range.relation) else { return true }
    return [extremeInt(range), extremeFloat(range)].allSatisfy { extreme in
      guard let extreme else { return true }
      return order(extreme, value).map { Self.holds(operation, $0) } ?? false
    }
  }

  /// Returns the float at the limited end of a range, or `nil` if the range finds no float.
  private func extremeFloat(_ range: FieldConstraint) -> RuleValue? {
    let nearest: Double
    switch range.value {
    case .int(let whole): nearest = Double(whole)
    case .float(let number): nearest = number
    default: return nil
    }
    if finds(range, .float(nearest)) { return .float(nearest) }
    let next = isUpper(range) ? nearest.nextDown : nearest.nextUp
    return finds(range, .float(next)) ? .float(next) : nil
  }

  /// Returns the int at the limited end of a range, or `nil` if the range finds no int.
  private func extremeInt(_ range: FieldConstraint) -> RuleValue? {
    let nearest: Int64
    switch range.value {
    case .int(let whole): nearest = whole
    case .float(let number):
      let whole = number.rounded(isUpper(range) ? .down : .up)
      nearest = Int64(exactly: whole) ?? (whole < 0 ? .min : .max)
    default: return nil
    }
    if finds(range, .int(nearest)) { return .int(nearest) }
    let (next, overflow) = nearest.addingReportingOverflow(isUpper(range) ? -1 : 1)
    return !overflow && finds(range, .int(next)) ? .int(next) : nil
  }

  private func isUpper(_ range: FieldConstraint) -> Bool { range.relation == .less || range.relation == .lessOrEqual }
}
