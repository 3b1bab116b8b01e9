import DocumentModel

/// The part of the condition of a `where` stage that a query over indexes can use.
///
/// The query finds at least the rows for which the condition is true. The stage still evaluates the condition, so that
/// only rows for which it is true pass. Source: pipelines.md, section 6.3.
struct PrefixCondition: Sendable {
  /// A filter of a query, whose operands can be variables.
  indirect enum Filter: Sendable {
    case field(FieldPath, FieldOperator, Operand)
    case and([Filter])
    case or([Filter])
  }

  enum Operand: Sendable {
    case constant(Value)
    /// The place of a variable in the enclosing row.
    case variable(Int)
  }

  /// Conditions that hold for every row that passes, or `nil` if none can be used.
  let filter: Filter?
  /// The fields that every row that passes has.
  let requiredFields: Set<FieldPath>
  /// The fields of calls of `exists` that must be true for the condition to be true. No filter of a query expresses them.
  let existingFields: [FieldPath]
  /// Whether the filter lets exactly the rows pass for which the condition is true, if these have ``existingFields`` and
  /// all its variables have comparable values.
  let isExact: Bool

  /// Plans a condition. Of all conditions of a request, at most `requestConditionsLeft` more are considered.
  init(_ condition: PipelineArgument, variables: [String: Int], requestConditionsLeft: inout Int) {
    let conditionsMax = min(PipelineLimits.plannedConditionsMax, requestConditionsLeft)
    var conditionsLeft = conditionsMax
    defer { requestConditionsLeft -= conditionsMax - conditionsLeft }
    filter = Self.filter(condition, variables, &conditionsLeft)
    requiredFields = Self.requiredFields(condition)
    existingFields = Self.existingFields(condition)
    isExact = conditionsLeft > 0 && Self.isExact(condition, variables, isRequired: true)
  }

  /// `isRequired` is whether the whole condition is true only if this part is.
  private static func isExact(
    _ condition: PipelineArgument, _ variables: [String: Int], isRequired: Bool
  ) -> Bool {
    guard case .function(let call) = condition else { return false }
    if call.name == "and" { return call.arguments.allSatisfy { isExact($0, variables, isRequired: isRequired) } }
    if call.name == "or" { return call.arguments.allSatisfy { isExact($0, variables, isRequired: false) } }
    if isRequired, existingField(call) != nil { return true }
    guard call.arguments.count == 2, let path = field(call.arguments[0]) ?? field(call.arguments[1]) else {
      return false
    }
    // A name can belong to another database, and a list has its own rules for elements.
    return !path.isDocumentName && comparisons[call.name] != nil
      && comparison(call.name, call.arguments[0], call.arguments[1], variables) != nil
  }

  // MARK: Filters

  private static let comparisons: [String: FieldOperator] = [
    "equal": .equal, "eq": .equal, "less_than": .lessThan, "lt": .lessThan, "less_than_or_equal": .lessThanOrEqual,
    "lte": .lessThanOrEqual, "greater_than": .greaterThan, "gt": .greaterThan,
    "greater_than_or_equal": .greaterThanOrEqual, "gte": .greaterThanOrEqual,
  ]

  private static func filter(
    _ condition: PipelineArgument, _ variables: [String: Int], _ conditionsLeft: inout Int
  ) -> Filter? {
    guard case .function(let call) = condition, conditionsLeft > 0 else { return nil }
    conditionsLeft -= 1
    switch call.name {
    case "and", "or":
      var parts: [Filter] = []
      for argument in call.arguments {
        if let part = filter(argument, variables, &conditionsLeft) {
          parts.append(part)
        } else if call.name == "or" {
          return nil
        }
      }
      return parts.isEmpty ? nil : call.name == "and" ? .and(parts) : .or(parts)
    default:
      guard call.arguments.count == 2 else { return nil }
      return comparison(call.name, call.arguments[0], call.arguments[1], variables)
    }
  }

  /// Returns the filter of a comparison of a field with a constant; `nil` for any other call.
  static func comparison(of call: PipelineCall) -> Filter? {
    guard call.arguments.count == 2 else { return nil }
    return comparison(call.name, call.arguments[0], call.arguments[1], [:])
  }

  private static func comparison(
    _ name: String, _ left: PipelineArgument, _ right: PipelineArgument, _ variables: [String: Int]
  ) -> Filter? {
    if let op = comparisons[name] {
      if let path = field(left), let operand = operand(right, variables) { return .field(path, op, operand) }
      if let path = field(right), let operand = operand(left, variables) { return .field(path, op.mirrored, operand) }
      return nil
    }
    guard let path = field(left) else { return nil }
    switch name {
    case "array_contains":
      guard !path.isDocumentName, let operand = operand(right, variables) else { return nil }
      return .field(path, .arrayContains, operand)
    case "equal_any", "eq_any", "array_contains_any":
      guard let elements = elements(right), name != "array_contains_any" || !path.isDocumentName else { return nil }
      return .field(path, name == "array_contains_any" ? .arrayContainsAny : .in, .constant(.array(elements)))
    default: return nil
    }
  }

  /// Returns the path if the argument is a field of the document or its name.
  static func field(_ argument: PipelineArgument) -> FieldPath? {
    guard case .field(let text) = argument, let path = try? StageArguments.path(text) else { return nil }
    return path.isDocumentName || !path.segments.contains { ResourceID.isReserved($0.utf8) } ? path : nil
  }

  private static func operand(_ argument: PipelineArgument, _ variables: [String: Int]) -> Operand? {
    switch argument {
    case .constant(let value): isComparable(value) ? .constant(value) : nil
    case .variable(let name): variables[name].map(Operand.variable)
    default: nil
    }
  }

  /// Returns the constants of a list, which clients send as an array or as a call of `array`.
  private static func elements(_ argument: PipelineArgument) -> [Value]? {
    var values: [Value] = []
    switch argument {
    case .constant(.array(let elements)): values = elements
    case .function(let call) where call.name == "array":
      values = call.arguments.compactMap(\.constant)
      guard values.count == call.arguments.count else { return nil }
    default: return nil
    }
    guard !values.isEmpty, values.count <= PipelineLimits.plannedElementsMax else { return nil }
    return values.allSatisfy(isComparable) ? values : nil
  }

  /// Whether queries compare a value as pipelines do. In queries, null and NaN have operators of their own.
  static func isComparable(_ value: Value) -> Bool {
    switch value {
    case .boolean, .integer, .timestamp, .string, .bytes, .reference, .geoPoint: true
    case .double(let number): !number.isNaN
    case .null, .array, .map: false
    }
  }

  // MARK: Required fields

  /// Returns the field of a call of `exists`. Every document has a name.
  private static func existingField(_ call: PipelineCall) -> FieldPath? {
    guard call.name == "exists", call.arguments.count == 1, let path = field(call.arguments[0]) else { return nil }
    return path.isDocumentName ? nil : path
  }

  private static func existingFields(_ condition: PipelineArgument) -> [FieldPath] {
    guard case .function(let call) = condition else { return [] }
    if call.name == "and" { return call.arguments.flatMap(existingFields) }
    return [existingField(call)].compactMap(\.self)
  }

  private static func requiredFields(_ condition: PipelineArgument) -> Set<FieldPath> {
    guard case .function(let call) = condition else { return [] }
    if call.name == "and" {
      var fields: Set<FieldPath> = []
      var rest = call.arguments
      while let part = rest.popLast() {
        if case .function(let inner) = part, inner.name == "and" {
          rest += inner.arguments
        } else {
          fields.formUnion(requiredFields(part))
        }
      }
      return fields
    }
    if call.name == "exists", call.arguments.count == 1 { return Set([field(call.arguments[0])].compactMap(\.self)) }
    guard call.arguments.count == 2, comparisons[call.name] != nil || call.name == "array_contains" else { return [] }
    let (left, right) = (call.arguments[0], call.arguments[1])
    if let path = field(left), let value = right.constant, isComparable(value) { return [path] }
    if let path = field(right), let value = left.constant, isComparable(value) { return [path] }
    return []
  }
}

/// The work that the plans of all sources of a request may still take.
final class PlanningWork {
  var conditionsLeft = PipelineLimits.requestConditionsMax
}

extension FieldOperator {
  /// The operator with its operands exchanged.
  fileprivate var mirrored: FieldOperator {
    switch self {
    case .lessThan: .greaterThan
    case .lessThanOrEqual: .greaterThanOrEqual
    case .greaterThan: .lessThan
    case .greaterThanOrEqual: .lessThanOrEqual
    default: self
    }
  }
}

extension PrefixCondition.Filter {
  /// The filters of which all must hold.
  var conjuncts: [PrefixCondition.Filter] {
    if case .and(let filters) = self { filters.flatMap(\.conjuncts) } else { [self] }
  }

  /// Whether every variable has a comparable value.
  func isComplete(_ value: (Int) -> Value?) -> Bool {
    switch self {
    case .field(_, _, .constant): true
    case .field(_, _, .variable(let place)): value(place).map(PrefixCondition.isComparable) ?? false
    case .and(let filters), .or(let filters): filters.allSatisfy { $0.isComplete(value) }
    }
  }

  /// Returns the filter with the values of variables. A condition whose variable has no comparable value is left out,
  /// which lets more rows pass; so is every condition with a variable if `value` returns `nil`.
  func filter(_ value: (Int) -> Value?) -> QueryFilter? {
    switch self {
    case .field(let path, let op, .constant(let operand)): return .field(path, op, operand)
    case .field(let path, let op, .variable(let place)):
      guard let operand = value(place), PrefixCondition.isComparable(operand) else { return nil }
      return .field(path, op, operand)
    case .and(let filters):
      let parts = filters.compactMap { $0.filter(value) }
      return parts.isEmpty ? nil : parts.count == 1 ? parts[0] : .and(parts)
    case .or(let filters):
      let parts = filters.compactMap { $0.filter(value) }
      return parts.count == filters.count ? .or(parts) : nil
    }
  }
}
