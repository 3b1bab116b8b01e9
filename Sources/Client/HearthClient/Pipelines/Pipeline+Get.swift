/// A row of a pipeline's results.
public struct ResultRow<T: Decodable & Sendable>: Sendable {
  /// The row as a `T`.
  public let data: T
  /// All fields.
  public let fields: [String: Value]
  /// The document, if the row still has its name.
  public let reference: DocumentReference?
  /// The time at which the document was created, if the row still has it.
  public let createTime: Timestamp?
  /// The time of the last change of the document, if the row still has it.
  public let updateTime: Timestamp?
}

/// The rows of a pipeline at one time.
public struct PipelineResults<T: Decodable & Sendable>: Sendable {
  /// The rows, in the order of the pipeline.
  public let rows: [ResultRow<T>]
  /// The time of the state that was read.
  public let executionTime: Timestamp?

  /// The rows as `T`.
  public var data: [T] { rows.map(\.data) }
}

extension Pipeline {
  /// Runs the pipeline.
  /// - Throws: ``HearthClientError`` if the request fails; its message names the stage if one is invalid.
  ///   `DecodingError` if a row does not match `T`.
  public func get<T: Decodable & Sendable>(
    as type: T.Type = [String: Value].self
  ) async throws -> PipelineResults<T> {
    try await run(as: type, within: nil)
  }

  /// Returns the plan of the pipeline as text. With `analyze`, the server also runs the pipeline, and the text has the
  /// number of rows of each stage.
  /// - Throws: ``HearthClientError`` if the request fails.
  public func explain(analyze: Bool = false) async throws -> String {
    let mode = RowExpression.constant(["explain_options": ["mode": analyze ? "analyze" : "explain"]] as Value)
    let options = mode.json["mapValue"]?["fields"]
    let responses = try await call(options: options, within: nil)
    guard let text = responses.last?["explainStats"]?["data"]?["value"]?.text else {
      throw HearthClientError.unreadable("the response has no explanation")
    }
    return text
  }

  func run<T: Decodable & Sendable>(as type: T.Type, within transaction: String?) async throws -> PipelineResults<T> {
    let responses = try await call(options: nil, within: transaction)
    let rows = try responses.flatMap { $0["results"]?.elements ?? [] }.map { row in
      let fields = try Value.fields(row["fields"], in: client)
      let reference = row["name"]?.text.flatMap { DocumentReference(name: $0, client) }
      return ResultRow<T>(
        data: try DocumentDecoder(reference: reference).decode(T.self, from: .map(fields)), fields: fields,
        reference: reference, createTime: Timestamp(member: row["createTime"]),
        updateTime: Timestamp(member: row["updateTime"]))
    }
    return PipelineResults(rows: rows, executionTime: Timestamp(member: responses.last?["executionTime"]))
  }

  private func call(options: JSON?, within transaction: String?) async throws -> [JSON] {
    try await client.connection.callForElements(
      client.target("", ":executePipeline"),
      .of([
        "structuredPipeline": .of(["pipeline": .of(["stages": .array(stages.map(\.json))]), "options": options]),
        "transaction": transaction.map { .string($0) },
      ]))
  }
}

extension Transaction {
  /// Runs a pipeline that reads documents.
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if a row does not match `T`.
  public func get<T: Decodable & Sendable>(
    _ pipeline: Pipeline, as type: T.Type = [String: Value].self
  ) async throws -> PipelineResults<T> {
    try await pipeline.run(as: type, within: id)
  }
}
