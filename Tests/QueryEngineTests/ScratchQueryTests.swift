import Basics
import DocumentModel
import DocumentStore
import KeyValue
import Synchronization
import Testing
import TestSupport
import WireFormat
@testable import QueryEngine

/// Queries that sort with little scratch memory, and that wait for it.
@Suite struct ScratchQueryTests {
  /// A collection of documents that a query must sort, because their first field is the same in all.
  private struct Sample {
    let world: QueryDatabase
    let query: Query

    init(count: Int = 400) throws {
      world = try QueryDatabase()
      for start in stride(from: 0, to: count, by: 100) {
        try world.commit(
          (start..<start + 100).map { number in
            let text = String(repeating: "x", count: number % 90) + "\(number * 7_919 % count)"
            return Write.set("c/d\(number)", ("a", .integer(1)), ("b", .string(text)))
          })
      }
      var query = Query(collectionID: "c")
      query.orders = [Order(FieldPath(field: "a")), Order(FieldPath(field: "b"))]
      self.query = query
    }

    func results(_ options: PlanOptions, query: Query? = nil) throws -> any QueryResults {
      try world.database.read { reader in
        try ResolvedQuery(query ?? self.query, in: world.id)
          .results(reader.snapshot, at: try reader.lastVersion(), options)
      }
    }

    /// Runs a slice and appends the paths.
    func slice(_ results: any QueryResults, units: Int = 300, into paths: inout [String]) throws {
      var found: [String] = []
      try world.database.read { reader in
        try results.slice(reader.snapshot, units: units) { key, _ in
          found.append(key.path.text)
          return true
        }
      }
      paths += found
    }
  }

  /// Chunks of 4 KiB, so that a few hundred documents need a file.
  private static func budget(memoryBytesMax: Int = 32 << 10, waitingMax: Int = 256) -> ScratchBudget {
    var limits = ScratchBudget.Limits()
    limits.memoryBytesMax = memoryBytesMax
    limits.chunkBytes = 4 << 10
    limits.smallBytesMax = 1 << 10
    limits.queryMemoryBytesMax = 12 << 10
    limits.waitingMax = waitingMax
    return ScratchBudget(limits, hasTimer: false)
  }

  @Test func littleMemoryChangesNoResult() throws {
    let sample = try Sample()
    let budget = Self.budget()
    let options = PlanOptions(scratch: ScratchSpace(budget))
    for (limit, offset) in [(nil, 0), (nil, 30), (10, 0), (150, 7), (5_000, 0)] as [(Int?, Int)] {
      var query = sample.query
      (query.limit, query.offset) = (limit, offset)
      let expected = try sample.world.run(query)
      #expect(expected.count == min(limit ?? .max, 400 - offset))
      #expect(try sample.world.run(query, options, units: 200) == expected)
      #expect(budget.use == (0, 0, 0))
    }
    let sums = try sample.world.aggregate(sample.query.limited(to: 100), [.count(upTo: nil)], options)
    #expect(sums == [.integer(100)])
    #expect(budget.use == (0, 0, 0))
  }

  /// A query that is released in the middle gives everything back, wherever that is.
  @Test func releasedQueriesGiveEverythingBack() throws {
    let sample = try Sample()
    let budget = Self.budget()
    var usedFiles = false
    for slices in 1..<30 {
      var paths: [String] = []
      let results = try sample.results(PlanOptions(scratch: ScratchSpace(budget)))
      for _ in 0..<slices where !results.isAtEnd { try sample.slice(results, into: &paths) }
      usedFiles = usedFiles || budget.use.fileBytes > 0
      withExtendedLifetime(results) {}
    }
    #expect(usedFiles, "the sort should have used a file")
    #expect(budget.use == (0, 0, 0))
  }

  /// A query that finds no memory waits, is woken, and returns all results.
  @Test func aQueryWaitsForMemory() throws {
    let sample = try Sample()
    let budget = Self.budget(memoryBytesMax: 16 << 10)
    let space = ScratchSpace(budget)
    let holder = Scratch(space)
    while try holder.allocateOptional(4 << 10) != nil {}
    let results = try sample.results(PlanOptions(scratch: space))
    var paths: [String] = []
    let wakes = Wakes()
    var slices = 0
    while !results.wait({ wakes.add() }), slices < 100 {
      try sample.slice(results, into: &paths)
      slices += 1
    }
    #expect(slices < 100, "the query should wait")
    #expect(paths.isEmpty && !results.isAtEnd)
    // A slice changes nothing while the query waits.
    try sample.slice(results, into: &paths)
    #expect(results.wait { wakes.add() })
    #expect(wakes.count == 0)
    holder.end()
    #expect(wakes.count == 1)
    #expect(!results.wait {})
    while !results.isAtEnd { try sample.slice(results, into: &paths) }
    #expect(try paths == sample.world.run(sample.query))
    #expect(budget.use == (0, 0, 0))
  }

  @Test func aFullLineRefusesAQuery() throws {
    let sample = try Sample()
    let budget = Self.budget(memoryBytesMax: 16 << 10, waitingMax: 1)
    let space = ScratchSpace(budget)
    let (holder, waiter) = (Scratch(space), Scratch(space))
    while try holder.allocateOptional(4 << 10) != nil {}
    #expect(try waiter.allocate(4 << 10) == nil)
    let results = try sample.results(PlanOptions(scratch: space))
    var paths: [String] = []
    #expect(throws: ScratchError.tooManyWaiting(1)) {
      while !results.isAtEnd { try sample.slice(results, into: &paths) }
    }
    holder.end()
    waiter.end()
  }

  /// A query whose client does not read is ended when others wait.
  @Test func aStalledQueryLosesItsMemory() throws {
    let sample = try Sample()
    let clock = ManualTime()
    var limits = Self.budget(memoryBytesMax: 16 << 10).limits
    limits.memoryBytesMax = 16 << 10
    let budget = ScratchBudget(limits, clock: { clock.now }, hasTimer: false)
    let space = ScratchSpace(budget)
    let stalled = try sample.results(PlanOptions(scratch: space))
    var paths: [String] = []
    while paths.isEmpty { try sample.slice(stalled, into: &paths) }
    #expect(budget.use.memoryBytes >= 4 << 10 && budget.use.fileBytes > 0)
    let waiter = Scratch(space)
    while try waiter.allocate(4 << 10) != nil {}
    clock.pass(seconds: 6)
    budget.tick()
    #expect(budget.use.fileBytes == 0)
    #expect(throws: ScratchError.revoked) { try sample.slice(stalled, into: &paths) }
    waiter.end()
    #expect(budget.use == (0, 0, 0))
  }

  /// Names and vectors that are kept count as well.
  @Test func partitionsAndVectorSearchesAreCounted() throws {
    let sample = try Sample()
    let budget = Self.budget(memoryBytesMax: 1 << 20)
    let options = PlanOptions(scratch: ScratchSpace(budget))
    var group = Query(collectionID: "c")
    group.includesDescendants = true
    let sampler = try sample.world.database.read { reader in
      try PartitionSampler(
        ResolvedQuery(group, in: sample.world.id), cutsMax: 3, reader.snapshot, at: reader.lastVersion(), options)
    }
    #expect(throws: ScratchError.queryMemory(bytesMax: 12 << 10)) {
      while try sample.world.database.read({ try sampler.slice($0.snapshot, units: 300) }) == nil {}
    }
    #expect(budget.use.memoryBytes > 0)
  }
}

/// A count of wakes.
private final class Wakes: Sendable {
  private let number = Atomic(0)
  var count: Int { number.load(ordering: .relaxed) }
  func add() { number.wrappingAdd(1, ordering: .relaxed) }
}

/// A clock that a test sets.
private final class ManualTime: Sendable {
  private let milliseconds = Atomic<Int64>(1)
  var now: Int64 { milliseconds.load(ordering: .relaxed) }
  func pass(seconds: Int64) { milliseconds.wrappingAdd(seconds * 1000, ordering: .relaxed) }
}

extension Query {
  fileprivate func limited(to limit: Int) -> Query {
    var query = self
    query.limit = limit
    return query
  }
}
