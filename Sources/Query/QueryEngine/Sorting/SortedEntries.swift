package import Basics
import DocumentModel

/// An iterator that merges sorted batches in memory and in the temporary file: each step takes the lowest entry of all.
///
/// Of each batch in the file, a small part is in memory (its window). With many batches the windows become smaller, so
/// that all of them fit in one block; parts of keys and paths that do not fit are read when they are needed.
package struct SortedEntries {
  /// The rest of one batch.
  private struct Run {
    var batch: SortBatch?
    /// In memory: the index of the first entry.
    var next = 0
    /// In the file: the offset of the first entry, and the end of the batch.
    var offset = 0
    var end = 0
    /// In the file: the offset and the number of the bytes in the window.
    var windowOffset = 0
    var windowCount = 0
    /// The first entry: the lengths of key and path, and the part of the key that is in memory.
    var keyCount = 0
    var pathCount = 0
    var key = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  private let scratch: Scratch
  private var runs: [Run]
  /// The block with the windows of all runs, once some are in the file.
  private var windows: UnsafeMutableRawBufferPointer?
  private var windowBytes = 0
  /// The first entries of the runs that are not at their end: a heap with the lowest at the top. The keys may be
  /// incomplete.
  private var heap: [(key: UnsafeRawBufferPointer, run: Int)] = []
  private var isStarted = false

  private static let windowBytesMax = 8 << 10
  private static let windowBytesMin = 64

  /// Merges batches in memory.
  init(_ scratch: Scratch, _ batches: [SortBatch]) {
    self.scratch = scratch
    runs = batches.map { Run(batch: $0) }
  }

  /// Merges batches in memory with others in the file. `windows` is a block that no batch uses.
  /// - Throws: ``ScratchError/queryFile(bytesMax:)`` if there are too many.
  init(
    _ scratch: Scratch, _ batches: [SortBatch], _ spilled: [Range<Int>], windows: UnsafeMutableRawBufferPointer
  ) throws(ScratchError) {
    self.init(scratch, batches)
    runs += spilled.map { Run(offset: $0.lowerBound, end: $0.upperBound) }
    try setWindows(windows)
  }

  /// Merges batches that ``SortedRun`` has written. `windows` is a block of scratch memory, which the iterator uses.
  /// - Throws: ``ScratchError/queryFile(bytesMax:)`` if there are too many.
  package init(
    _ scratch: Scratch, _ spilled: [Range<Int>], windows: UnsafeMutableRawBufferPointer
  ) throws(ScratchError) {
    try self.init(scratch, [], spilled, windows: windows)
  }

  private mutating func setWindows(_ block: UnsafeMutableRawBufferPointer) throws(ScratchError) {
    windowBytes = min(Self.windowBytesMax, block.count / runs.count)
    guard windowBytes >= Self.windowBytesMin else { throw .queryFile(bytesMax: scratch.limits.queryFileBytesMax) }
    windows = block
  }

  /// Returns the path of the next entry, or `nil` at the end.
  /// - Throws: ``ScratchError`` if the file cannot be read.
  package mutating func next() throws(ScratchError) -> [UInt8]? {
    try start()
    guard let top = heap.first else { return nil }
    let path = try path(top.run)
    try advance()
    return path
  }

  /// Returns how many of the lowest `count` entries each batch has, and the key of the last of them. All batches are in
  /// memory and have at least as many entries together.
  mutating func lowest(_ count: Int) throws(ScratchError) -> (counts: [Int], key: [UInt8]) {
    try start()
    for _ in 1..<count { try advance() }
    guard let top = heap.first else { return (runs.map(\.next), []) }
    runs[top.run].next += 1
    return (runs.map(\.next), Array(top.key))
  }

  /// Writes one batch in memory to the file, if other queries need the memory. Call it once per slice.
  /// - Throws: ``ScratchError`` if the file cannot be written.
  package mutating func relieve() throws(ScratchError) {
    guard scratch.isNeeded, let index = runs.lastIndex(where: { $0.batch != nil }), let batch = runs[index].batch,
      windows != nil || runs.count > 1
    else { return }
    // Without room in the file, the query keeps its memory.
    guard let range = try? scratch.append(batch, from: runs[index].next) else { return }
    if windows == nil { try setWindows(batch.block) } else { scratch.free(batch.block) }
    runs[index] = Run(offset: range.lowerBound, end: range.upperBound)
    if isStarted, try load(index), let place = heap.firstIndex(where: { $0.run == index }) {
      heap[place].key = runs[index].key
    }
  }

  // MARK: The heap

  private mutating func start() throws(ScratchError) {
    guard !isStarted else { return }
    isStarted = true
    for run in runs.indices where try load(run) {
      heap.append((runs[run].key, run))
      try siftUp()
    }
  }

  /// Goes to the entry after the lowest one.
  private mutating func advance() throws(ScratchError) {
    guard let top = heap.first?.run else { return }
    if runs[top].batch != nil {
      runs[top].next += 1
    } else {
      runs[top].offset += SortBatch.headBytes + runs[top].keyCount + runs[top].pathCount
    }
    if try load(top) {
      heap[0].key = runs[top].key
    } else {
      let last = heap.removeLast()
      if heap.isEmpty { return }
      heap[0] = last
    }
    try siftDown()
  }

  private mutating func siftUp() throws(ScratchError) {
    var child = heap.count - 1
    while child > 0, try precedes(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private mutating func siftDown() throws(ScratchError) {
    var parent = 0
    while true {
      var lowest = parent
      for child in 2 * parent + 1...2 * parent + 2 where child < heap.count {
        if try precedes(child, lowest) { lowest = child }
      }
      guard lowest != parent else { return }
      heap.swapAt(parent, lowest)
      parent = lowest
    }
  }

  private func precedes(_ a: Int, _ b: Int) throws(ScratchError) -> Bool {
    let (left, right) = (heap[a].key, heap[b].key)
    let common = min(left.count, right.count)
    let order = Ordering.raw(
      UnsafeRawBufferPointer(rebasing: left[..<common]), UnsafeRawBufferPointer(rebasing: right[..<common]))
    if order != .equal { return order == .less }
    return try precedes(runs[heap[a].run], runs[heap[b].run], from: common)
  }

  // MARK: Entries

  /// Reads the first entry of a run. Returns `false` if the run is at its end.
  private mutating func load(_ index: Int) throws(ScratchError) -> Bool {
    if let batch = runs[index].batch {
      guard runs[index].next < batch.count else { return false }
      runs[index].key = batch.key(runs[index].next)
      runs[index].keyCount = runs[index].key.count
      return true
    }
    guard runs[index].offset < runs[index].end, let windows else { return false }
    let window = UnsafeMutableRawBufferPointer(
      rebasing: windows[index * windowBytes..<(index + 1) * windowBytes])
    if runs[index].offset + SortBatch.headBytes > runs[index].windowOffset + runs[index].windowCount {
      try refill(index, window)
    }
    readHead(index, window)
    let wanted = SortBatch.headBytes + runs[index].keyCount + runs[index].pathCount
    if runs[index].offset + wanted > runs[index].windowOffset + runs[index].windowCount,
      runs[index].windowOffset < runs[index].offset
    {
      try refill(index, window)
    }
    let start = runs[index].offset - runs[index].windowOffset + SortBatch.headBytes
    let end = min(start + runs[index].keyCount, runs[index].windowCount)
    runs[index].key = UnsafeRawBufferPointer(rebasing: window[start..<end])
    return true
  }

  /// Fills a window from the first entry of its run on.
  private mutating func refill(_ index: Int, _ window: UnsafeMutableRawBufferPointer) throws(ScratchError) {
    let count = min(windowBytes, runs[index].end - runs[index].offset)
    try scratch.read(at: runs[index].offset, into: UnsafeMutableRawBufferPointer(rebasing: window[..<count]))
    runs[index].windowOffset = runs[index].offset
    runs[index].windowCount = count
  }

  private mutating func readHead(_ index: Int, _ window: UnsafeMutableRawBufferPointer) {
    let start = runs[index].offset - runs[index].windowOffset
    runs[index].keyCount = Int(window.loadUnaligned(fromByteOffset: start, as: UInt32.self))
    runs[index].pathCount = Int(window.loadUnaligned(fromByteOffset: start + 4, as: UInt32.self))
  }

  private func path(_ index: Int) throws(ScratchError) -> [UInt8] {
    let run = runs[index]
    if let batch = run.batch { return Array(batch.path(run.next)) }
    var path = [UInt8](repeating: 0, count: run.pathCount)
    let offset = run.offset + SortBatch.headBytes + run.keyCount
    try read(at: offset, into: &path, run, index)
    return path
  }

  /// Fills `bytes` from the window of a run if it contains them, otherwise from the file.
  private func read(at offset: Int, into bytes: inout [UInt8], _ run: Run, _ index: Int) throws(ScratchError) {
    let start = offset - run.windowOffset
    let result = bytes.withUnsafeMutableBytes { bytes in
      Result { () throws(ScratchError) in
        guard let windows, start + bytes.count <= run.windowCount else {
          return try scratch.read(at: offset, into: bytes)
        }
        let place = index * windowBytes + start
        bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: windows[place..<place + bytes.count]))
      }
    }
    try result.get()
  }

  // MARK: Long keys

  /// The bytes of two keys that are compared at once, if they are not in memory.
  private static let comparedBytes = 4 << 10

  /// Compares two keys that agree up to `start`.
  private func precedes(_ left: Run, _ right: Run, from start: Int) throws(ScratchError) -> Bool {
    var start = start
    while start < left.keyCount, start < right.keyCount {
      let count = min(Self.comparedBytes, min(left.keyCount, right.keyCount) - start)
      let order = Ordering.raw(try keyBytes(left, start, count), try keyBytes(right, start, count))
      if order != .equal { return order == .less }
      start += count
    }
    return left.keyCount < right.keyCount
  }

  private func keyBytes(_ run: Run, _ start: Int, _ count: Int) throws(ScratchError) -> [UInt8] {
    if start + count <= run.key.count { return Array(run.key[start..<start + count]) }
    var bytes = [UInt8](repeating: 0, count: count)
    let result = bytes.withUnsafeMutableBytes { bytes in
      Result { () throws(ScratchError) in
        try scratch.read(at: run.offset + SortBatch.headBytes + start, into: bytes)
      }
    }
    try result.get()
    return bytes
  }
}
