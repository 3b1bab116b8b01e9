import Basics
import DocumentModel
import DocumentStore
import TestSupport
import Testing
import WireFormat
@testable import PipelineEngine

/// Pipelines whose groups and samples do not fit in memory.
@Suite struct SpillTests {
  /// Documents with groups of many sizes, in random order.
  private static func world(seed: UInt64, count: Int) throws -> PipelineWorld {
    var random = SplitMix(seed: seed)
    let world = try PipelineWorld()
    try world.set(
      (0..<count).map { number in
        var fields = MapValue([("n", .integer(Int64(number)))])
        let group = Int.random(in: 0...Int.random(in: 0...count, using: &random), using: &random)
        if group % 7 != 3 { fields["g"] = group % 5 == 0 ? .string("group \(group)") : .integer(Int64(group)) }
        fields["v"] = random.pick([Value.integer(Int64(group)), .string("x\(number % 11)"), .null, .double(0.25)])
        return (document("c/\(10_000 + number)").path, fields)
      })
    return world
  }

  private static func budget(memory: Int) -> ScratchBudget {
    var limits = ScratchBudget.Limits()
    limits.memoryBytesMax = 1 << 20
    limits.chunkBytes = 64 << 10
    limits.smallBytesMax = 1 << 10
    limits.queryMemoryBytesMax = memory
    return ScratchBudget(limits, hasTimer: false)
  }

  private static let everything = PipelineCall(
    "aggregate",
    [
      .members(
        ("count", .call("count")), ("sum", .call("sum", .field("n"))), ("mean", .call("average", .field("n"))),
        ("least", .call("minimum", .field("v"))), ("greatest", .call("maximum", .field("v"))),
        ("first", .call("first", .field("v"))), ("last", .call("last", .field("v"))),
        ("all", .call("array_agg", .field("n"))), ("kinds", .call("array_agg_distinct", .field("v"))),
        ("different", .call("count_distinct", .field("v"))),
        ("some", .call("count_if", .call("greater_than", .field("n"), .integer(40))))),
      .members(("g", .field("g"))),
    ])

  /// Every accumulator gives the same, however often the groups are written to the file.
  @Test(arguments: TestSeeds.of("PIPELINE_SEED", otherwise: Array(1...6))) func groupsInAFileAreTheSame(seed: UInt64)
    throws
  {
    let world = try Self.world(seed: seed, count: 700)
    let order = PipelineCall.sort("g", descending: false)
    for stage in [Self.everything, PipelineCall("distinct", [.members(("g", .field("g")), ("v", .field("v")))])] {
      let expected = Self.sorted(try world.rows([.c, stage]))
      #expect(expected.count > 20)
      for memory in [600, 6 << 10, 60 << 10] {
        for units in [1, 300, 8192] {
          let budget = Self.budget(memory: memory)
          let rows = try world.rows([.c, stage], budget, units: units)
          #expect(Self.sorted(rows) == expected, "seed \(seed), \(memory) bytes, \(units) units")
          #expect(budget.use == (0, 0, 0))
        }
      }
      let budget = Self.budget(memory: 6 << 10)
      let both = try world.rows([.c, .opaque, stage, order, .count], budget, units: 500)
      #expect(both == [Row(name: nil, fields: MapValue([("n", .integer(Int64(expected.count)))]))])
    }
  }

  private static func sorted(_ rows: [Row]) -> [String] { rows.map(\.description).sorted() }

  @Test func explanationShowsTheFile() throws {
    let world = try Self.world(seed: 1, count: 400)
    let execution = try world.execution([.c, Self.everything], Self.budget(memory: 20 << 10))
    _ = try world.rows(execution)
    #expect(execution.explanation.text.contains("parts in a temporary file"))
    #expect(execution.explanation.heldBytesMax < 60 << 10)
  }

  /// The limit of a client applies to groups: they do not continue in a file.
  @Test func clientsLimitIsKept() throws {
    let world = try Self.world(seed: 2, count: 400)
    let limit = PipelineArgument.Entry("memory_limit", .integer(4 << 10))
    #expect(throws: PipelineError.self) { try world.rows([.c, Self.everything], options: [limit]) }
  }

  /// A pipeline that is released in the middle gives its memory and its file back.
  @Test func releaseGivesEverythingBack() throws {
    let world = try Self.world(seed: 3, count: 400)
    let budget = Self.budget(memory: 6 << 10)
    for slices in 0..<12 {
      do {
        let execution = try world.execution([.c, Self.everything], budget)
        for _ in 0..<slices where !execution.isAtEnd {
          try world.database.read { try execution.slice($0.snapshot, units: 700) { _ in true } }
        }
      }
      #expect(budget.use == (0, 0, 0), "after \(slices) slices")
    }
  }

  @Test(arguments: [6 << 10, 1 << 20]) func samplesInAFileAreDifferentRows(memory: Int) throws {
    let world = try Self.world(seed: 4, count: 500)
    for count in [1, 200, 499, 600] {
      let rows = try world.rows(
        [.c, PipelineCall("sample", [.integer(count), .constant(.string("documents"))])], Self.budget(memory: memory),
        units: 300)
      #expect(rows.count == min(count, 500))
      #expect(Set(rows.map(\.name)).count == rows.count)
    }
    // All rows are equally likely: of 40 samples of half, no row is in all or none, except with a chance below 1e-8.
    var counts: [String?: Int] = [:]
    for _ in 0..<40 {
      for row in try world.rows([.c, PipelineCall("sample", [.integer(250), .constant(.string("documents"))])]) {
        counts[row.name, default: 0] += 1
      }
    }
    #expect(counts.count == 500)
    #expect(counts.values.allSatisfy { $0 < 40 })
  }
}
