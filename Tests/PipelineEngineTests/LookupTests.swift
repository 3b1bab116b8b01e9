import DocumentModel
import DocumentStore
import TestSupport
import Testing
import WireFormat
@testable import PipelineEngine

/// Nested pipelines that the engine replaces by groups after some runs.
@Suite struct LookupTests {
  private static let keys: [Value] = [
    .null, .integer(1), .double(1), .double(.nan), .double(-0.0), .integer(0), .string("a"), .boolean(true),
    .array([.integer(1)]), .array([.null]), .map(MapValue([("k", .null)])), .bytes([1]), .string("missing"),
  ]

  private static func world(_ random: inout SplitMix, rows: Int) throws -> PipelineWorld {
    let world = try PipelineWorld()
    var documents: [QueryModel.Document] = (0..<rows).map { number in
      var fields = MapValue([("number", .integer(Int64(number)))])
      if number % 14 != 13 { fields["key"] = keys[number % 14 % keys.count] }
      return (document("outer/\(10_000 + number)").path, fields)
    }
    for number in 0..<120 {
      var fields = MapValue([("n", .integer(Int64(number)))])
      if !random.chance(oneIn: 8) { fields["key"] = random.pick(Array(keys.dropLast())) }
      documents.append((document("c/\(1000 + number)").path, fields))
    }
    try world.set(documents)
    return world
  }

  /// The rows of the enclosing pipeline, each with the sum, the values and the number of the documents with its key.
  private static func stages(_ between: [PipelineCall], isScalar: Bool) -> [PipelineCall] {
    let nested =
      [
        .c, .filter(.call("equal", .field("key"), .variable("k"))),
        .filter(.call("less_than", .field("n"), .integer(90))),
      ]
      + between + [
        PipelineCall(
          "aggregate",
          [
            .members(
              ("sum", .call("sum", .field("n"))), ("all", .call("array_agg", .field("n"))), ("count", .call("count")))
          ])
      ]
    return [
      PipelineCall("collection", [.constant(.reference("/outer"))]),
      PipelineCall("let", [.members(("k", .field("key")))]),
      PipelineCall("add_fields", [.members(("r", .call(isScalar ? "scalar" : "array", .pipeline(nested))))]),
    ]
  }

  @Test(arguments: TestSeeds.of("PIPELINE_SEED", otherwise: [1, 2, 3])) func groupsGiveTheSameRows(seed: UInt64) throws
  {
    var random = SplitMix(seed: seed)
    let rows = PipelineLimits.runsBeforeGroups + 150
    let world = try Self.world(&random, rows: rows)
    for isScalar in [true, false] {
      // A limit between the stages is a form that is not replaced.
      let expected = try world.rows(Self.stages([.limit(1000)], isScalar: isScalar))
      let stages = Self.stages([], isScalar: isScalar)
      for units in [100, 8192] {
        #expect(try world.rows(stages, units: units) == expected, "seed \(seed), \(units) units")
      }
      #expect(expected.count == rows)
      #expect(try world.analysis(stages).contains("then 1 by groups of all documents"))
      #expect(try !world.analysis(stages, isReviewed: true).contains("by groups"))
    }
  }

  /// An accumulator that fails on a document that no row needs does not fail the pipeline.
  @Test func failureOfGroupsIsNoFailure() throws {
    let world = try PipelineWorld()
    let rows = PipelineLimits.runsBeforeGroups + 50
    try world.set((0..<rows).map { (document("outer/\($0)").path, MapValue([("key", .integer(1))])) })
    try world.set([
      (document("c/a").path, MapValue([("key", .integer(1)), ("n", .integer(4))])),
      (document("c/b").path, MapValue([("key", .integer(2)), ("n", .integer(0))])),
    ])
    let sum = PipelineArgument.members(("sum", .call("sum", .call("divide", .integer(8), .field("n")))))
    let nested: [PipelineCall] = [
      .c, .filter(.call("equal", .field("key"), .variable("k"))), PipelineCall("aggregate", [sum]),
    ]
    let found = try world.rows([
      PipelineCall("collection", [.constant(.reference("/outer"))]),
      PipelineCall("let", [.members(("k", .field("key")))]),
      PipelineCall("select", [.members(("r", .call("scalar", .pipeline(nested))))]),
    ])
    #expect(found.count == rows)
    #expect(found.allSatisfy { $0.fields == MapValue([("r", .integer(2))]) })
  }

  /// Groups that fit give way to an operator that needs their memory later.
  @Test func groupsGiveWayToOtherOperators() throws {
    let world = try PipelineWorld()
    let rows = PipelineLimits.runsBeforeGroups + 100
    try world.set(
      (0..<rows).map { number in
        (
          document("outer/\(10_000 + number)").path,
          MapValue([("key", .integer(Int64(number % 100))), ("w", .string(String(repeating: "w", count: 700)))])
        )
      })
    try world.set(
      (0..<100).map { number in
        (
          document("c/\(1000 + number)").path,
          MapValue([("key", .integer(Int64(number))), ("s", .string(String(repeating: "s", count: 2000)))])
        )
      })
    let nested: [PipelineCall] = [
      .c, .filter(.call("equal", .field("key"), .variable("k"))),
      PipelineCall("aggregate", [.members(("all", .call("array_agg", .field("s"))))]),
    ]
    let stages = [
      PipelineCall("collection", [.constant(.reference("/outer"))]),
      PipelineCall("let", [.members(("k", .field("key")))]),
      PipelineCall("add_fields", [.members(("r", .call("scalar", .pipeline(nested))))]),
    ]
    let all = PipelineCall("aggregate", [.members(("w", .call("array_agg", .field("w"))), ("n", .call("count")))])
    #expect(try world.analysis(stages).contains("by groups"))
    let limit = PipelineArgument.Entry("memory_limit", .integer(500 << 10))
    let found = try world.rows(stages + [all], options: [limit])
    #expect(found.map { $0.fields["n"] } == [.integer(Int64(rows))])
    // Without the limit there is room for both.
    #expect(try world.rows(stages + [all]) == found)
  }
}
