import DocumentModel
import PipelineExpressions
import Testing

/// Expressions that are rejected before a row is read.
@Suite struct CompilerErrorTests {
  @Test func unknownFunctionsAreRejected() {
    #expect(throws: ExpressionError.unknownFunction("frobnicate")) {
      _ = try ExpressionCompiler.compile([.call("frobnicate", [])])
    }
  }
}
