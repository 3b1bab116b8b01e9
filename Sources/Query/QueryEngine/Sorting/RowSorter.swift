package import Basics
import DocumentModel

/// Sorts the results of a query that no index gives in order. Keys and paths are in scratch memory as long as there is
/// some, the rest is in a temporary file.
///
/// Entries are sorted in batches as they arrive, so that no single step takes long; at the end the batches are merged.
/// With a limit on results, whenever twice as many entries are held, the higher ones are dropped.
package struct RowSorter {
  private let scratch: Scratch
  /// The number of lowest entries to keep, or `nil` for all.
  private let keptMax: Int?
  private var batch: SortBatch?
  /// The full batches in memory, each in order.
  private var batches: [SortBatch] = []
  /// The batches in the file, each in order.
  private var spilled: [Range<Int>] = []
  /// The entry for which the query waits for memory.
  private var waiting: (key: [UInt8], path: [UInt8])?
  /// The number of entries in memory, and the number at which the higher ones are dropped.
  private var held = 0
  private var dropAt = Int.max
  /// A key that ``keptMax`` entries do not exceed. An entry above it is not kept.
  private var highest: [UInt8]?

  /// Sorts all entries, or keeps only the lowest `keptMax`.
  package init(_ scratch: Scratch, keptMax: Int?) {
    self.scratch = scratch
    self.keptMax = keptMax
    if let keptMax, keptMax <= Self.droppingMax { dropAt = max(2 * keptMax, Self.droppingMin) }
  }

  /// The largest number of kept entries with which others are dropped: the longest page of a list, and one more.
  /// Dropping is one step, which must not take long.
  private static let droppingMax = 10_001
  private static let droppingMin = 64
  /// The size of the first block, in bytes. Each further one is four times larger, up to a chunk.
  private static let firstBytes = 4 << 10
  /// The number of batches in memory that are written to the file for each one that is added while others wait.
  private static let relievedMax = 2

  /// Whether an entry with this key might be kept. If not, it need not be added.
  package func mayKeep(_ key: [UInt8]) -> Bool {
    guard let highest else { return true }
    return Ordering.raw(key, highest) == .less
  }

  /// Adds an entry. Returns `false` if the query must wait for memory. Then call ``resume()`` in the next slice.
  /// - Throws: ``ScratchError`` if there is neither memory nor disk space.
  package mutating func add(_ key: [UInt8], path: [UInt8]) throws(ScratchError) -> Bool {
    guard keptMax != 0 else { return true }
    if let highest, Ordering.raw(key, highest) != .less { return true }
    guard try makeRoom(key.count + path.count) else {
      waiting = (key, path)
      return false
    }
    batch?.add(key, path)
    held += 1
    if held >= dropAt { try dropHighest() }
    return true
  }

  /// Adds the entry for which the query waited. Returns `false` if it must still wait.
  /// - Throws: ``ScratchError`` if the query needs more than its limits or has waited too long.
  package mutating func resume() throws(ScratchError) -> Bool {
    guard let (key, path) = waiting.take() else { return true }
    return try add(key, path: path)
  }

  /// Returns all entries in order. Call it only if the query does not wait.
  /// - Throws: ``ScratchError`` if the temporary file cannot be written.
  package consuming func finish() throws(ScratchError) -> SortedEntries {
    if var last = batch.take() {
      last.sort()
      guard !spilled.isEmpty else {
        batches.append(last)
        return SortedEntries(scratch, batches)
      }
      try spill(last)
      return try SortedEntries(scratch, batches, spilled, windows: last.block)
    }
    return SortedEntries(scratch, batches)
  }

  // MARK: Memory

  /// Makes room in the batch for a key and a path of `count` bytes together. Returns `false` if the query must wait.
  private mutating func makeRoom(_ count: Int) throws(ScratchError) -> Bool {
    guard count + SortBatch.entryBytes <= chunkBytes else { throw .queryMemory(bytesMax: chunkBytes) }
    while batch?.fits(count) != true {
      if let batch, batch.block.count >= chunkBytes {
        try endBatch()
      } else {
        guard try grow(count) else { return false }
      }
    }
    return true
  }

  private var chunkBytes: Int { scratch.limits.chunkBytes }

  /// Moves the entries to a larger block.
  private mutating func grow(_ count: Int) throws(ScratchError) -> Bool {
    let former = batch?.block
    let wanted = (batch.map { $0.block.count - $0.room } ?? 0) + count + SortBatch.entryBytes
    var size = former.map { 4 * $0.count } ?? Self.firstBytes
    while size < wanted { size *= 4 }
    if size > scratch.limits.smallBytesMax { size = chunkBytes }
    guard let block = try scratch.allocate(size) else { return false }
    batch = batch?.moved(to: block) ?? SortBatch(block)
    if let former { scratch.free(former) }
    return true
  }

  /// Sorts the batch, which is full, and begins the next one: in new memory, or in that of this one, which is then
  /// written to the file.
  private mutating func endBatch() throws(ScratchError) {
    guard var full = batch.take() else { return }
    full.sort()
    if let keptMax { full.keepLowest(keptMax) }
    if let block = try scratch.allocateOptional(chunkBytes) {
      batches.append(full)
      batch = SortBatch(block)
      return
    }
    try spill(full)
    batch = SortBatch(full.block)
    guard scratch.isNeeded else { return }
    for _ in 0..<Self.relievedMax {
      guard let relieved = batches.popLast() else { return }
      try spill(relieved)
      scratch.free(relieved.block)
    }
  }

  /// Writes a sorted batch to the file.
  private mutating func spill(_ batch: SortBatch) throws(ScratchError) {
    guard batch.count > 0 else { return }
    held -= batch.count
    spilled.append(try scratch.append(batch, from: 0))
  }

  // MARK: Dropping

  /// Drops the entries in memory that are not among the lowest ``keptMax`` of them.
  private mutating func dropHighest() throws(ScratchError) {
    guard let keptMax, var last = batch.take() else { return }
    last.sort()
    defer {
      held = keptMax
      dropAt = max(2 * keptMax, keptMax + Self.droppingMin)
    }
    guard !batches.isEmpty else {
      last.keepLowest(keptMax)
      highest = Array(last.key(keptMax - 1))
      batch = last
      return
    }
    batches.append(last)
    var entries = SortedEntries(scratch, batches)
    let (counts, key) = try entries.lowest(keptMax)
    highest = key
    for (index, count) in counts.enumerated() { batches[index].keepLowest(count) }
    var kept: [SortBatch] = []
    for batch in batches {
      if let target = kept.last, batch.bytes + batch.count * SortBatch.entryBytes <= target.room {
        kept[kept.count - 1].add(batch)
        scratch.free(batch.block)
      } else {
        kept.append(batch)
      }
    }
    for index in kept.indices { kept[index].sort() }
    batch = kept.popLast()
    batches = kept
  }
}

extension Scratch {
  /// The bytes that are written to the file at once.
  private static var writtenBytes: Int { 64 << 10 }

  /// Appends the entries of a sorted batch from an index on to the file, and returns the range of their bytes.
  func append(_ batch: SortBatch, from first: Int) throws(ScratchError) -> Range<Int> {
    let start = fileEnd
    var buffer: [UInt8] = []
    buffer.reserveCapacity(Self.writtenBytes)
    for index in first..<batch.count {
      let entry = batch.entry(index)
      if !buffer.isEmpty, buffer.count + entry.count > Self.writtenBytes {
        try write(&buffer)
      }
      buffer.append(contentsOf: entry)
    }
    try write(&buffer)
    return start..<fileEnd
  }

  private func write(_ buffer: inout [UInt8]) throws(ScratchError) {
    let result = buffer.withUnsafeBytes { bytes in
      Result { () throws(ScratchError) in try append(bytes) }
    }
    _ = try result.get()
    buffer.removeAll(keepingCapacity: true)
  }
}
