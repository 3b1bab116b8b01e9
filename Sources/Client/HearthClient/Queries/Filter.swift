/// A condition on documents.
///
///     hearth.collection("users").where(.or([.field("age", .lessThan, 18), .field("role", .equal, "guest")]))
public indirect enum Filter: Sendable, Hashable {
  /// How a field is compared. A document without the field is never found, not even by ``notEqual``.
  public enum Comparison: String, Sendable {
    /// Less than a value of the same kind.
    case lessThan = "LESS_THAN"
    /// Less than a value of the same kind, or equal to it.
    case lessThanOrEqual = "LESS_THAN_OR_EQUAL"
    /// Greater than a value of the same kind.
    case greaterThan = "GREATER_THAN"
    /// Greater than a value of the same kind, or equal to it.
    case greaterThanOrEqual = "GREATER_THAN_OR_EQUAL"
    /// Equal to a value; null and NaN are equal to themselves here.
    case equal = "EQUAL"
    /// Neither equal to a value nor null.
    case notEqual = "NOT_EQUAL"
    /// An array that has this element.
    case arrayContains = "ARRAY_CONTAINS"
    /// An array that has one of these elements, up to 30.
    case arrayContainsAny = "ARRAY_CONTAINS_ANY"
    /// One of these values, up to 30.
    case isIn = "IN"
    /// None of these values, up to 10, nor null.
    case isNotIn = "NOT_IN"
  }

  /// A field compared with a value.
  case field(FieldPath, Comparison, Value)
  /// All of these.
  case and([Filter])
  /// At least one of these.
  case or([Filter])

  var json: JSON {
    switch self {
    case .and(let filters): Self.json("AND", filters)
    case .or(let filters): Self.json("OR", filters)
    case .field(let path, let comparison, let value):
      if let unary = Self.unary(comparison, value) {
        .of(["unaryFilter": .of(["field": path.reference, "op": .string(unary)])])
      } else {
        .of([
          "fieldFilter": .of([
            "field": path.reference, "op": .string(comparison.rawValue), "value": value.json,
          ])
        ])
      }
    }
  }

  /// The fields by which results are ordered because they are compared so.
  var inequalityPaths: [FieldPath] {
    switch self {
    case .and(let filters), .or(let filters): filters.flatMap(\.inequalityPaths)
    case .field(let path, let comparison, _):
      switch comparison {
      case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .isNotIn: [path]
      case .equal, .arrayContains, .arrayContainsAny, .isIn: []
      }
    }
  }

  private static func json(_ operation: String, _ filters: [Filter]) -> JSON {
    .of(["compositeFilter": .of(["op": .string(operation), "filters": .array(filters.map(\.json))])])
  }

  /// The operator without an operand that stands for a comparison with null or NaN.
  private static func unary(_ comparison: Comparison, _ value: Value) -> String? {
    let isNaN = if case .double(let number) = value { number.isNaN } else { false }
    guard isNaN || value == .null else { return nil }
    return switch comparison {
    case .equal: isNaN ? "IS_NAN" : "IS_NULL"
    case .notEqual: isNaN ? "IS_NOT_NAN" : "IS_NOT_NULL"
    default: nil
    }
  }
}
