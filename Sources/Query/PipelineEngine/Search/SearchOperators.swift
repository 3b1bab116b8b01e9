import DocumentModel
import KeyEncoding
import PipelineExpressions
import TextAnalysis

/// The matches of a `search` stage, with their scores. An index may have found the rows of its input, which are
/// candidates.
final class MatchOperator: StreamingOperator {
  private let query: TextQuery?
  private let fields: TextFields
  private let condition: Int?
  private let evaluator: StageEvaluator?

  init(
    _ stage: PipelineStage, _ input: RowOperator, _ query: TextQuery?, _ fields: TextFields, condition: Int?,
    _ evaluator: StageEvaluator?
  ) {
    self.query = query
    self.fields = fields
    self.condition = condition
    self.evaluator = evaluator
    super.init(stage, input)
  }

  override var text: String { "matches of \(name)" }

  override func next(_ run: PipelineRun) throws -> RowStep {
    while true {
      let step = try input.step(run)
      guard case .found = step else { return step }
      run.unitsLeft -= query == nil ? 16 : 64 + row.fields.count
      if try matches() { return .found }
      guard run.unitsLeft > 0 else { return .paused }
    }
  }

  private func matches() throws -> Bool {
    row.score = try query.map { try $0.score(row.map, fields) } ?? 1
    guard row.score != nil else { return false }
    guard let condition, let evaluator else { return true }
    evaluator.begin(row)
    return try evaluator.isTrue(condition)
  }
}

/// The best matches of a `search` stage.
final class BestMatchOperator: SortingOperator {
  init(_ stage: PipelineStage, _ input: RowOperator, _ count: Int) { super.init(stage, input, keptMax: count) }

  override var text: String { "best matches of \(name)" }

  override func appendKey(to key: inout [UInt8]) throws -> Bool {
    _ = OrderedCode.encode(.double(-(input.row.score ?? 0)), into: &key, budget: .max)
    return true
  }
}

/// The matches of a `search` stage, those created last first.
final class NewestFirstOperator: SortingOperator {
  override func appendKey(to key: inout [UInt8]) throws -> Bool {
    OrderedCode.append(version: ~(input.row.createTime?.microseconds ?? 0), to: &key)
    return true
  }
}
