import DocumentModel
import PipelineExpressions
import WireFormat

/// Evaluates the expressions of one stage for one row at a time.
final class StageEvaluator {
  private let evaluator: ExpressionEvaluator
  private let run: PipelineRun
  private let variables: UnsafeMutableBufferPointer<ExpressionValue>

  init(_ program: ExpressionProgram, _ run: PipelineRun, variableCount: Int) {
    evaluator = ExpressionEvaluator(program, now: run.now, seed: run.nextSeed())
    self.run = run
    variables = .allocate(capacity: variableCount)
    variables.initialize(repeating: .absent)
  }

  deinit { variables.deallocate() }

  /// Begins a row, which must not change while its values are used. Counts the work for the row before.
  func begin(_ row: PipelineRow) {
    run.unitsLeft -= evaluator.spent >> Self.unitShift
    for index in variables.indices {
      variables[index] = row.value(of: index).map { ExpressionValue(EncodedValue($0)) } ?? .absent
    }
    evaluator.begin(
      ExpressionRow(
        fields: row.map, name: row.hasName ? row.name.bytes : nil, createTime: row.createTime,
        updateTime: row.updateTime, variables: UnsafeBufferPointer(variables), score: row.score))
  }

  /// A unit of a slice is the time of about 2 to the power of this many steps of an evaluator.
  private static let unitShift = 6

  /// Returns the value of an expression, valid until the next row begins.
  /// - Throws: ``PipelineError`` if the evaluation fails.
  func value(_ expression: Int) throws(PipelineError) -> ExpressionValue {
    let value = evaluator.value(expression)
    if case .error(let fault) = value { throw Self.error(fault) }
    return value
  }

  /// Whether an expression is true. Any other value, and an error, is not.
  /// - Throws: ``PipelineError`` if the row exceeds a limit of the server.
  func isTrue(_ expression: Int) throws(PipelineError) -> Bool {
    let isTrue = evaluator.isTrue(expression)
    if let fault = evaluator.exhaustion { throw Self.error(fault) }
    return isTrue
  }

  private static func error(_ fault: ExpressionFault) -> PipelineError {
    PipelineError(fault.text, fault.isExhaustion ? .resourceExhausted : .invalidArgument)
  }
}

extension ExpressionValue {
  /// Appends the value as the content of a Value message.
  /// - Throws: ``PipelineError`` if it is nested too deeply inside `depth` maps, or if `out` becomes too long for a row.
  func append(to out: inout [UInt8], depth: Int = 0) throws(PipelineError) {
    guard ExpressionWriter.append(self, to: &out, depth: depth) else {
      throw PipelineError("A value is too large or nested too deeply.")
    }
  }
}
