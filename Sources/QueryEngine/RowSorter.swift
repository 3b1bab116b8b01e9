import DocumentModel
import Glibc
import KeyValueStore

/// Sorts the results of a query that no index gives in order: keys and paths in memory up to a bound, the rest in
/// temporary files.
///
/// With a limit only so many are kept. Without one, memory stays below a bound whatever the number of
/// results: full batches are sorted, written to an unlinked file, and merged at the end.
struct RowSorter {
  typealias Entry = (key: [UInt8], path: [UInt8])

  private let memoryBytesMax: Int
  private var heap: LowestEntries?
  private var batch: [Entry] = []
  private var batchBytes = 0
  private var runs: [SortedRun] = []

  /// Sorts all entries, or keeps the lowest `keptMax`; a batch in memory takes about `memoryBytesMax` bytes.
  init(keptMax: Int?, memoryBytesMax: Int = 64 << 20) {
    self.memoryBytesMax = memoryBytesMax
    if let keptMax, keptMax <= Self.heapEntriesMax { heap = LowestEntries(count: keptMax) }
  }

  private static let heapEntriesMax = 100_000

  mutating func add(_ key: [UInt8], path: [UInt8]) throws(StorageError) {
    if heap != nil {
      heap?.add(key, path)
      return
    }
    batch.append((key, path))
    batchBytes += key.count + path.count + 96
    if batchBytes >= memoryBytesMax { try spill() }
  }

  /// The entries in order.
  consuming func finish() throws(StorageError) -> SortedEntries {
    if let heap { return SortedEntries(memory: heap.sorted(), runs: []) }
    batch.sort { Ordering.bytes($0.key, $1.key) == .less }
    return SortedEntries(memory: batch, runs: runs)
  }

  private mutating func spill() throws(StorageError) {
    batch.sort { Ordering.bytes($0.key, $1.key) == .less }
    runs.append(try SortedRun(batch))
    batch.removeAll(keepingCapacity: true)
    batchBytes = 0
  }
}

/// Sorted entries to be taken one by one: a batch in memory and runs on disk, merged.
final class SortedEntries {
  private let memory: [RowSorter.Entry]
  private var nextInMemory = 0
  private let runs: [SortedRun]
  private var heads: [RowSorter.Entry?] = []

  init(memory: [RowSorter.Entry], runs: [SortedRun]) {
    self.memory = memory
    self.runs = runs
  }

  func next() throws(StorageError) -> RowSorter.Entry? {
    if heads.count < runs.count {
      for run in runs { heads.append(try run.next()) }
    }
    var lowest: Int?
    for (index, head) in heads.enumerated() {
      guard let head else { continue }
      if let known = lowest, let best = heads[known], Ordering.bytes(head.key, best.key) != .less { continue }
      lowest = index
    }
    let inMemory = nextInMemory < memory.count ? memory[nextInMemory] : nil
    guard let lowest, let head = heads[lowest] else {
      nextInMemory += 1
      return inMemory
    }
    if let inMemory, Ordering.bytes(inMemory.key, head.key) == .less {
      nextInMemory += 1
      return inMemory
    }
    heads[lowest] = try runs[lowest].next()
    return head
  }
}

/// A sorted batch in an unlinked temporary file; read back in order, a block at a time.
final class SortedRun {
  private let file: UnsafeMutablePointer<FILE>

  init(_ entries: [RowSorter.Entry]) throws(StorageError) {
    guard let file = tmpfile() else { throw .system(operation: "tmpfile", path: "temporary directory", code: errno) }
    self.file = file
    for (key, path) in entries {
      var sizes = (UInt32(key.count), UInt32(path.count))
      guard fwrite(&sizes, 8, 1, file) == 1, Self.write(key, file), Self.write(path, file) else {
        throw .diskFull(path: "temporary directory")
      }
    }
    rewind(file)
  }

  deinit { fclose(file) }

  func next() throws(StorageError) -> RowSorter.Entry? {
    var sizes: (UInt32, UInt32) = (0, 0)
    guard fread(&sizes, 8, 1, file) == 1 else { return nil }
    guard let key = Self.read(Int(sizes.0), file), let path = Self.read(Int(sizes.1), file) else {
      throw .corruption(path: "temporary file", detail: "a sorted run ends early")
    }
    return (key, path)
  }

  private static func write(_ bytes: [UInt8], _ file: UnsafeMutablePointer<FILE>) -> Bool {
    bytes.isEmpty || fwrite(bytes, bytes.count, 1, file) == 1
  }

  private static func read(_ count: Int, _ file: UnsafeMutablePointer<FILE>) -> [UInt8]? {
    guard count > 0 else { return [] }
    var isWhole = false
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      isWhole = fread(buffer.baseAddress, count, 1, file) == 1
      initialized = isWhole ? count : 0
    }
    return isWhole ? bytes : nil
  }
}

/// The lowest so many of the entries it was shown: a heap with the highest of them on top.
struct LowestEntries {
  private let countMax: Int
  private var heap: [RowSorter.Entry] = []

  init(count: Int) { countMax = count }

  mutating func add(_ key: [UInt8], _ path: [UInt8]) {
    guard countMax > 0 else { return }
    if heap.count == countMax {
      guard Ordering.bytes(key, heap[0].key) == .less else { return }
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

  func sorted() -> [RowSorter.Entry] { heap.sorted { Ordering.bytes($0.key, $1.key) == .less } }

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

  private func precedes(_ a: Int, _ b: Int) -> Bool { Ordering.bytes(heap[a].key, heap[b].key) == .less }
}
