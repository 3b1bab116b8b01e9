import DocumentModel
import Glibc
import KeyValue

/// Sorts the results of a query that no index gives in order. Keys and paths are in memory up to a limit, the rest
/// is in a temporary file.
///
/// With a small limit on results, only that many are kept. Otherwise entries are sorted in batches as they arrive,
/// so that no single step takes long. Batches beyond the memory limit are written to the file. At the end all
/// batches are merged.
struct RowSorter {
  private let memoryBytesMax: Int
  private let batchBytesMax: Int
  private var lowest: LowestEntries?
  private var batch = SortBatch()
  private var batches: [SortBatch] = []
  private var memoryBytes = 0
  private var spill: SpillFile?
  private var spilled: [SpilledBatch] = []

  /// Sorts all entries, or keeps only the lowest `keptMax`. One batch takes about `batchBytesMax` bytes, all batches
  /// in memory together at most `memoryBytesMax`.
  init(keptMax: Int?, memoryBytesMax: Int = 64 << 20, batchBytesMax: Int = 512 << 10) {
    self.memoryBytesMax = memoryBytesMax
    self.batchBytesMax = batchBytesMax
    if let keptMax, keptMax <= Self.lowestMax { lowest = LowestEntries(count: keptMax) }
  }

  /// The largest number of lowest entries kept in a heap. More entries are cheaper to sort in batches.
  private static let lowestMax = 10_000

  mutating func add(_ key: [UInt8], path: [UInt8]) throws(StorageError) {
    if lowest != nil {
      lowest?.add(key, path)
      return
    }
    batch.add(key, path)
    if batch.bytes >= batchBytesMax { try endBatch() }
  }

  /// Returns all entries in order.
  consuming func finish() throws(StorageError) -> SortedEntries {
    if let lowest { return SortedEntries([SortBatch(lowest.sorted())], []) }
    batch.sort()
    batches.append(batch)
    return SortedEntries(batches, spilled)
  }

  private mutating func endBatch() throws(StorageError) {
    batch.sort()
    if memoryBytes + batch.bytes <= memoryBytesMax {
      memoryBytes += batch.bytes
      batches.append(batch)
    } else {
      let file: SpillFile
      if let spill { file = spill } else { file = try SpillFile() }
      spill = file
      spilled.append(try file.append(batch))
    }
    batch = SortBatch()
  }
}

/// Entries stored contiguously in one array, and their order.
struct SortBatch {
  private struct Place {
    var start: Int
    var keyCount: Int
    var pathCount: Int
  }

  private var memory: [UInt8] = []
  private var places: [Place] = []

  init() {}

  /// Wraps entries that are already in order.
  init(_ entries: [(key: [UInt8], path: [UInt8])]) {
    for (key, path) in entries { add(key, path) }
  }

  var count: Int { places.count }
  /// The memory that the batch uses, in bytes.
  var bytes: Int { memory.count + places.count * MemoryLayout<Place>.stride }

  mutating func add(_ key: [UInt8], _ path: [UInt8]) {
    places.append(Place(start: memory.count, keyCount: key.count, pathCount: path.count))
    memory.append(contentsOf: key)
    memory.append(contentsOf: path)
  }

  mutating func sort() {
    memory.withUnsafeBytes { memory in
      places.sort { Ordering.raw(Self.key($0, memory), Self.key($1, memory)) == .less }
    }
  }

  func key(_ index: Int) -> ArraySlice<UInt8> {
    memory[places[index].start..<places[index].start + places[index].keyCount]
  }

  func path(_ index: Int) -> ArraySlice<UInt8> {
    let start = places[index].start + places[index].keyCount
    return memory[start..<start + places[index].pathCount]
  }

  private static func key(_ place: Place, _ memory: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: memory[place.start..<place.start + place.keyCount])
  }
}

/// An iterator that merges sorted batches: each step takes the lowest entry of all batches.
struct SortedEntries {
  /// The rest of one batch.
  private enum Run {
    case memory(SortBatch, next: Int)
    case file(SpilledBatch)
  }

  private var runs: [Run] = []
  /// The first remaining entry of each run: a heap with the lowest entry at the top.
  private var heads: [(key: ArraySlice<UInt8>, path: ArraySlice<UInt8>, run: Int)] = []
  private var isStarted = false

  init(_ batches: [SortBatch], _ spilled: [SpilledBatch]) {
    runs = batches.map { .memory($0, next: 0) } + spilled.map { .file($0) }
  }

  /// Returns the path of the next entry, or `nil` at the end.
  mutating func next() throws(StorageError) -> [UInt8]? {
    if !isStarted {
      isStarted = true
      for run in runs.indices {
        guard let (key, path) = try take(run) else { continue }
        heads.append((key, path, run))
        siftUp()
      }
    }
    guard let top = heads.first else { return nil }
    if let (key, path) = try take(top.run) {
      heads[0] = (key, path, top.run)
    } else {
      let last = heads.removeLast()
      if !heads.isEmpty { heads[0] = last }
    }
    siftDown()
    return Array(top.path)
  }

  private mutating func take(_ run: Int) throws(StorageError) -> (ArraySlice<UInt8>, ArraySlice<UInt8>)? {
    switch runs[run] {
    case .memory(let batch, let next):
      guard next < batch.count else { return nil }
      runs[run] = .memory(batch, next: next + 1)
      return (batch.key(next), batch.path(next))
    case .file(var batch):
      let entry = try batch.next()
      runs[run] = .file(batch)
      return entry
    }
  }

  private func precedes(_ a: Int, _ b: Int) -> Bool {
    heads[a].key.withUnsafeBytes { a in heads[b].key.withUnsafeBytes { b in Ordering.raw(a, b) == .less } }
  }

  private mutating func siftUp() {
    var child = heads.count - 1
    while child > 0, precedes(child, (child - 1) / 2) {
      heads.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private mutating func siftDown() {
    var parent = 0
    while true {
      var lowest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heads.count && precedes(child, lowest) {
        lowest = child
      }
      guard lowest != parent else { return }
      heads.swapAt(parent, lowest)
      parent = lowest
    }
  }
}

/// The lowest `countMax` of all entries added: a heap with the highest of them at the top.
struct LowestEntries {
  private let countMax: Int
  private var heap: [(key: [UInt8], path: [UInt8])] = []

  init(count: Int) { countMax = count }

  mutating func add(_ key: [UInt8], _ path: [UInt8]) {
    guard countMax > 0 else { return }
    if heap.count == countMax {
      guard Ordering.raw(key, heap[0].key) == .less else { return }
      heap[0] = (key, path)
      siftDown()
      return
    }
    heap.append((key, path))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard precedes(parent, child) else { return }
      heap.swapAt(parent, child)
      child = parent
    }
  }

  func sorted() -> [(key: [UInt8], path: [UInt8])] { heap.sorted { Ordering.raw($0.key, $1.key) == .less } }

  private mutating func siftDown() {
    var parent = 0
    while true {
      var highest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && precedes(highest, child) {
        highest = child
      }
      guard highest != parent else { return }
      heap.swapAt(parent, highest)
      parent = highest
    }
  }

  private func precedes(_ a: Int, _ b: Int) -> Bool { Ordering.raw(heap[a].key, heap[b].key) == .less }
}
