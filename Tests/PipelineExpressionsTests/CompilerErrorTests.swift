import DocumentModel
import PipelineExpressions
import Testing

/// Expressions that are rejected before a row is read.
@Suite struct CompilerErrorTests {
  private static let one = PipelineExpression.constant(.integer(1))
  private static let text = PipelineExpression.constant(.string("a"))
  private static let row = PipelineExpression.field(FieldPath(field: "a"))

  private static func nested(_ depth: Int) -> PipelineExpression {
    (0..<depth).reduce(one) { inner, _ in .call("abs", [inner]) }
  }

  private static let cases: [(PipelineExpression, String)] = [
    (.call("frobnicate", []), "unknown function 'frobnicate'"),
    (.call("abs", []), "function 'abs' takes 1 argument, but was given 0"),
    (.call("add", [one]), "function 'add' takes 2 arguments, but was given 1"),
    (.call("round", [one, one, one]), "function 'round' takes 1 to 2 arguments, but was given 3"),
    (.call("and", []), "function 'and' takes at least 1 arguments, but was given 0"),
    (.call("map", [text]), "function 'map' takes a value for each key, but was given 1"),
    (.call("map_set", [row, text, one, text]), "function 'map_set' takes a value for each key, but was given 4"),
    (.call("count_if", [row]), "function 'count_if' is only allowed in a stage 'aggregate'"),
    (.call("score", []), "function 'score' is only allowed in a stage 'search'"),
    (.call("document_matches", [text]), "function 'document_matches' is only allowed in a stage 'search'"),
    (.call(.init(name: "abs", arguments: [one], options: ["fast"])), "function 'abs' has no option 'fast'"),
    (.variable("x"), "unknown variable 'x'"),
    (.call("array_filter", [row, text, .variable("b")]), "unknown variable 'b'"),
    (
      .call("array_filter", [row, row, .constant(.boolean(true))]),
      "argument 2 of function 'array_filter' must be the name of a variable, a constant string"
    ),
    (.subpipeline(0), "a nested pipeline is only allowed as the argument of 'array' and 'scalar'"),
    (.call("abs", [.subpipeline(0)]), "a nested pipeline is only allowed as the argument of 'array' and 'scalar'"),
    (.call("scalar", [row]), "argument 1 of function 'scalar' must be a nested pipeline"),
    (
      .call("regex_match", [row, .constant(.string("("))]),
      "argument 2 of function 'regex_match' is not a valid regular expression"
    ),
    (.call("timestamp_add", [row, text, one]), "argument 2 of function 'timestamp_add' is not a unit of time"),
    (
      .call("timestamp_trunc", [row, .constant(.string("dayofweek"))]),
      "argument 2 of function 'timestamp_trunc' is not a unit of time"
    ),
    (
      .call("timestamp_extract", [row, .constant(.string("day")), .constant(.string("Mars/Olympus"))]),
      "argument 3 of function 'timestamp_extract' is not a known time zone"
    ),
    (
      .call("timestamp_extract", [row, .constant(.string("day")), .constant(.string("../../etc/passwd"))]),
      "argument 3 of function 'timestamp_extract' is not a known time zone"
    ),
    (.call("is_type", [row, text]), "argument 2 of function 'is_type' is not the name of a type"),
    (nested(ExpressionLimits.depthMax), "expressions are nested more than 100 levels deep"),
  ]

  @Test(arguments: cases.indices) func illegalExpressionsAreRejected(_ index: Int) {
    let (expression, text) = Self.cases[index]
    let error = #expect(throws: ExpressionError.self) { try ExpressionCompiler.compile([expression]) }
    #expect(error?.text == text)
  }

  @Test func illegalPatternsWithinIsErrorAreErrorsOfTheEvaluation() {
    let call = PipelineExpression.call("regex_match", [Self.text, .constant(.string("("))])
    #expect(Outcome(.call("is_error", [call])).isSame(as: .value(.boolean(true))))
    #expect(Outcome(.call("if_error", [call, Self.one])).isSame(as: .value(.integer(1))))
  }

  @Test func theDeepestExpressionCompiles() {
    #expect(Outcome(Self.nested(ExpressionLimits.depthMax - 1)).isSame(as: .value(.integer(1))))
  }

  @Test(arguments: [
    ("a", ["a"]), ("a.b", ["a", "b"]), ("awards.arthur c. clarke", ["awards", "arthur c", " clarke"]),
    ("`a.b`.c", ["a.b", "c"]), ("`a\\`b`", ["a`b"]), ("\u{E9}-1", ["\u{E9}-1"]),
  ])
  func fieldPathsAreParsedLeniently(_ text: String, _ names: [String]) {
    #expect(PipelineExpression.fieldPath(text)?.segments == names)
  }

  @Test(arguments: ["", ".", "a.", ".a", "a..b", "`a", "`a`b"])
  func malformedFieldPathsAreRefused(_ text: String) {
    #expect(PipelineExpression.fieldPath(text) == nil)
  }
}
