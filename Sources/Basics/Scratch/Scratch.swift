import Glibc
import Synchronization

/// The scratch memory and the temporary file of one query.
///
/// The query's thread calls ``begin()`` before and ``pause()`` after each slice. Between slices another thread may take
/// everything away (``revoke()``), after which ``begin()`` fails. So a client that does not read its results cannot
/// keep others waiting. The query must call ``end()``.
package final class Scratch: @unchecked Sendable {
  // Sendable: `use` says which thread may touch the other variables. While it is `idle`, the thread that changes it to
  // `busy` or `over` may; then only that thread.

  private enum Use {
    static let idle: UInt8 = 0
    static let busy: UInt8 = 1
    /// The slice may continue, then the scratch space is taken away.
    static let doomed: UInt8 = 2
    static let over: UInt8 = 3
  }

  private let space: ScratchSpace
  private let use: Atomic<UInt8>
  /// The time of the last ``pause()``, in milliseconds.
  private let pausedAt: Atomic<Int64>
  /// The memory held, for other threads.
  private let reported = Atomic(0)
  /// The time of creation, in milliseconds.
  let begun: Int64
  private var blocks: [UnsafeMutableRawBufferPointer] = []
  private var memoryBytes = 0
  /// The part of ``memoryBytes`` that the query's own objects take.
  private var coveredBytes = 0
  private var file: ScratchFile?

  /// Creates scratch space for a query whose slice has begun. Cost: none in the budget until memory is taken.
  package init(_ space: ScratchSpace) {
    self.space = space
    begun = space.budget.now
    use = Atomic(Use.busy)
    pausedAt = Atomic(begun)
  }

  private var budget: ScratchBudget { space.budget }
  package var limits: ScratchBudget.Limits { budget.limits }
  /// Whether other queries wait for memory.
  package var isNeeded: Bool { budget.hasWaiting }
  var reportedBytes: Int { reported.load(ordering: .relaxed) }

  /// The time since which no slice runs, or `nil` during a slice.
  var idleSince: Int64? {
    use.load(ordering: .relaxed) == Use.idle ? pausedAt.load(ordering: .relaxed) : nil
  }

  // MARK: Slices

  /// Begins a slice.
  /// - Throws: ``ScratchError/revoked`` if everything was taken away.
  package func begin() throws(ScratchError) {
    guard use.compareExchange(expected: Use.idle, desired: Use.busy, ordering: .acquiring).exchanged else {
      throw .revoked
    }
  }

  /// Ends a slice.
  package func pause() {
    pausedAt.store(budget.now, ordering: .relaxed)
    guard !use.compareExchange(expected: Use.busy, desired: Use.idle, ordering: .releasing).exchanged else { return }
    end()
  }

  /// Frees everything. Later calls do nothing.
  package func end() {
    guard use.exchange(Use.over, ordering: .acquiringAndReleasing) != Use.over else { return }
    release()
  }

  /// Frees everything, now or after the slice that runs.
  func revoke() {
    if use.compareExchange(expected: Use.idle, desired: Use.over, ordering: .acquiringAndReleasing).exchanged {
      release()
    } else {
      _ = use.compareExchange(expected: Use.busy, desired: Use.doomed, ordering: .relaxed)
    }
  }

  private func release() {
    for block in blocks { Self.deallocate(block) }
    blocks = []
    let fileBytes = file?.count ?? 0
    file = nil
    budget.end(self, memoryBytes: memoryBytes, fileBytes: fileBytes)
    memoryBytes = 0
    coveredBytes = 0
    reported.store(0, ordering: .relaxed)
  }

  /// Calls `wake` once, on any thread, when the query no longer waits for memory. Returns `false` if it does not wait.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { budget.wait(self, wake) }

  // MARK: Memory

  /// Returns a block of `count` bytes, or `nil` if the query must wait for it. Then call this again with the same count
  /// in the next slice.
  /// - Throws: ``ScratchError`` if the query waited too long, or if too many wait.
  package func allocate(_ count: Int) throws(ScratchError) -> UnsafeMutableRawBufferPointer? {
    guard try take(count, count <= limits.smallBytesMax ? .small : .required) else { return nil }
    return try block(count)
  }

  /// Returns a block of `count` bytes, or `nil` if the query must continue without it.
  package func allocateOptional(_ count: Int) throws(ScratchError) -> UnsafeMutableRawBufferPointer? {
    guard memoryBytes + count <= limits.queryMemoryBytesMax, try take(count, .optional) else { return nil }
    return try block(count)
  }

  /// Frees a block.
  package func free(_ block: UnsafeMutableRawBufferPointer) {
    guard let index = blocks.lastIndex(where: { $0.baseAddress == block.baseAddress }) else { return }
    blocks.remove(at: index)
    Self.deallocate(block)
    give(block.count)
  }

  /// Takes memory for objects that the query itself allocates, so that it has `bytes` for them, in steps of
  /// ``ScratchLimits/smallBytesMax``. Returns `false` if the query must wait. Then call this again in the next slice.
  /// - Throws: ``ScratchError`` if this is more than a query may have, or if the query cannot wait any longer.
  package func cover(_ bytes: Int) throws(ScratchError) -> Bool {
    let step = limits.smallBytesMax
    let wanted = (bytes + step - 1) / step * step
    guard wanted > coveredBytes else { return true }
    guard wanted <= limits.queryMemoryBytesMax else { throw .queryMemory(bytesMax: limits.queryMemoryBytesMax) }
    guard try take(wanted - coveredBytes, coveredBytes == 0 && wanted == step ? .small : .required) else {
      return false
    }
    coveredBytes = wanted
    return true
  }

  /// Frees all blocks and the file, for another sort of the same query.
  package func clear() {
    for block in blocks { Self.deallocate(block) }
    blocks = []
    if let file { budget.giveFile(file.count) }
    file = nil
    if memoryBytes > coveredBytes { give(memoryBytes - coveredBytes) }
  }

  private func take(_ bytes: Int, _ need: ScratchBudget.Need) throws(ScratchError) -> Bool {
    guard try budget.take(bytes, need, for: self) else { return false }
    memoryBytes += bytes
    reported.store(memoryBytes, ordering: .relaxed)
    return true
  }

  private func give(_ bytes: Int) {
    memoryBytes -= bytes
    reported.store(memoryBytes, ordering: .relaxed)
    budget.give(bytes)
  }

  private func block(_ count: Int) throws(ScratchError) -> UnsafeMutableRawBufferPointer {
    guard let start = Self.allocateMemory(count) else {
      give(count)
      throw .system(operation: "mmap", path: "memory", code: errno)
    }
    let block = UnsafeMutableRawBufferPointer(start: start, count: count)
    blocks.append(block)
    return block
  }

  /// Blocks from this size on are mapped, so that the system gets their memory back at once.
  private static let mappedBytesMin = 128 << 10

  private static func allocateMemory(_ count: Int) -> UnsafeMutableRawPointer? {
    guard count >= mappedBytesMin else { return malloc(count) }
    let start = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return start == MAP_FAILED ? nil : start
  }

  private static func deallocate(_ block: UnsafeMutableRawBufferPointer) {
    if block.count >= mappedBytesMin {
      munmap(block.baseAddress, block.count)
    } else {
      Glibc.free(block.baseAddress)
    }
  }

  // MARK: File

  /// Appends bytes to the temporary file, and returns their offset.
  /// - Throws: ``ScratchError`` if the file would be too long, or cannot be written.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(ScratchError) -> Int {
    let file = if let file { file } else { try ScratchFile(in: space.directory) }
    self.file = file
    try budget.takeFile(bytes.count, held: file.count)
    do { return try file.append(bytes) } catch {
      budget.giveFile(bytes.count)
      throw error
    }
  }

  /// The offset at which the next bytes are appended.
  package var fileEnd: Int { file?.count ?? 0 }

  /// Fills `bytes` from the file.
  /// - Throws: ``ScratchError/system(operation:path:code:)`` if the file cannot be read.
  package func read(at offset: Int, into bytes: UnsafeMutableRawBufferPointer) throws(ScratchError) {
    try file?.read(at: offset, into: bytes)
  }
}
