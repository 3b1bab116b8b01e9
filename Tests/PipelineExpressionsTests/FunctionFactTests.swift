import DocumentModel
import PipelineExpressions
import Testing

/// The documented results of functions, from `fixtures/pipelines/functions.jsonl`.
@Suite struct FunctionFactTests {
  @Test func theFileHasAllFacts() {
    #expect(FunctionFact.all.count == 2188)
    #expect(FunctionFact.functions.count == 118)
  }

  @Test(arguments: FunctionFact.functions)
  func functionsGiveTheDocumentedResults(_ function: String) throws {
    for fact in FunctionFact.all where fact.function == function {
      let result = Outcome(fact.call)
      switch try #require(fact.expected, "malformed: \(fact.line)") {
      case .value(let value):
        #expect(result.isSame(as: .value(value), tolerance: fact.tolerance), "\(fact.line) gave \(result)")
      case .absent: #expect(result.isSame(as: .absent), "\(fact.line) gave \(result)")
      case .error:
        #expect(result.isSame(as: .error("")), "\(fact.line) gave \(result)")
        let caught = Outcome(.call("is_error", [fact.call]))
        #expect(caught.isSame(as: .value(.boolean(true))), "\(fact.line) cannot be caught: \(caught)")
      }
    }
  }

  /// The same calls with their arguments in a stored document, so that nothing is computed in advance.
  @Test(arguments: FunctionFact.functions)
  func functionsOfFieldsGiveTheSameResults(_ function: String) throws {
    for fact in FunctionFact.all where fact.function == function {
      guard case .call(let call) = fact.call else { continue }
      var fields = MapValue()
      let arguments = call.arguments.enumerated().map { index, argument in
        guard case .constant(let value) = argument, function != "array_filter", function != "array_transform" else {
          return argument
        }
        fields["a\(index)"] = value
        return .field(FieldPath(field: "a\(index)"))
      }
      let result = Outcome(.call(call.name, arguments), fields: fields)
      let constant = Outcome(fact.call)
      #expect(result.isSame(as: constant), "\(fact.line) gave \(result) of fields, \(constant) of constants")
    }
  }
}
