/// A condition on documents.
///
///     hearth.collection("users").where(.or([.field("age", .lessThan, 18), .field("role", .equal, role)]))
public struct Filter: Sendable, Hashable {
  /// How a field is compared. A document without the field never matches, not even with ``notEqual``.
  public enum Comparison: String, Sendable {
    /// The field is less than a value of the same type.
    case lessThan = "LESS_THAN"
    /// The field is less than or equal to a value of the same type.
    case lessThanOrEqual = "LESS_THAN_OR_EQUAL"
    /// The field is greater than a value of the same type.
    case greaterThan = "GREATER_THAN"
    /// The field is greater than or equal to a value of the same type.
    case greaterThanOrEqual = "GREATER_THAN_OR_EQUAL"
    /// The field equals a value. Null and NaN equal themselves.
    case equal = "EQUAL"
    /// The field is neither equal to a value nor null.
    case notEqual = "NOT_EQUAL"
    /// The field is an array that contains this element.
    case arrayContains = "ARRAY_CONTAINS"
    /// The field is an array that contains one of these elements, up to 30.
    case arrayContainsAny = "ARRAY_CONTAINS_ANY"
    /// The field is one of these values, up to 30.
    case isIn = "IN"
    /// The field differs from all of these values, up to 10, and from null.
    case isNotIn = "NOT_IN"
  }

  private enum Condition: Sendable, Hashable {
    case comparison(FieldPath, Comparison, Value)
    case and([Filter])
    case or([Filter])
  }

  private let condition: Condition

  /// Compares a field with a value.
  public static func field(_ path: FieldPath, _ comparison: Comparison, _ value: Value) -> Filter {
    Filter(condition: .comparison(path, comparison, value))
  }

  /// Compares a field with a value.
  public static func field(_ path: FieldPath, _ comparison: Comparison, _ value: some ValueConvertible) -> Filter {
    Filter(condition: .comparison(path, comparison, value.documentValue))
  }

  /// All filters must match.
  public static func and(_ filters: [Filter]) -> Filter { Filter(condition: .and(filters)) }

  /// At least one filter must match.
  public static func or(_ filters: [Filter]) -> Filter { Filter(condition: .or(filters)) }

  var json: JSON {
    switch condition {
    case .and(let filters): Self.json("AND", filters)
    case .or(let filters): Self.json("OR", filters)
    case .comparison(let path, let comparison, let value):
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

  /// The fields of inequalities. Results are ordered by them.
  var inequalityPaths: [FieldPath] {
    switch condition {
    case .and(let filters), .or(let filters): filters.flatMap(\.inequalityPaths)
    case .comparison(let path, let comparison, _):
      switch comparison {
      case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .isNotIn: [path]
      case .equal, .arrayContains, .arrayContainsAny, .isIn: []
      }
    }
  }

  private static func json(_ operation: String, _ filters: [Filter]) -> JSON {
    .of(["compositeFilter": .of(["op": .string(operation), "filters": .array(filters.map(\.json))])])
  }

  /// Returns the unary operator for a comparison with null or NaN, or `nil` for other values.
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
