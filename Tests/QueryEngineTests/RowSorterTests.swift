import Basics
import DocumentModel
import Testing
import TestSupport
@testable import QueryEngine

@Suite struct RowSorterTests {
  private typealias Entry = (key: [UInt8], path: [UInt8])

  /// Without a limit on the number of entries. With less memory, many batches are written to disk.
  @Test(arguments: [13_000, 40_000, 64 << 20]) func sortsLikeAnArray(memoryBytesMax: Int) throws {
    let budget = Self.budget(memoryBytesMax: memoryBytesMax)
    let entries = Self.entries(seed: 7, count: 2_000)
    try Self.check(budget, entries, keptMax: nil)
  }

  /// With a limit, whether or not that many entries fit in one block.
  @Test(arguments: [0, 1, 10, 63, 64, 500, 1_999, 2_000, 2_001, 200_000]) func keepsTheLowest(count: Int) throws {
    for memoryBytesMax in [13_000, 80_000] {
      let entries = Self.entries(seed: UInt64(count), count: 2_000)
      try Self.check(Self.budget(memoryBytesMax: memoryBytesMax), entries, keptMax: count)
    }
  }

  /// A small limit needs one small block, however many entries there are.
  @Test func aSmallLimitNeedsLittleMemory() throws {
    let budget = ScratchBudget(ScratchBudget.Limits())
    let scratch = Scratch(ScratchSpace(budget))
    defer { scratch.end() }
    var sorter = RowSorter(scratch, keptMax: 20)
    for entry in Self.entries(seed: 3, count: 10_000, longKeys: false) {
      #expect(try sorter.add(entry.key, path: entry.path))
    }
    #expect(budget.use.memoryBytes <= 16 << 10)
    #expect(budget.use.fileBytes == 0)
  }

  /// Ten thousand entries of twenty-two thousand need no file, although they fill several chunks.
  @Test func aLargeLimitNeedsNoFile() throws {
    let budget = ScratchBudget(ScratchBudget.Limits())
    try Self.check(budget, Self.entries(seed: 4, count: 22_000), keptMax: 10_000, filesMax: 0)
  }

  @Test func sortsNoEntries() throws {
    let scratch = Scratch(ScratchSpace(ScratchBudget(ScratchBudget.Limits())))
    var sorted = try RowSorter(scratch, keptMax: nil).finish()
    #expect(try sorted.next() == nil)
  }

  /// Random entries, limits and budgets, with others that wait for memory now and then, and queries that end early.
  /// Results equal those of an array, and the budget is whole again.
  @Test(arguments: 0..<40) func randomSortsEqualAnArray(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let budget = Self.budget(
      memoryBytesMax: random.pick([13_000, 20_000, 40_000, 100_000, 1 << 20]),
      queryMemoryBytesMax: random.pick([8_192, 30_000, 1 << 20]))
    for round in 0..<3 {
      let prefix = random.pick([0, 0, 100, 1_500])
      let entries = Self.entries(
        seed: seed &* 100 &+ UInt64(round), count: Int.random(in: 0...(prefix == 0 ? 1_200 : 300), using: &random),
        prefix: prefix)
      let keptMax = random.pick([nil, nil, 1, 7, 100, 700])
      try Self.sort(budget, entries, keptMax: keptMax, &random)
      #expect(budget.use == (0, 0, 0), "seed \(seed), round \(round)")
    }
  }

  /// An entry that finds no memory waits with the sort, and is not lost.
  @Test func anEntryWaitsForMemory() throws {
    let budget = Self.budget(memoryBytesMax: 20_000)
    let holder = Scratch(ScratchSpace(budget))
    _ = try #require(try holder.allocate(8_192))
    _ = try #require(try holder.allocateOptional(8_192))
    let scratch = Scratch(ScratchSpace(budget))
    var sorter = RowSorter(scratch, keptMax: nil)
    let entries = Self.entries(seed: 1, count: 200)
    var next = 0
    while try next < entries.count && sorter.add(entries[next].key, path: entries[next].path) { next += 1 }
    #expect(next < entries.count, "the sort should have waited")
    #expect(scratch.wait {})
    #expect(try !sorter.resume())
    holder.end()
    #expect(!scratch.wait {})
    #expect(try sorter.resume())
    for entry in entries[(next + 1)...] { #expect(try sorter.add(entry.key, path: entry.path)) }
    var sorted = try sorter.finish()
    for entry in Self.sorted(entries) { #expect(try sorted.next() == entry.path) }
    scratch.end()
    #expect(budget.use == (0, 0, 0))
  }

  // MARK: Sorting

  /// Sorts with others that wait for memory now and then. Ends at a random place in one of five cases.
  private static func sort(
    _ budget: ScratchBudget, _ entries: [Entry], keptMax: Int?, _ random: inout SplitMix
  ) throws {
    let scratch = Scratch(ScratchSpace(budget))
    defer { scratch.end() }
    var others: [Scratch] = []
    defer { for other in others { other.end() } }
    let end = random.chance(oneIn: 5) ? Int.random(in: 0...2 * entries.count, using: &random) : Int.max
    var sorter = RowSorter(scratch, keptMax: keptMax)
    var steps = 0
    /// Now and then, another query comes that wants more memory than there is, or leaves.
    func change() throws {
      if random.chance(oneIn: 200) {
        let other = Scratch(ScratchSpace(budget))
        if try other.allocate(budget.limits.memoryBytesMax / 8 * 7) == nil { others.append(other) } else { other.end() }
      }
      if random.chance(oneIn: 200), let other = others.popLast() { other.end() }
    }
    for entry in entries {
      steps += 1
      if steps > end { return }
      try change()
      guard try !sorter.add(entry.key, path: entry.path) else { continue }
      // Only others can keep the memory.
      for other in others { other.end() }
      others = []
      #expect(try sorter.resume())
    }
    var sorted = try sorter.finish()
    for entry in Self.sorted(entries).prefix(keptMax ?? .max) {
      steps += 1
      if steps > end { return }
      try change()
      if random.chance(oneIn: 20) { try sorted.relieve() }
      let found = try sorted.next()
      try #require(found == entry.path)
    }
    if keptMax == nil { #expect(try sorted.next() == nil) }
  }

  /// Sorts, and compares the results with those of an array.
  private static func check(
    _ budget: ScratchBudget, _ entries: [Entry], keptMax: Int?, filesMax: Int = .max
  ) throws {
    let scratch = Scratch(ScratchSpace(budget))
    var sorter = RowSorter(scratch, keptMax: keptMax)
    for entry in entries { #expect(try sorter.add(entry.key, path: entry.path)) }
    var sorted = try sorter.finish()
    #expect(budget.use.fileBytes <= filesMax)
    for (index, entry) in Self.sorted(entries).prefix(keptMax ?? .max).enumerated() {
      let found = try #require(try sorted.next(), "entry \(index) is missing")
      try #require(found == entry.path, "entry \(index)")
    }
    if keptMax == nil { #expect(try sorted.next() == nil) }
    scratch.end()
    #expect(budget.use == (0, 0, 0))
  }

  /// A budget with chunks of 8 KiB.
  private static func budget(memoryBytesMax: Int, queryMemoryBytesMax: Int = 1 << 30) -> ScratchBudget {
    var limits = ScratchBudget.Limits()
    // An eighth is for small sorts, which get at most 4 KiB here.
    limits.memoryBytesMax = memoryBytesMax + memoryBytesMax / 7 + 1
    limits.queryMemoryBytesMax = queryMemoryBytesMax
    limits.chunkBytes = 8 << 10
    limits.smallBytesMax = 4 << 10
    return ScratchBudget(limits, hasTimer: false)
  }

  // MARK: Entries

  /// Returns entries with distinct keys, because a name ends each key. Some keys are very short, some are long, and all
  /// have a common prefix.
  private static func entries(
    seed: UInt64, count: Int, prefix: Int = 0, longKeys: Bool = true
  ) -> [Entry] {
    var random = SplitMix(seed: seed)
    let common = [UInt8](repeating: 0x42, count: prefix)
    return (0..<count).map { index in
      let length = longKeys && random.chance(oneIn: 20) ? 300 : Int.random(in: 0...3, using: &random)
      let key = common + (0..<length).map { _ in random.pick([0, 1, 0x7F, 0x80, 0xFF] as [UInt8]) }
      let name = Array("\(index)".utf8)
      return (key + [0] + name, index.isMultiple(of: 10) ? [] : name)
    }
  }

  private static func sorted(_ entries: [Entry]) -> [Entry] {
    entries.sorted { Ordering.raw($0.key, $1.key) == .less }
  }
}
