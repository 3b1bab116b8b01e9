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
/// Rows are pulled one by one with ``step(_:)``, or passed to a closure with ``forEach(_:_:)``, which does not copy the
/// documents of a source. The consumer of an operator uses one of the two until it restarts the operator. An operator
/// that handles one row at a time changes the row of its input in place.
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
    try placed {
      let step = try next(run)
      if case .found = step {
        rows += 1
        try run.keep(row)
      }
      return step
    }
  }

  /// Moves to each of the next rows and calls `body`, until `body` returns `false`, the slice ends, or no rows are
  /// left. Returns whether rows may be left. Place errors of `body` with ``placed(_:)``.
  final func forEach(_ run: PipelineRun, _ body: () throws -> Bool) throws -> Bool {
    try placed {
      try visit(run) {
        rows += 1
        try run.keep(row)
        return try body()
      }
    }
  }

  /// Names this stage in the errors of `body` that do not name one.
  @inline(__always)
  final func placed<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as PipelineError where !error.isPlaced {
      throw error.inside(number, name)
    }
  }

  /// Does the work of ``forEach(_:_:)``.
  func visit(_ run: PipelineRun, _ body: () throws -> Bool) throws -> Bool {
    while true {
      switch try next(run) {
      case .paused: return true
      case .end: return false
      case .found: guard try body() else { return true }
      }
    }
  }

  /// Counts further rows without producing them. Returns `nil` if the operator can only produce them, otherwise their
  /// number in this slice, and whether rows may be left.
  func count(_ run: PipelineRun) throws -> (rows: Int, mayContinue: Bool)? { nil }

  /// Notes rows that were counted.
  final func noteCounted(_ count: Int) { rows += count }

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
