import Basics
import DocumentModel
import DocumentStore
import QueryEngine
import TestSupport
import Testing
import WireFormat
@testable import PipelineEngine

/// Scans that several threads divide give the rows of a scan on one thread, in the same order.
@Suite(.serialized) struct SharedScanTests {
  /// The shapes of the names in a collection.
  enum Names: String, CaseIterable, Sendable {
    case numbers, letters, longPrefix, uneven, numericIDs

    func id(_ number: Int, _ random: inout SplitMix) -> String {
      switch self {
      case .numbers: return "d\(number)"
      case .letters: return String((0..<20).map { _ in random.pick(Array("ABCXYZabcxyz0189")) })
      case .longPrefix: return "a prefix of many bytes that all names have: \(1000 + number)"
      case .uneven: return number < 5 ? "\(number)" : "zz\(String(repeating: "y", count: number % 9))\(number)"
      case .numericIDs: return "__id\(number * 7919 % 100_003 + 1)__"
      }
    }
  }

  private static func world(_ names: Names, seed: UInt64, count: Int = 900) throws -> PipelineWorld {
    var random = SplitMix(seed: seed)
    let world = try PipelineWorld()
    try world.set(
      (0..<count).map { number in
        var fields = MapValue([("n", .integer(Int64(number)))])
        if number % 9 != 0 { fields["g"] = .integer(Int64(random.next() % 40)) }
        fields["v"] = random.pick([Value.integer(Int64(number % 60)), .string("x\(number % 11)"), .null])
        return (document("c/\(names.id(number, &random))").path, fields)
      })
    return world
  }

  private static let groups = PipelineCall(
    "aggregate",
    [
      .members(
        ("count", .call("count")), ("sum", .call("sum", .field("n"))), ("first", .call("first", .field("v"))),
        ("last", .call("last", .field("v"))), ("all", .call("array_agg", .field("n"))),
        ("kinds", .call("array_agg_distinct", .field("v"))), ("different", .call("count_distinct", .field("v"))),
        ("least", .call("minimum", .field("v"))), ("mean", .call("average", .field("n")))),
      .members(("g", .field("g"))),
    ])

  private static let condition = PipelineCall.filter(
    .call("not_equal", .call("mod", .field("n"), .integer(7)), .integer(3)))
  private static let doubled = PipelineCall(
    "add_fields", [.members(("v", .call("multiply", .field("n"), .integer(2))))])
  private static let distinct = PipelineCall("distinct", [.members(("g", .field("g")), ("v", .field("v")))])

  private static let pipelines: [(name: String, stages: [PipelineCall])] = [
    ("groups", [.c, groups]), ("groups of some rows", [.c, condition, groups]),
    ("groups of other fields", [.c, condition, doubled, groups]), ("distinct", [.c, distinct]),
    ("distinct and more", [.c, distinct, .sort("g", descending: true), .limit(30)]),
    ("one group", [.c, condition, .count]), ("no rows", [.c, .filter(.call("less_than", .field("n"), .integer(0)))]),
  ]

  @Test(arguments: Names.allCases) func rowsAreThoseOfOneThread(_ names: Names) throws {
    var divided = 0
    for seed in TestSeeds.of("PIPELINE_SEED", otherwise: [1, 2]) {
      let world = try Self.world(names, seed: seed)
      for pipeline in Self.pipelines {
        let expected = try world.rows(pipeline.stages)
        for (dividesAfter, units) in [(1, 100), (1, 8192), (100, 1000), (850, 500)] {
          let execution = try world.execution(pipeline.stages, dividesAfter: dividesAfter)
          let rows = try world.rows(execution, units: units)
          #expect(rows == expected, "\(pipeline.name), seed \(seed), after \(dividesAfter), \(units) units")
          if execution.explanation.text.contains("threads") {
            divided += 1
            #expect(execution.documentsRead >= 900)
          }
        }
      }
    }
    #expect(divided > 0, "no scan was divided")
  }

  /// All threads show the version of the pipeline while documents are added, changed and deleted.
  @Test(arguments: TestSeeds.of("PIPELINE_SEED", otherwise: [1, 2, 3])) func versionIsKept(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let world = try Self.world(.numbers, seed: seed)
    let expected = try world.rows([.c, Self.groups])
    let execution = try world.execution([.c, Self.groups], dividesAfter: 30)
    var rows: [Row] = []
    var round = 0
    while !execution.isAtEnd {
      if round < 60 {
        let number = Int(random.next() % 1200)
        if random.next() % 3 == 0 {
          _ = try wait { done in
            world.database.commit(CommitRequest([Write(.delete, key: document("c/d\(number)"))]), completion: done)
          }.get()
        } else {
          try world.set([(document("c/d\(number)").path, MapValue([("n", .integer(-5)), ("g", .string("new"))]))])
        }
      }
      round += 1
      try world.database.read { reader in
        try execution.slice(reader.snapshot, units: 400) { result in
          rows.append(Row(name: nil, fields: try result.fields.decoded()))
          return true
        }
      }
    }
    #expect(rows == expected, "seed \(seed)")
  }

  /// An error in a part that another thread reads is that of a scan on one thread.
  @Test func errorsAreTheSame() throws {
    let world = try Self.world(.numbers, seed: 4)
    try world.set([(document("c/d99").path, MapValue([("n", .string("not a number")), ("g", .integer(1))]))])
    let stages = [
      PipelineCall.c,
      PipelineCall(
        "aggregate", [.members(("least", .call("sum", .call("add", .field("n"), .integer(1))))), .members()]),
    ]
    let expected = #expect(throws: PipelineError.self) { try world.rows(stages) }
    let error = #expect(throws: PipelineError.self) {
      try world.rows(try world.execution(stages, dividesAfter: 50), units: 500)
    }
    #expect(error == expected)
  }

  /// If the groups do not fit in memory, the scan continues on one thread and in a temporary file.
  @Test func groupsThatDoNotFitContinueInAFile() throws {
    let world = try Self.world(.letters, seed: 5)
    var limits = ScratchBudget.Limits()
    limits.memoryBytesMax = 1 << 20
    limits.chunkBytes = 64 << 10
    limits.smallBytesMax = 1 << 10
    limits.queryMemoryBytesMax = 20 << 10
    let expected = try world.rows([.c, Self.groups]).map(\.description).sorted()
    let execution = try world.execution([.c, Self.groups], ScratchBudget(limits, hasTimer: false), dividesAfter: 10)
    #expect(try world.rows(execution, units: 300).map(\.description).sorted() == expected)
    #expect(execution.explanation.text.contains("parts in a temporary file"))
  }

  /// A pipeline that is released in the middle ends the work of the other threads.
  @Test func releaseEndsAllThreads() throws {
    let world = try Self.world(.numbers, seed: 6)
    for slices in 1..<20 {
      let execution = try world.execution([.c, Self.groups], dividesAfter: 1)
      for _ in 0..<slices where !execution.isAtEnd {
        try world.database.read { try execution.slice($0.snapshot, units: 200) { _ in true } }
      }
    }
    let scan = SharedScan([])
    scan.cancel()
    #expect(scan.begin() == nil)
  }

  /// Documents that are reviewed, or a client's limit of memory, keep a scan on one thread.
  @Test func someScansAreNotDivided() throws {
    let world = try Self.world(.numbers, seed: 7, count: 300)
    let reviewed = try world.execution([.c, Self.groups], isReviewed: true, dividesAfter: 1)
    _ = try world.rows(reviewed, units: 300)
    #expect(!reviewed.explanation.text.contains("threads"))
    let limit = PipelineArgument.Entry("memory_limit", .integer(8 << 20))
    let limited = try world.execution([.c, Self.groups], options: [limit], dividesAfter: 1)
    _ = try world.rows(limited, units: 300)
    #expect(!limited.explanation.text.contains("threads"))
    for stages in [[.c, .limit(250), Self.groups], [.c, .sort("v", descending: false), Self.groups]] {
      let execution = try world.execution(stages, dividesAfter: 1)
      _ = try world.rows(execution, units: 300)
      #expect(!execution.explanation.text.contains("threads"))
    }
  }

  /// A thread without a share takes the second half of the parts that another one has not begun.
  @Test func partsAreTakenOver() throws {
    let world = try Self.world(.numbers, seed: 8)
    let parts = try world.database.read { reader in
      let query = try ResolvedQuery(Query(parent: .root, collectionID: "c"), in: world.id, edition: .enterprise)
      let execution = try QueryExecution(query, reader.snapshot, at: try reader.lastVersion())
      try execution.sliceDocuments(reader.snapshot, units: 100) { _ in true }
      return try execution.parts(16, reader.snapshot)
    }
    #expect(parts.count > 8)
    let scan = SharedScan(parts)
    let (first, second) = try (#require(scan.begin()), #require(scan.begin()))
    var counts = [0, 0]
    while scan.next(first) != nil { counts[0] += 1 }
    let third = try #require(scan.begin())
    while scan.next(second) != nil { counts[1] += 1 }
    var rest = 0
    while scan.next(third) != nil { rest += 1 }
    #expect(counts[0] + counts[1] + rest == parts.count && rest > 0 && counts[1] > 0)
    #expect(scan.begin() == nil)
    #expect(scan.results() == nil)
    scan.end(first, nil)
    #expect(scan.hasFailed && scan.results() == nil)
  }
}
