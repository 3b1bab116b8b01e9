/// A value that a pipeline computes for each row: a field, a constant, a variable, or a function of others.
///
///     RowExpression.function("timestamp_trunc", .field("at"), .constant("week"))
///     RowExpression.field("price").multiplied(by: .field("count"))
///
/// ``function(_:_:)`` calls any function of the server by its name in the API. The methods of this type are shorter
/// forms of the frequent ones.
public struct RowExpression: Sendable, Hashable {
  private indirect enum Kind: Sendable, Hashable {
    case field(FieldPath)
    case constant(Value)
    case variable(String)
    case function(String, [RowExpression])
    case map([String: RowExpression])
    case pipeline([PipelineStageCall])
  }

  private let kind: Kind

  /// The value of a field of the row, which may be absent.
  public static func field(_ path: FieldPath) -> RowExpression { RowExpression(kind: .field(path)) }

  /// A value that is the same for every row.
  public static func constant(_ value: Value) -> RowExpression { RowExpression(kind: .constant(value)) }

  /// A value that is the same for every row.
  public static func constant(_ value: some ValueConvertible) -> RowExpression {
    RowExpression(kind: .constant(value.documentValue))
  }

  /// A variable that ``Pipeline/define(_:)`` has set.
  public static func variable(_ name: String) -> RowExpression { RowExpression(kind: .variable(name)) }

  /// A function, by its name in the API, such as `to_lower`.
  public static func function(_ name: String, _ arguments: RowExpression...) -> RowExpression {
    RowExpression(kind: .function(name, arguments))
  }

  /// A function, by its name in the API.
  public static func function(_ name: String, _ arguments: [RowExpression]) -> RowExpression {
    RowExpression(kind: .function(name, arguments))
  }

  /// An array of computed values.
  public static func array(_ elements: [RowExpression]) -> RowExpression { .function("array", elements) }

  /// A map of computed values.
  public static func map(_ fields: [String: RowExpression]) -> RowExpression { RowExpression(kind: .map(fields)) }

  /// The rows of another pipeline as an array, for each row of this one. A row with one field is the value of the
  /// field.
  public static func array(of pipeline: Pipeline) -> RowExpression { .function("array", .pipeline(pipeline.stages)) }

  /// The only row of another pipeline, for each row of this one; null if it has none. A row with one field is the
  /// value of the field.
  public static func scalar(of pipeline: Pipeline) -> RowExpression { .function("scalar", .pipeline(pipeline.stages)) }

  static func pipeline(_ stages: [PipelineStageCall]) -> RowExpression { RowExpression(kind: .pipeline(stages)) }

  // MARK: - Conditions

  /// Compares two values. Unlike a query, a pipeline finds rows without the field with ``Filter/Comparison/notEqual``
  /// and ``Filter/Comparison/isNotIn``.
  public static func comparison(
    _ left: RowExpression, _ comparison: Filter.Comparison, _ right: RowExpression
  ) -> RowExpression {
    .function(comparison.functionName, left, right)
  }

  /// Whether all conditions are true.
  public static func and(_ conditions: [RowExpression]) -> RowExpression { .function("and", conditions) }

  /// Whether at least one condition is true.
  public static func or(_ conditions: [RowExpression]) -> RowExpression { .function("or", conditions) }

  /// Whether a condition is false.
  public static func not(_ condition: RowExpression) -> RowExpression { .function("not", condition) }

  /// Whether the row has a field.
  public static func exists(_ path: FieldPath) -> RowExpression { .function("exists", .field(path)) }

  // MARK: - Numbers

  /// The sum of two values.
  public func adding(_ other: RowExpression) -> RowExpression { .function("add", self, other) }

  /// The difference of two values.
  public func subtracting(_ other: RowExpression) -> RowExpression { .function("subtract", self, other) }

  /// The product of two values.
  public func multiplied(by other: RowExpression) -> RowExpression { .function("multiply", self, other) }

  /// The quotient of two values. The quotient of integers is an integer.
  public func divided(by other: RowExpression) -> RowExpression { .function("divide", self, other) }

  // MARK: - Accumulators

  /// The number of rows of a group.
  public static let count = RowExpression.function("count")

  /// The sum of a field's numbers in a group.
  public static func sum(_ path: FieldPath) -> RowExpression { .function("sum", .field(path)) }

  /// The average of a field's numbers in a group; null without numbers.
  public static func average(_ path: FieldPath) -> RowExpression { .function("average", .field(path)) }

  /// The least value of a field in a group.
  public static func minimum(_ path: FieldPath) -> RowExpression { .function("minimum", .field(path)) }

  /// The greatest value of a field in a group.
  public static func maximum(_ path: FieldPath) -> RowExpression { .function("maximum", .field(path)) }

  /// The number of different values of a field in a group.
  public static func countDistinct(_ path: FieldPath) -> RowExpression { .function("count_distinct", .field(path)) }

  // MARK: - The form of the API

  var json: JSON {
    switch kind {
    case .field(let path): .of(["fieldReferenceValue": .string(path.description)])
    case .constant(let value): value.json
    case .variable(let name): .of(["variableReferenceValue": .string(name)])
    case .function(let name, let arguments):
      .of(["functionValue": .of(["name": .string(name), "args": .array(arguments.map(\.json))])])
    case .map(let fields):
      .of(["mapValue": .of(["fields": .object(fields.sorted { $0.key < $1.key }.map { .init($0.key, $0.value.json) })])]
      )
    case .pipeline(let stages): .of(["pipelineValue": .of(["stages": .array(stages.map(\.json))])])
    }
  }
}

/// A stage as the API has it: a name, arguments and options.
struct PipelineStageCall: Sendable, Hashable {
  var name: String
  var arguments: [RowExpression]
  var options: [String: RowExpression] = [:]
  /// The path of a source, or the paths of several documents, which precede the arguments.
  var paths: [String] = []

  var json: JSON {
    let paths = paths.map { JSON.of(["referenceValue": .string($0)]) }
    return .of([
      "name": .string(name), "args": .array(paths + arguments.map(\.json)),
      "options": options.isEmpty
        ? nil : .object(options.sorted { $0.key < $1.key }.map { .init($0.key, $0.value.json) }),
    ])
  }
}

extension Filter.Comparison {
  /// The function that compares in a pipeline.
  fileprivate var functionName: String {
    switch self {
    case .lessThan: "less_than"
    case .lessThanOrEqual: "less_than_or_equal"
    case .greaterThan: "greater_than"
    case .greaterThanOrEqual: "greater_than_or_equal"
    case .equal: "equal"
    case .notEqual: "not_equal"
    case .arrayContains: "array_contains"
    case .arrayContainsAny: "array_contains_any"
    case .isIn: "equal_any"
    case .isNotIn: "not_equal_any"
    }
  }
}
