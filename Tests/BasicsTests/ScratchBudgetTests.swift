import Basics
import Synchronization
import Testing

@Suite struct ScratchBudgetTests {
  /// A budget of 1,024 bytes, of which sorts that are not small may use 896, in chunks of 256 bytes, with a clock.
  private final class Fixture: Sendable {
    let budget: ScratchBudget

    init(_ change: (inout ScratchBudget.Limits) -> Void = { _ in }) {
      var limits = ScratchBudget.Limits()
      limits.memoryBytesMax = 1024
      limits.queryMemoryBytesMax = 768
      limits.chunkBytes = 256
      limits.smallBytesMax = 64
      limits.fileBytesMax = 1000
      limits.queryFileBytesMax = 600
      limits.waitingMax = 2
      change(&limits)
      let clock = Clock()
      budget = ScratchBudget(limits, clock: { clock.now.load(ordering: .relaxed) }, hasTimer: false)
      self.clock = clock
    }

    final class Clock: Sendable {
      let now = Atomic<Int64>(1)
    }

    let clock: Clock
    private let woken = Atomic(0)

    func pass(seconds: Int64) {
      clock.now.wrappingAdd(seconds * 1000, ordering: .relaxed)
      budget.tick()
    }

    func scratch() -> Scratch { Scratch(ScratchSpace(budget)) }
    /// Registers a wake that ``wakeCount`` counts. Returns whether the query waits.
    func wait(_ scratch: Scratch) -> Bool { scratch.wait { self.woken.wrappingAdd(1, ordering: .relaxed) } }
    var wakeCount: Int { woken.load(ordering: .relaxed) }
  }

  @Test func memoryIsTakenAndGivenBack() throws {
    let fixture = Fixture()
    let scratch = fixture.scratch()
    let block = try #require(try scratch.allocate(256))
    _ = try #require(try scratch.allocateOptional(256))
    #expect(fixture.budget.use.memoryBytes == 512)
    scratch.free(block)
    #expect(fixture.budget.use.memoryBytes == 256)
    #expect(try scratch.cover(65))
    #expect(fixture.budget.use.memoryBytes == 384)
    scratch.clear()
    #expect(fixture.budget.use.memoryBytes == 128)
    scratch.end()
    scratch.end()
    #expect(fixture.budget.use == (0, 0, 0))
  }

  @Test func oneQueryHasALimit() throws {
    let fixture = Fixture()
    let scratch = fixture.scratch()
    for _ in 0..<3 { _ = try #require(try scratch.allocateOptional(256)) }
    #expect(try scratch.allocateOptional(256) == nil)
    scratch.end()
    let other = fixture.scratch()
    #expect(throws: ScratchError.queryMemory(bytesMax: 768)) { try other.cover(769) }
    other.end()
    #expect(fixture.budget.use == (0, 0, 0))
  }

  /// A query that waits is woken by memory that is given back, and others get none before it.
  @Test func queriesWaitInOrder() throws {
    let fixture = Fixture()
    let (first, second, third) = (fixture.scratch(), fixture.scratch(), fixture.scratch())
    for _ in 0..<3 { _ = try #require(try first.allocateOptional(256)) }
    #expect(try second.allocate(256) == nil)
    #expect(try third.allocate(256) == nil)
    #expect(fixture.wait(second) && fixture.wait(third))
    #expect(first.isNeeded)
    #expect(fixture.budget.use.waiting == 2)
    #expect(try first.allocateOptional(8) == nil, "others wait")
    let small = fixture.scratch()
    #expect(try small.allocate(64) != nil, "an eighth is for small sorts")
    first.clear()
    #expect(fixture.wakeCount == 2)
    #expect(!fixture.wait(second))
    #expect(try second.allocate(256) != nil)
    #expect(try third.allocate(256) != nil)
    #expect(fixture.budget.use.memoryBytes == 576)
    for scratch in [first, second, third, small] { scratch.end() }
    #expect(fixture.budget.use == (0, 0, 0))
  }

  @Test func theLineIsLimited() throws {
    let fixture = Fixture()
    let scratches = (0..<6).map { _ in fixture.scratch() }
    for scratch in scratches.prefix(3) { _ = try #require(try scratch.allocate(256)) }
    for scratch in scratches[3..<5] { #expect(try scratch.allocate(256) == nil) }
    #expect(throws: ScratchError.tooManyWaiting(2)) { try scratches[5].allocate(256) }
    // A query that ends leaves the line.
    scratches[3].end()
    #expect(fixture.budget.use.waiting == 1)
    #expect(try scratches[5].allocate(256) == nil)
    for scratch in scratches { scratch.end() }
    #expect(fixture.budget.use == (0, 0, 0))
  }

  @Test func aWaitHasALimit() throws {
    let fixture = Fixture()
    let (holder, waiter) = (fixture.scratch(), fixture.scratch())
    for _ in 0..<3 { _ = try #require(try holder.allocateOptional(256)) }
    #expect(try waiter.allocate(256) == nil)
    #expect(fixture.wait(waiter))
    fixture.pass(seconds: 9)
    #expect(fixture.wakeCount == 0)
    fixture.pass(seconds: 1)
    #expect(fixture.wakeCount == 1)
    #expect(throws: ScratchError.waitedTooLong(seconds: 10)) { try waiter.allocate(256) }
    holder.end()
    waiter.end()
    #expect(fixture.budget.use == (0, 0, 0))
  }

  /// A granted query that ends before it takes its memory gives it back.
  @Test func grantsOfEndedQueriesReturn() throws {
    let fixture = Fixture()
    let (holder, waiter) = (fixture.scratch(), fixture.scratch())
    for _ in 0..<3 { _ = try #require(try holder.allocateOptional(256)) }
    #expect(try waiter.allocate(256) == nil)
    holder.end()
    #expect(fixture.budget.use.memoryBytes == 256)
    waiter.end()
    #expect(fixture.budget.use == (0, 0, 0))
  }

  /// Memory of a client that does not read is taken away, but only while others wait.
  @Test func idleQueriesLoseTheirMemory() throws {
    let fixture = Fixture()
    let (idle, active, waiter) = (fixture.scratch(), fixture.scratch(), fixture.scratch())
    for _ in 0..<2 { _ = try #require(try idle.allocateOptional(256)) }
    _ = try #require(try active.allocate(256))
    _ = try Self.append([1, 2, 3], to: idle)
    idle.pause()
    fixture.pass(seconds: 50)
    try idle.begin()
    idle.pause()
    #expect(try waiter.allocate(256) == nil)
    #expect(fixture.wait(waiter))
    fixture.pass(seconds: 4)
    #expect(fixture.wakeCount == 0)
    fixture.pass(seconds: 1)
    #expect(fixture.wakeCount == 1)
    #expect(fixture.budget.use.fileBytes == 0)
    #expect(throws: ScratchError.revoked) { try idle.begin() }
    #expect(try waiter.allocate(256) != nil)
    for scratch in [idle, active, waiter] { scratch.end() }
    #expect(fixture.budget.use == (0, 0, 0))
  }

  /// A query in the middle of a slice keeps its memory until the slice ends.
  @Test func oldQueriesLoseTheirMemoryAfterTheirSlice() throws {
    let fixture = Fixture()
    let (old, waiter) = (fixture.scratch(), fixture.scratch())
    let block = try #require(try old.allocate(256))
    for _ in 0..<2 { _ = try #require(try old.allocateOptional(256)) }
    fixture.pass(seconds: 59)
    #expect(try waiter.allocate(256) == nil)
    fixture.pass(seconds: 0)
    #expect(fixture.budget.use.memoryBytes == 768)
    fixture.pass(seconds: 1)
    block[0] = 1
    #expect(fixture.budget.use.memoryBytes == 768)
    old.pause()
    #expect(fixture.budget.use.memoryBytes == 256, "the memory granted to the waiter")
    #expect(throws: ScratchError.revoked) { try old.begin() }
    #expect(try waiter.allocate(256) != nil)
    waiter.end()
    #expect(fixture.budget.use == (0, 0, 0))
  }

  @Test func filesHaveLimits() throws {
    let fixture = Fixture()
    let (first, second) = (fixture.scratch(), fixture.scratch())
    let bytes = (0..<600).map { UInt8(truncatingIfNeeded: $0) }
    #expect(try Self.append(bytes[..<400], to: first) == 0)
    #expect(try Self.append(bytes[400...], to: first) == 400)
    #expect(throws: ScratchError.queryFile(bytesMax: 600)) { try Self.append(bytes[..<1], to: first) }
    #expect(throws: ScratchError.allFiles(bytesMax: 1000)) { try Self.append(bytes[..<401], to: second) }
    #expect(try Self.append(bytes[..<400], to: second) == 0)
    var read = [UInt8](repeating: 0, count: 10)
    try read.withUnsafeMutableBytes { try first.read(at: 395, into: $0) }
    #expect(read == Array(bytes[395..<405]))
    #expect(fixture.budget.use.fileBytes == 1000)
    second.clear()
    #expect(fixture.budget.use.fileBytes == 600)
    for scratch in [first, second] { scratch.end() }
    #expect(fixture.budget.use == (0, 0, 0))
  }

  private static func append(_ bytes: ArraySlice<UInt8>, to scratch: Scratch) throws -> Int {
    try bytes.withUnsafeBytes { try scratch.append($0) }
  }

  /// A directory that does not exist is replaced by the system's temporary directory.
  @Test func filesNeedNoDirectory() throws {
    let fixture = Fixture()
    let scratch = Scratch(ScratchSpace(fixture.budget, directory: "/nonexistent/directory"))
    defer { scratch.end() }
    #expect(try Self.append([7], to: scratch) == 0)
  }
}
