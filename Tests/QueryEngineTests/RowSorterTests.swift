import DocumentModel
import Testing
import TestSupport
@testable import QueryEngine

@Suite struct RowSorterTests {
  private typealias Entry = (key: [UInt8], path: [UInt8])

  /// Without a limit on the number of entries. The batches are so small that many are written to disk.
  @Test(arguments: [0, 20_000, 64 << 20]) func sortsLikeAnArray(memoryBytesMax: Int) throws {
    let entries = Self.entries(seed: 7, count: 2_000)
    var sorter = RowSorter(keptMax: nil, memoryBytesMax: memoryBytesMax, batchBytesMax: 2_000)
    for entry in entries { try sorter.add(entry.key, path: entry.path) }
    try Self.check(sorter.finish(), against: Self.sorted(entries))
  }

  /// With a limit, whether or not that many entries fit in a heap.
  @Test(arguments: [0, 1, 10, 1_999, 2_000, 2_001, 200_000]) func keepsTheLowest(count: Int) throws {
    let entries = Self.entries(seed: UInt64(count), count: 2_000)
    var sorter = RowSorter(keptMax: count, memoryBytesMax: 10_000, batchBytesMax: 1_000)
    for entry in entries { try sorter.add(entry.key, path: entry.path) }
    try Self.check(sorter.finish(), against: Array(Self.sorted(entries).prefix(count)))
  }

  @Test func sortsNoEntries() throws {
    var sorted = try RowSorter(keptMax: nil).finish()
    #expect(try sorted.next() == nil)
  }

  /// Returns entries with distinct keys, because a name ends each key. Some keys are very short, some are long.
  private static func entries(seed: UInt64, count: Int) -> [Entry] {
    var random = SplitMix(seed: seed)
    return (0..<count).map { index in
      let length = random.chance(oneIn: 20) ? 300 : Int.random(in: 0...3, using: &random)
      let key = (0..<length).map { _ in random.pick([0, 1, 0x7F, 0x80, 0xFF] as [UInt8]) }
      let name = Array("\(index)".utf8)
      return (key + [0] + name, index.isMultiple(of: 10) ? [] : name)
    }
  }

  private static func sorted(_ entries: [Entry]) -> [Entry] {
    entries.sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }

  private static func check(_ sorted: consuming SortedEntries, against expected: [Entry]) throws {
    for (index, entry) in expected.enumerated() {
      let found = try #require(try sorted.next(), "entry \(index) of \(expected.count) is missing")
      #expect(found == entry.path, "entry \(index)")
    }
    #expect(try sorted.next() == nil)
  }
}
