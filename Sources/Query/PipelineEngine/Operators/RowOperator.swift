import DocumentModel
import QueryEngine

/// The outcome of one step of an operator.
enum RowStep {
  /// The operator is at a row.
  case found
  /// The slice has used up its units, or the pipeline waits. The next slice continues from here.
  case paused
  /// No rows are left.
  case end
}

/// An operator of a running pipeline: it produces rows, mostly from those of another operator.
///
/// Rows are pulled one by one. An operator that handles one row at a time changes the row of its input in place.
class RowOperator {
  /// The number of the stage in its pipeline, and its name.
  let number: Int
  let name: String
  /// The row at which the operator is. It is valid until the next step.
  var row: PipelineRow { preconditionFailure("an operator without a row") }
  /// The number of rows so far.
  private(set) var rows = 0
  /// The operators that produce the input, for explanations.
  var inputs: [RowOperator] { [] }
  /// A description of the operator, for explanations.
  var text: String { name }

  init(_ stage: PipelineStage) {
    number = stage.number
    name = stage.name
  }

  /// Moves to the next row.
  final func step(_ run: PipelineRun) throws -> RowStep {
    do {
      let step = try next(run)
      if case .found = step {
        rows += 1
        try run.keep(row)
      }
      return step
    } catch let error as PipelineError where !error.isPlaced {
      throw error.inside(number, name)
    }
  }

  /// Does the work of ``step(_:)``.
  func next(_ run: PipelineRun) throws -> RowStep { .end }

  /// Plans what can be planned before the first row, for explanations.
  func prepare(_ run: PipelineRun) throws { for input in inputs { try input.prepare(run) } }

  /// Begins again, for another row of the enclosing pipeline.
  func restart(_ outer: PipelineRow, _ run: PipelineRun) { for input in inputs { input.restart(outer, run) } }
}

/// An operator that changes or drops the rows of its input.
class StreamingOperator: RowOperator {
  let input: RowOperator
  override var row: PipelineRow { input.row }
  override var inputs: [RowOperator] { [input] }

  init(_ stage: PipelineStage, _ input: RowOperator) {
    self.input = input
    super.init(stage)
  }
}
