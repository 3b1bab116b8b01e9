import DocumentModel
import QueryEngine
import Testing
import TestSupport
import WireFormat
@testable import PipelineEngine

/// The work of planning, which comes before the rules, is bounded. Without the bounds these tests take hours.
///
/// The bound is on the work alone: a time limit of a test includes its waits for a thread, behind all other tests.
@Suite struct PlanningTests {
  private static let id = DatabaseID(project: "p").unsafelyUnwrapped

  private static func equal(_ name: String, _ number: Int) -> PipelineArgument {
    .call("equal", .field(name), .integer(number))
  }

  private static func all(_ name: String, _ parts: [PipelineArgument]) -> PipelineArgument {
    .function(PipelineCall(name, parts))
  }

  private static func filters(_ stages: [PipelineCall]) throws -> [Int] {
    try PipelinePlan(StructuredPipeline(stages), in: id).sources.map { source in
      guard case .query(let query) = source else { return 0 }
      switch query.filter {
      case .and(let parts): return parts.count
      case nil: return 0
      default: return 1
      }
    }
  }

  private static func withinMinutes(_ minutes: Int, _ work: () throws -> Void) throws {
    let duration = try ContinuousClock().measure(work)
    #expect(duration < .seconds(60 * minutes), "\(duration)")
  }

  @Test func nestedConditionsOfListenersAreReadOnce() throws {
    try Self.withinMinutes(2) {
      var condition = Self.equal("a", 1)
      for level in 0..<80 {
        condition = .call(level % 2 == 0 ? "or" : "and", Self.equal("b\(level)", level), condition)
      }
      // A query cannot have that many alternatives, which is found later.
      let listened = try ListenedPipeline(StructuredPipeline([.c, .filter(condition)]), in: Self.id)
      guard case .query(let query, _) = listened else { throw PipelineError("no query") }
      #expect(query.filter != nil)
    }
  }

  @Test func conditionsOfListenersAreLimited() throws {
    try Self.withinMinutes(2) {
      func stages(_ count: Int) -> [PipelineCall] {
        [.c, .filter(Self.all("and", (1..<count).map { Self.equal("a", $0) }))]
      }
      _ = try ListenedPipeline(StructuredPipeline(stages(1000)), in: Self.id)
      #expect(throws: PipelineError.self) {
        _ = try ListenedPipeline(StructuredPipeline(stages(1001)), in: Self.id)
      }
    }
  }

  @Test func termsOfSortsAreLimited() throws {
    try Self.withinMinutes(2) {
      func sort(_ count: Int) -> PipelineCall {
        PipelineCall(
          "sort",
          (0..<count).map { number in
            .members(("expression", .field("f\(number)")), ("direction", .constant(.string("ascending"))))
          })
      }
      let required = Self.all("and", (0..<50_000).map { .call("exists", .field("f\($0)")) })
      _ = try PipelinePlan(StructuredPipeline([.c, .filter(required), sort(50_000)]), in: Self.id)
      #expect(throws: PipelineError.self) {
        _ = try ListenedPipeline(StructuredPipeline([.c, sort(50_000)]), in: Self.id)
      }
    }
  }

  /// A source with more conditions than a query can have keeps the first ones, and those that are legal.
  @Test func conditionsThatMakeAQueryIllegalAreLeftOut() throws {
    try Self.withinMinutes(2) {
      let many = PipelineCall.filter(Self.all("and", (0..<150).map { Self.equal("a\($0)", 1) }))
      let first = try Self.filters([.c, many])
      #expect(first == [100])
      let list = PipelineArgument.constant(.array((0..<31).map { .integer(Int64($0)) }))
      let long = PipelineCall.filter(.call("equal_any", .field("b"), list))
      let few = (0..<9).map { PipelineCall.filter(Self.equal("a\($0)", 1)) }
      let second = try Self.filters([.c] + few[..<4] + [long] + few[4...] + [long])
      #expect(second == [9])
    }
  }

  @Test func conditionsOfARequestAreLimited() throws {
    try Self.withinMinutes(2) {
      let filter = PipelineCall.filter(Self.all("and", (0..<90).map { Self.equal("a\($0)", 1) }))
      let union = PipelineCall("union", [.pipeline([.c, filter])])
      let counts = try Self.filters([.c, filter] + Array(repeating: union, count: 14))
      // With its `and`, each condition has 91 parts.
      #expect(counts == Array(repeating: 90, count: 10) + [89] + Array(repeating: 0, count: 4))
    }
  }

  @Test func planningOfManyConditionsIsFast() throws {
    try Self.withinMinutes(2) {
      let filter = PipelineCall.filter(Self.all("and", (0..<199).map { Self.equal("a\($0)", 1) }))
      for _ in 0..<30 { _ = try Self.filters([.c] + Array(repeating: filter, count: 20)) }
      var deep = Self.all("and", (0..<20_000).map { .call("exists", .field("f\($0)")) })
      for _ in 0..<90 { deep = .call("and", deep) }
      _ = try Self.filters([.c, .filter(deep)])
    }
  }
}
