import DocumentModel
import PipelineExpressions
import WireFormat

/// Evaluates the expressions of one stage for one row at a time.
final class StageEvaluator {
  private let evaluator: ExpressionEvaluator
  private let variables: UnsafeMutableBufferPointer<ExpressionValue>

  init(_ program: ExpressionProgram, _ run: PipelineRun, variableCount: Int) {
    evaluator = ExpressionEvaluator(program, now: run.now, seed: run.nextSeed())
    variables = .allocate(capacity: variableCount)
    variables.initialize(repeating: .absent)
  }

  deinit { variables.deallocate() }

  /// Begins a row, which must not change while its values are used.
  func begin(_ row: PipelineRow) {
    for index in variables.indices {
      variables[index] = row.value(of: index).map { ExpressionValue(EncodedValue($0)) } ?? .absent
    }
    evaluator.begin(
      ExpressionRow(
        fields: row.map, name: row.hasName ? row.name.bytes : nil, createTime: row.createTime,
        updateTime: row.updateTime, variables: UnsafeBufferPointer(variables), score: row.score))
  }

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
  /// - Throws: ``PipelineError`` if it is nested too deeply.
  func append(to out: inout [UInt8]) throws(PipelineError) {
    guard ExpressionWriter.append(self, to: &out) else { throw PipelineError("A value is nested too deeply.") }
  }
}
