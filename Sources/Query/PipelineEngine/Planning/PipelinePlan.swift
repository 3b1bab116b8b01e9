package import DocumentModel

/// A checked pipeline, ready to run on any snapshot.
package struct PipelinePlan: Sendable {
  /// The input of a stage, in the form that rules authorize. Its number is its place in ``PipelinePlan/sources``.
  package enum Source: Sendable {
    /// The documents that a query finds. The filter contains the conditions that every row meets before the first stage
    /// that changes fields.
    case query(Query)
    /// Documents by name, which may not exist.
    case documents([DocumentKey])
    /// Rows from the request.
    case literals
  }

  /// The use of the rows by the last stage.
  package enum Outcome: Sendable {
    case results
    case updates
    case deletes
  }

  /// The sources of the pipeline, then of those inside it, in the order in which their operators are built.
  package let sources: [Source]
  package let outcome: Outcome
  package let options: PipelineOptions
  let body: PipelineBody

  /// Checks a pipeline.
  /// - Throws: ``PipelineError`` for the first error, with the number of its stage.
  package init(_ pipeline: StructuredPipeline, in database: DatabaseID) throws(PipelineError) {
    options = try PipelineOptions(pipeline.options)
    body = try PipelineParser.parse(pipeline.stages, in: database)
    var sources: [Source] = []
    Self.collect(body, &sources)
    self.sources = sources
    switch body.stages.last?.operation {
    case .update: outcome = .updates
    case .delete: outcome = .deletes
    default: outcome = .results
    }
  }

  private init(_ body: PipelineBody, _ sources: [Source], _ plan: PipelinePlan) {
    self.body = body
    self.sources = sources
    outcome = plan.outcome
    options = plan.options
  }

  /// Returns the plan by which a pipeline that writes evaluates documents again, because they changed after it had read
  /// them: its stages over these documents, without those that order and count rows.
  package func again(over keys: [DocumentKey]) -> PipelinePlan {
    var body = body
    body.plan = nil
    body.stages[0].operation = .source(.documents(keys))
    body.stages.removeAll { stage in
      switch stage.operation {
      case .sort, .limit, .offset: true
      default: false
      }
    }
    return PipelinePlan(body, [.documents(keys)], self)
  }

  /// Returns the reason why security rules cannot decide about the pipeline, and therefore deny it; `nil` if they can
  /// (pipelines.md, section 7). They cannot decide about writes, about rows from the request alone, and about documents
  /// by name in the past.
  package func undecidable(inPast isInPast: Bool) -> String? {
    guard case .results = outcome else { return "Security rules do not allow pipelines that write documents." }
    var reads = false
    for source in sources {
      switch source {
      case .query: reads = true
      case .documents:
        reads = true
        if isInPast { return "Security rules do not allow a pipeline to read documents in the past." }
      case .literals: break
      }
    }
    return reads ? nil : "Security rules cannot decide about a pipeline that reads no documents."
  }

  private static func collect(_ body: PipelineBody, _ sources: inout [Source]) {
    for stage in body.stages {
      for part in stage.subpipelines where stage.number > 1 { collect(part.body, &sources) }
      switch stage.operation {
      case .source(let source): sources.append(authorized(source, body.plan))
      case .union(let other): collect(other, &sources)
      default: break
      }
    }
  }

  private static func authorized(_ source: PipelineSource, _ plan: SourcePlan?) -> Source {
    switch source {
    case .documents(let keys): .documents(keys)
    case .literals: .literals
    case .query, .subcollection:
      .query(plan?.provableQuery ?? Query(collectionID: nil))
    }
  }
}

/// The options of a whole pipeline (pipelines.md, section 1.3).
package struct PipelineOptions: Sendable {
  /// The requested explanation, or `nil` for results only.
  package private(set) var explain: ExplainMode?
  /// Whether the explanation is JSON, not text.
  package private(set) var explainsInJSON = false
  /// The bytes that the pipeline may hold in memory, if the client sets a limit.
  package private(set) var heldBytesMax: Int?

  init(_ options: [PipelineArgument.Entry]) throws(PipelineError) {
    for option in options {
      switch (option.key, option.value.constant) {
      case ("explain_options", .map(let map)?): try setExplain(map)
      case ("index_mode", .string?): break
      case ("memory_limit", .integer(let bytes)?): heldBytesMax = Int(clamping: bytes)
      case ("explain_options", _), ("index_mode", _), ("memory_limit", _):
        throw PipelineError("The value of the option \"\(option.key)\" has the wrong type.")
      default: throw PipelineError("Unknown option \"\(option.key)\".")
      }
    }
  }

  private mutating func setExplain(_ map: MapValue) throws(PipelineError) {
    for (key, value) in map.entries {
      switch (key, value) {
      case ("mode", .string("execute")): explain = nil
      case ("mode", .string("explain")): explain = .plan
      case ("mode", .string("analyze")): explain = .analyze
      case ("output_format", .string("text")): explainsInJSON = false
      case ("output_format", .string("json")): explainsInJSON = true
      default: throw PipelineError("explain_options: the member \"\(key)\" or its value is unknown.")
      }
    }
  }
}
