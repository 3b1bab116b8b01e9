import DocumentModel
import KeyEncoding

/// The nearest `countMax` of all documents added: a heap with the farthest of them at the top.
///
/// Documents at equal distances are ordered by name. Memory: a path and its code for each document kept.
struct NearestHeap {
  /// A document in the heap.
  struct Entry {
    /// The rank of the document: the lower, the nearer.
    var rank: Rank
    /// The code of the document's name.
    var nameCode: [UInt8]
    var path: ResourcePath
    /// The distance in the query's measure. For DOT_PRODUCT a greater value is nearer.
    var distance: Double

    /// The memory of the entry in bytes, about.
    fileprivate var bytes: Int { MemoryLayout<Entry>.stride + 64 + nameCode.count + path.bytes.count }
  }

  /// A total order of distances: NaN is last, and both zeros are equal.
  struct Rank: Comparable {
    private let bits: UInt64

    init(_ distance: Double) {
      let pattern = (distance + 0.0).bitPattern
      bits = distance.isNaN ? .max : (pattern >> 63 == 0 ? pattern | 1 << 63 : ~pattern)
    }

    static func < (a: Rank, b: Rank) -> Bool { a.bits < b.bits }
  }

  private let countMax: Int
  private var entries: [Entry] = []
  /// The memory of the documents kept, in bytes.
  private(set) var bytes = 0

  /// Keeps the `countMax` nearest documents. `countMax` is at least 1.
  init(countMax: Int) { self.countMax = countMax }

  /// The distance of the farthest document kept, if the heap is full. Another document must be at least as near to
  /// be added.
  var farthestDistance: Double? { entries.count == countMax ? entries[0].distance : nil }

  /// Adds a document. Allocates only if the document is kept or is as near as the farthest one.
  mutating func add(_ rank: Rank, _ path: ResourcePath, distance: Double) {
    guard entries.count == countMax else {
      let entry = Entry(rank: rank, nameCode: NameCode.encode(path), path: path, distance: distance)
      entries.append(entry)
      bytes += entry.bytes
      siftUp()
      return
    }
    guard rank <= entries[0].rank else { return }
    let entry = Entry(rank: rank, nameCode: NameCode.encode(path), path: path, distance: distance)
    guard Self.precedes(entry, entries[0]) else { return }
    bytes += entry.bytes - entries[0].bytes
    entries[0] = entry
    siftDown()
  }

  /// Returns the documents from the nearest to the farthest.
  consuming func sorted() -> [Entry] { entries.sorted(by: Self.precedes) }

  private mutating func siftUp() {
    var child = entries.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard Self.precedes(entries[parent], entries[child]) else { return }
      entries.swapAt(parent, child)
      child = parent
    }
  }

  private mutating func siftDown() {
    var parent = 0
    while true {
      var farthest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < entries.count && Self.precedes(entries[farthest], entries[child]) {
        farthest = child
      }
      guard farthest != parent else { return }
      entries.swapAt(parent, farthest)
      parent = farthest
    }
  }

  private static func precedes(_ a: Entry, _ b: Entry) -> Bool {
    a.rank == b.rank ? Ordering.bytes(a.nameCode, b.nameCode) == .less : a.rank < b.rank
  }
}
