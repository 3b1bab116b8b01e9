/// A pipeline: a source of rows, and stages that each transform the rows of the stage before. Each method returns a new
/// pipeline with one more stage.
///
///     struct Week: Decodable { var week: Date, records: Int }
///     let weeks = try await hearth.pipeline().collection("records")
///       .where("user_id", .equal, user)
///       .aggregate(
///         ["records": .count],
///         by: ["week": .function("timestamp_trunc", .field("at"), .constant("isoweek"))])
///       .sort(.descending("week")).limit(to: 8)
///       .get(as: Week.self).data
///
/// docs/pipelines.md describes the stages.
public struct Pipeline: Sendable, Hashable {
  /// The database.
  public let client: Hearth
  var stages: [PipelineStageCall]

  init(_ client: Hearth, _ source: PipelineStageCall) { (self.client, stages) = (client, [source]) }

  /// Whether both pipelines have the same stages.
  public static func == (a: Pipeline, b: Pipeline) -> Bool { a.stages == b.stages }

  /// Hashes the stages.
  public func hash(into hasher: inout Hasher) { hasher.combine(stages) }

  /// Adds a stage by its name in the API, for stages that have no method here, such as `search`.
  public func stage(
    _ name: String, _ arguments: [RowExpression] = [], options: [String: RowExpression] = [:]
  ) -> Pipeline {
    var pipeline = self
    pipeline.stages.append(PipelineStageCall(name: name, arguments: arguments, options: options))
    return pipeline
  }

  // MARK: - Rows

  /// Keeps the rows for which a condition is true.
  public func `where`(_ condition: RowExpression) -> Pipeline { stage("where", [condition]) }

  /// Keeps the rows whose field compares with a value; see ``RowExpression/comparison(_:_:_:)``.
  public func `where`(_ path: FieldPath, _ comparison: Filter.Comparison, _ value: Value) -> Pipeline {
    self.where(path, comparison, .constant(value))
  }

  /// Keeps the rows whose field compares with a value; see ``RowExpression/comparison(_:_:_:)``.
  public func `where`(_ path: FieldPath, _ comparison: Filter.Comparison, _ value: some ValueConvertible) -> Pipeline {
    self.where(path, comparison, .constant(value))
  }

  /// Keeps the rows whose field compares with an expression.
  public func `where`(_ path: FieldPath, _ comparison: Filter.Comparison, _ value: RowExpression) -> Pipeline {
    self.where(.comparison(.field(path), comparison, value))
  }

  /// Sorts the rows, by the first order, then by the others. Rows without a field come first. A later sort replaces
  /// this one.
  public func sort(_ orders: RowOrder...) -> Pipeline { stage("sort", orders.map(\.argument)) }

  /// Keeps at most the first `count` rows.
  public func limit(to count: Int) -> Pipeline { stage("limit", [.constant(count)]) }

  /// Skips the first `count` rows.
  public func offset(_ count: Int) -> Pipeline { stage("offset", [.constant(count)]) }

  /// Keeps `count` rows at random.
  public func sample(count: Int) -> Pipeline { stage("sample", [.constant(count), .constant("documents")]) }

  /// Keeps each row with a probability from 0 to 1.
  public func sample(part: Double) -> Pipeline { stage("sample", [.constant(part), .constant("percent")]) }

  /// Appends the rows of another pipeline.
  public func union(with other: Pipeline) -> Pipeline { stage("union", [.pipeline(other.stages)]) }

  /// Repeats each row for the elements of an array, each in the field `alias`.
  /// - Parameter index: the field for the position of the element, from 0; `nil` for none.
  public func unnest(_ array: RowExpression, as alias: FieldPath, index: FieldPath? = nil) -> Pipeline {
    stage("unnest", [array, .field(alias)], options: index.map { ["index_field": .field($0)] } ?? [:])
  }

  /// Keeps the rows whose vector is nearest to `vector`, nearest first.
  /// - Parameter limit: the greatest number of rows; `nil` for all.
  /// - Parameter distanceField: the field for the distance; `nil` for none.
  public func findNearest(
    _ path: FieldPath, to vector: VectorValue, limit: Int? = nil, measure: DistanceMeasure = .euclidean,
    distanceField: FieldPath? = nil
  ) -> Pipeline {
    var options: [String: RowExpression] = [:]
    if let limit { options["limit"] = .constant(limit) }
    if let distanceField { options["distance_field"] = .field(distanceField) }
    return stage(
      "find_nearest", [.field(path), .constant(vector), .constant(measure.rawValue.lowercased())], options: options)
  }

  // MARK: - Fields

  /// Replaces the fields of each row by these fields of it. The name of the document is not kept, unless selected.
  public func select(_ paths: FieldPath...) -> Pipeline { stage("select", [.named(paths)]) }

  /// Replaces the fields of each row by computed values.
  public func select(_ fields: [FieldPath: RowExpression]) -> Pipeline { stage("select", [.named(fields)]) }

  /// Adds computed values to each row.
  public func addFields(_ fields: [FieldPath: RowExpression]) -> Pipeline { stage("add_fields", [.named(fields)]) }

  /// Removes fields from each row.
  public func removeFields(_ paths: FieldPath...) -> Pipeline {
    stage("remove_fields", paths.map { .field($0) })
  }

  /// Replaces each row by a map that it contains.
  public func replace(with map: RowExpression) -> Pipeline {
    stage("replace_with", [map, .constant("full_replace")])
  }

  /// Sets variables for each row, which later stages and the pipelines inside them can read.
  public func define(_ variables: [String: RowExpression]) -> Pipeline { stage("let", [.map(variables)]) }

  // MARK: - Groups

  /// Replaces all rows by one with accumulated values.
  public func aggregate(_ accumulators: [FieldPath: RowExpression]) -> Pipeline { aggregate(accumulators, by: [:]) }

  /// Replaces all rows by one for each group, with accumulated values.
  public func aggregate(
    _ accumulators: [FieldPath: RowExpression], by groups: [FieldPath: RowExpression]
  ) -> Pipeline {
    stage("aggregate", [.named(accumulators), .named(groups)])
  }

  /// Replaces all rows by one for each combination of the values of these fields, with accumulated values.
  public func aggregate(
    _ accumulators: [FieldPath: RowExpression], by path: FieldPath, _ more: FieldPath...
  ) -> Pipeline {
    stage("aggregate", [.named(accumulators), .named([path] + more)])
  }

  /// Replaces all rows by one for each combination of the values of these fields.
  public func distinct(_ paths: FieldPath...) -> Pipeline { stage("distinct", [.named(paths)]) }

  /// Replaces all rows by one for each combination of these values.
  public func distinct(_ fields: [FieldPath: RowExpression]) -> Pipeline { stage("distinct", [.named(fields)]) }
}

/// An order of rows.
public struct RowOrder: Sendable, Hashable {
  private let expression: RowExpression
  private let direction: String

  /// From the least value of a field to the greatest.
  public static func ascending(_ path: FieldPath) -> RowOrder { .ascending(.field(path)) }

  /// From the greatest value of a field to the least.
  public static func descending(_ path: FieldPath) -> RowOrder { .descending(.field(path)) }

  /// From the least value of an expression to the greatest.
  public static func ascending(_ expression: RowExpression) -> RowOrder {
    RowOrder(expression: expression, direction: "ascending")
  }

  /// From the greatest value of an expression to the least.
  public static func descending(_ expression: RowExpression) -> RowOrder {
    RowOrder(expression: expression, direction: "descending")
  }

  fileprivate var argument: RowExpression {
    .map(["direction": .constant(direction), "expression": expression])
  }
}

/// The beginning of a pipeline. Its methods select the source of the rows.
public struct PipelineBeginning: Sendable {
  fileprivate let client: Hearth

  /// The documents of a collection.
  public func collection(_ path: String) -> Pipeline { begin("collection", paths: [path]) }

  /// The documents of all collections with this ID, at any depth.
  public func collectionGroup(_ id: String) -> Pipeline {
    Pipeline(client, PipelineStageCall(name: "collection_group", arguments: [.constant(id)], paths: [""]))
  }

  /// All documents of the database.
  public func database() -> Pipeline { begin("database", paths: []) }

  /// These documents, without those that do not exist.
  public func documents(_ references: [DocumentReference]) -> Pipeline {
    begin("documents", paths: references.map(\.path))
  }

  /// Rows with these fields.
  public func literals(_ rows: [[String: RowExpression]]) -> Pipeline {
    Pipeline(client, PipelineStageCall(name: "literals", arguments: rows.map { .map($0) }))
  }

  /// The documents of a collection below the row of the enclosing pipeline, for ``RowExpression/array(of:)`` and
  /// ``RowExpression/scalar(of:)``.
  public func subcollection(_ path: String) -> Pipeline {
    Pipeline(client, PipelineStageCall(name: "subcollection", arguments: [.constant(path)]))
  }

  private func begin(_ name: String, paths: [String]) -> Pipeline {
    let paths = paths.map { "/" + $0.pathParts(omittingEmpty: true).joined(separator: "/") }
    return Pipeline(client, PipelineStageCall(name: name, arguments: [], paths: paths))
  }
}

extension Hearth {
  /// Begins a pipeline.
  public func pipeline() -> PipelineBeginning { PipelineBeginning(client: self) }
}

extension RowExpression {
  fileprivate static func named(_ fields: [FieldPath: RowExpression]) -> RowExpression {
    .map(Dictionary(fields.map { ($0.key.description, $0.value) }) { _, last in last })
  }

  /// Fields with their paths as names.
  fileprivate static func named(_ paths: [FieldPath]) -> RowExpression {
    .map(Dictionary(paths.map { ($0.description, .field($0)) }) { _, last in last })
  }
}
