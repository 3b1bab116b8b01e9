import DocumentModel
import PipelineExpressions
import QueryEngine

/// Builds the operators of a pipeline and its nested pipelines.
struct OperatorBuilder {
  private let run: PipelineRun
  /// The number of the next source. Sources have the same numbers as in ``PipelinePlan/sources``.
  private var sources = 0

  init(_ run: PipelineRun) { self.run = run }

  /// Returns the last operator of a pipeline. If it is not nested in another one, threads may divide a large scan.
  mutating func build(_ body: PipelineBody, isOutermost: Bool = false) throws(PipelineError) -> RowOperator {
    var root: RowOperator?
    var plan: SourcePlan?
    for (index, stage) in body.stages.enumerated() {
      if case .source(let source) = stage.operation {
        plan = body.plan ?? SourcePlan(source, body.stages, in: run.database)
        root = makeSource(source, stage, plan, body)
        continue
      }
      guard var input = root else { continue }
      if !stage.subpipelines.isEmpty {
        var roots: [(RowOperator, SubpipelineLookup?)] = []
        for part in stage.subpipelines { roots.append((try build(part.body), try makeLookup(part))) }
        input = SubpipelineOperator(stage, input, roots)
      }
      if let source = input as? QueryOperator, case .filter(let condition, let prefix) = stage.operation,
        let program = stage.program
      {
        source.add(
          condition, of: stage, prefix,
          StageEvaluator(program, run, variableCount: body.variableCount))
        continue
      }
      // The source returns rows in the order of this stage.
      if plan?.orderStage == index { continue }
      let made = try make(stage, input, after: body.stages[(index + 1)...], body)
      if let source = input as? QueryOperator, let consumer = made as? AggregateOperator {
        source.isCounted = consumer.onlyCounts
      }
      if isOutermost, let consumer = made as? AggregateOperator {
        consumer.division = ScanDivision(body, upTo: index)
      }
      root = made
    }
    guard let root else { throw PipelineError("A pipeline must have at least one stage.") }
    return root
  }

  /// Builds the other form of a nested pipeline, if it has one. It reads documents that the nested pipeline may not
  /// read, so it is not used if documents are reviewed.
  private func makeLookup(_ part: Subpipeline) throws(PipelineError) -> SubpipelineLookup? {
    guard !run.isReviewed, let plan = part.lookup else { return nil }
    var builder = OperatorBuilder(run)
    guard let aggregate = try builder.build(plan.body) as? AggregateOperator else { return nil }
    let lookup = try SubpipelineLookup(plan, aggregate)
    run.note(lookup)
    return lookup
  }

  private mutating func makeSource(
    _ source: PipelineSource, _ stage: PipelineStage, _ plan: SourcePlan?, _ body: PipelineBody
  ) -> RowOperator {
    defer { sources += 1 }
    if let plan {
      var subcollection: String?
      if case .subcollection(let path) = source { subcollection = path }
      let root = QueryOperator(stage, plan, subcollection: subcollection, source: sources, body)
      root.needsName = Self.needsName(body.stages.dropFirst())
      return root
    }
    if case .documents(let keys) = source { return DocumentsOperator(stage, keys, source: sources, body) }
    if case .literals(let rows) = source { return LiteralsOperator(stage, rows, run, body) }
    return LiteralsOperator(stage, [], run, body)
  }

  private mutating func make(
    _ stage: PipelineStage, _ input: RowOperator, after rest: ArraySlice<PipelineStage>, _ body: PipelineBody
  ) throws(PipelineError) -> RowOperator {
    let evaluator = stage.program.map { StageEvaluator($0, run, variableCount: body.variableCount) }
    switch stage.operation {
    case .filter(let condition, _):
      guard let evaluator else { return input }
      return FilterOperator(stage, input, condition, evaluator)
    case .select, .addFields, .removeFields, .bind, .replace, .update: return ChangeOperator(stage, input, evaluator)
    case .sort(let terms):
      guard let evaluator else { return input }
      return SortOperator(stage, input, terms, keptMax: Self.keptMax(rest), evaluator)
    case .limit(let count): return CountOperator(stage, input, skipped: 0, returnedMax: count)
    case .offset(let count): return CountOperator(stage, input, skipped: count, returnedMax: .max)
    case .aggregate(let grouping):
      return AggregateOperator(stage, input, grouping, evaluator, outerCount: body.outerVariableCount)
    case .unnest(let expression, let alias, let index):
      guard let evaluator else { return input }
      let unnest = UnnestOperator(
        stage, input, expression, try FieldTree([alias] + (index.map { [$0] } ?? [])), hasIndex: index != nil,
        evaluator)
      if let index { unnest.indexOnly = try FieldTree([index]) }
      return unnest
    case .sampleCount(let count): return SampleOperator(stage, input, count)
    case .samplePart(let part): return PartOperator(stage, input, part)
    case .union(let other): return UnionOperator(stage, input, try build(other))
    case .nearest(let search):
      guard let evaluator else { return input }
      let tree = try search.distanceField.map { (path) throws(PipelineError) in try FieldTree([path]) }
      return NearestOperator(stage, input, search, tree: tree, evaluator)
    case .search(let plan): return try search(plan, stage, input, body, evaluator)
    case .source, .delete: return input
    }
  }

  private func search(
    _ plan: SearchPlan, _ stage: PipelineStage, _ input: RowOperator, _ body: PipelineBody,
    _ evaluator: StageEvaluator?
  ) throws(PipelineError) -> RowOperator {
    let scope = SearchScope(plan.language, of: body, run.indexes)
    let query = try plan.text.map { (text) throws(PipelineError) in try TextQuery(text, scope.language) }
    if let query, let index = scope.index { (input as? QueryOperator)?.terms = TextTerms(query.terms, in: index) }
    var root: RowOperator = MatchOperator(
      stage, input, query, scope.fields, condition: plan.condition, evaluator)
    if let depth = plan.depth { root = BestMatchOperator(stage, root, depth) }
    let keptMax = plan.limit.map { min($0, .max - plan.offset) + plan.offset }
    if plan.terms.isEmpty {
      root = NewestFirstOperator(stage, root, keptMax: keptMax)
    } else if let evaluator {
      root = SortOperator(stage, root, plan.terms, keptMax: keptMax, evaluator)
    }
    if plan.offset > 0 || plan.limit != nil {
      root = CountOperator(stage, root, skipped: plan.offset, returnedMax: plan.limit ?? .max)
    }
    return plan.added == nil ? root : ChangeOperator(stage, root, evaluator)
  }

  /// Whether stages use the names of rows, or return them.
  private static func needsName(_ stages: ArraySlice<PipelineStage>) -> Bool {
    for stage in stages {
      if !stage.subpipelines.isEmpty || stage.program.map({ $0.usesName || $0.usesWholeRow }) == true { return true }
      switch stage.operation {
      case .aggregate: return false
      case .filter, .select, .addFields, .removeFields, .bind, .sort, .limit, .offset, .samplePart: continue
      default: return true
      }
    }
    return true
  }

  /// The number of rows that the limits directly after a sort let through, or `nil` without a limit.
  private static func keptMax(_ rest: ArraySlice<PipelineStage>) -> Int? {
    var skipped = 0
    for stage in rest {
      switch stage.operation {
      case .offset(let count):
        let (sum, overflow) = skipped.addingReportingOverflow(count)
        if overflow { return nil }
        skipped = sum
      case .limit(let count):
        let (sum, overflow) = skipped.addingReportingOverflow(count)
        return overflow ? nil : sum
      case .select, .addFields, .removeFields, .bind: continue
      default: return nil
      }
    }
    return nil
  }
}
