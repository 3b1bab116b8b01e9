import DocumentModel
import Foundation
import PipelineExpressions
import Testing
import TestSupport

/// Compares random expressions with the reference evaluator.
///
/// Environment: `EXPRESSIONS_SEED` is a seed or `random`. `EXPRESSIONS` is the number of comparisons.
@Suite struct ExpressionDifferentialTests {
  private static let count =
    ProcessInfo.processInfo.environment["EXPRESSIONS"].flatMap(Int.init) ?? 4000

  @Test(arguments: TestSeeds.of("EXPRESSIONS_SEED", otherwise: [1, 2, 3]))
  func expressionsEvaluateAsInTheReference(seed: UInt64) {
    var generator = PipelineExpressionGenerator(seed: seed)
    for index in 0..<Self.count {
      let fields = generator.fields()
      compare(generator.expression(depth: 1 + index % 4), fields, seed)
    }
  }

  @Test(arguments: TestSeeds.of("EXPRESSIONS_SEED", otherwise: [1, 2, 3]))
  func datesAreThoseOfFoundation(seed: UInt64) {
    var generator = PipelineExpressionGenerator(seed: seed)
    for _ in 0..<Self.count / 2 { compare(generator.dateExpression(), MapValue(), seed) }
  }

  @Test(arguments: TestSeeds.of("EXPRESSIONS_SEED", otherwise: [1, 2, 3]))
  func roundingIsThatOfDecimals(seed: UInt64) {
    var generator = PipelineExpressionGenerator(seed: seed)
    for _ in 0..<Self.count / 2 { compare(generator.roundingExpression(), MapValue(), seed) }
  }

  private func compare(_ expression: PipelineExpression, _ fields: MapValue, _ seed: UInt64) {
    let now = Timestamp(uncheckedMicroseconds: 0)
    let expected = ReferenceEvaluator(fields: fields, now: now).evaluate(expression)
    let result = Outcome(expression, fields: fields, now: now)
    #expect(result.isSame(as: expected), "\(expression) of \(fields) gave \(result), not \(expected), seed \(seed)")
  }
}
