import Glibc
import Synchronization

/// The scratch memory and the temporary file of one query.
///
/// The query's thread calls ``begin()`` before and ``pause()`` after each slice. Between slices another thread may take
/// everything away (``revoke()``), after which ``begin()`` fails. So a client that does not read its results cannot
/// keep others waiting. The query must call ``end()``.
package final class Scratch: Sendable {
  private enum Use {
    /// No slice runs, since a time in milliseconds.
    case idle(since: Int64)
    case busy
    /// The slice may continue, then everything is taken away.
    case doomed
    case over
  }

  /// Memory by its address, because a pointer is not `Sendable`.
  private struct Block {
    let address: UInt
    let count: Int
  }

  private struct State {
    var use = Use.busy
    var blocks: [Block] = []
    var memoryBytes = 0
    /// The part of ``memoryBytes`` that the query's own objects take.
    var coveredBytes = 0
    var file: ScratchFile?
    var fileBytes = 0
  }

  private let space: ScratchSpace
  /// The time of creation, in milliseconds.
  let begun: Int64
  /// While it is locked, the budget is not called, because the budget calls ``holding`` with its own lock.
  private let state = Mutex(State())

  /// Creates scratch space for a query whose slice has begun. Cost: none in the budget until memory is taken.
  package init(_ space: ScratchSpace) {
    self.space = space
    begun = space.budget.now
  }

  private var budget: ScratchBudget { space.budget }
  /// The limits of the budget.
  package var limits: ScratchBudget.Limits { budget.limits }
  /// Whether other queries wait for memory.
  package var isNeeded: Bool { budget.hasWaiting }

  /// The memory held, and the time since which no slice runs, or `nil` during a slice.
  var holding: (bytes: Int, idleSince: Int64?) {
    state.withLock { state in
      if case .idle(let since) = state.use { (state.memoryBytes, since) } else { (state.memoryBytes, nil) }
    }
  }

  // MARK: Slices

  /// Begins a slice.
  /// - Throws: ``ScratchError/revoked`` if everything was taken away.
  package func begin() throws(ScratchError) {
    let isIdle = state.withLock { state in
      guard case .idle = state.use else { return false }
      state.use = .busy
      return true
    }
    guard isIdle else { throw .revoked }
  }

  /// Ends a slice.
  package func pause() {
    let now = budget.now
    let isDoomed = state.withLock { state in
      switch state.use {
      case .busy: state.use = .idle(since: now)
      case .doomed: return true
      case .idle, .over: break
      }
      return false
    }
    if isDoomed { end() }
  }

  /// Frees everything. Later calls do nothing.
  package func end() { release { _ in true } }

  /// Frees everything, now or after the slice that runs.
  func revoke() {
    release { use in
      switch use {
      case .idle: return true
      case .busy: use = .doomed
      case .doomed, .over: break
      }
      return false
    }
  }

  /// Frees everything if `condition` returns `true`.
  private func release(if condition: (inout Use) -> Bool) {
    let (blocks, file, memoryBytes, fileBytes) = state.withLock { state -> ([Block]?, ScratchFile?, Int, Int) in
      if case .over = state.use { return (nil, nil, 0, 0) }
      guard condition(&state.use) else { return (nil, nil, 0, 0) }
      defer {
        state = State()
        state.use = .over
      }
      return (state.blocks, state.file, state.memoryBytes, state.fileBytes)
    }
    guard let blocks else { return }
    for block in blocks { Self.deallocate(block) }
    // Closing the file frees its space on the disk before others may use it.
    file?.close()
    budget.end(self, memoryBytes: memoryBytes, fileBytes: fileBytes)
  }

  /// Calls `wake` once, on any thread, when the query no longer waits for memory. Returns `false` if it does not wait.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { budget.wait(self, wake) }

  // MARK: Memory

  /// Returns a block of `count` bytes, or `nil` if the query must wait for it. Then call this again with the same count
  /// in the next slice.
  /// - Throws: ``ScratchError`` if the query waited too long, or if too many wait.
  package func allocate(_ count: Int) throws(ScratchError) -> UnsafeMutableRawBufferPointer? {
    guard try budget.take(count, count <= limits.smallBytesMax ? .small : .required, for: self) else { return nil }
    return try block(count)
  }

  /// Returns a block of `count` bytes, or `nil` if the query must continue without it.
  /// - Throws: ``ScratchError`` if the system has no memory.
  package func allocateOptional(_ count: Int) throws(ScratchError) -> UnsafeMutableRawBufferPointer? {
    let held = state.withLock { $0.memoryBytes }
    guard held + count <= limits.queryMemoryBytesMax, try budget.take(count, .optional, for: self) else { return nil }
    return try block(count)
  }

  /// Frees a block.
  package func free(_ block: UnsafeMutableRawBufferPointer) {
    let address = UInt(bitPattern: block.baseAddress)
    let freed = state.withLock { state -> Block? in
      guard let index = state.blocks.lastIndex(where: { $0.address == address }) else { return nil }
      state.memoryBytes -= block.count
      return state.blocks.remove(at: index)
    }
    guard let freed else { return }
    Self.deallocate(freed)
    budget.give(freed.count)
  }

  /// Takes memory for objects that the query itself allocates, so that it has `bytes` for them, in steps of
  /// ``ScratchLimits/smallBytesMax``. Returns `false` if the query must wait. Then call this again in the next slice.
  /// - Throws: ``ScratchError`` if this is more than a query may have, or if the query cannot wait any longer.
  package func cover(_ bytes: Int) throws(ScratchError) -> Bool {
    let step = limits.smallBytesMax
    let wanted = (bytes + step - 1) / step * step
    let covered = state.withLock { $0.coveredBytes }
    guard wanted > covered else { return true }
    guard wanted <= limits.queryMemoryBytesMax else { throw .queryMemory(bytesMax: limits.queryMemoryBytesMax) }
    guard try budget.take(wanted - covered, wanted == step ? .small : .required, for: self) else { return false }
    state.withLock { state in
      state.memoryBytes += wanted - covered
      state.coveredBytes = wanted
    }
    return true
  }

  /// Frees all blocks and the file, for another sort of the same query.
  package func clear() {
    let (blocks, file, fileBytes) = state.withLock { state in
      defer {
        state.blocks = []
        state.memoryBytes = state.coveredBytes
        state.file = nil
        state.fileBytes = 0
      }
      return (state.blocks, state.file, state.fileBytes)
    }
    for block in blocks { Self.deallocate(block) }
    file?.close()
    if fileBytes > 0 { budget.giveFile(fileBytes) }
    if !blocks.isEmpty { budget.give(blocks.reduce(0) { $0 + $1.count }) }
  }

  /// Allocates memory that was taken from the budget.
  private func block(_ count: Int) throws(ScratchError) -> UnsafeMutableRawBufferPointer {
    guard let start = Self.allocateMemory(count) else {
      let code = errno
      budget.give(count)
      throw .system(operation: "mmap", path: "memory", code: code)
    }
    let block = Block(address: UInt(bitPattern: start), count: count)
    state.withLock { state in
      state.memoryBytes += count
      state.blocks.append(block)
    }
    return UnsafeMutableRawBufferPointer(start: start, count: count)
  }

  /// Blocks from this size on are mapped, so that the system gets their memory back at once.
  private static let mappedBytesMin = 128 << 10

  private static func allocateMemory(_ count: Int) -> UnsafeMutableRawPointer? {
    guard count >= mappedBytesMin else { return malloc(count) }
    let start = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return start == MAP_FAILED ? nil : start
  }

  private static func deallocate(_ block: Block) {
    let start = UnsafeMutableRawPointer(bitPattern: block.address)
    if block.count >= mappedBytesMin { munmap(start, block.count) } else { Glibc.free(start) }
  }

  // MARK: File

  /// Appends bytes to the temporary file, and returns their offset.
  /// - Throws: ``ScratchError`` if the file would be too long, or cannot be written.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(ScratchError) -> Int {
    let (known, end) = state.withLock { ($0.file, $0.fileBytes) }
    let file = if let known { known } else { try ScratchFile(in: space.directory) }
    if known == nil { state.withLock { $0.file = file } }
    try budget.takeFile(bytes.count, held: end)
    do { try file.write(bytes, at: end) } catch {
      budget.giveFile(bytes.count)
      throw error
    }
    state.withLock { $0.fileBytes += bytes.count }
    return end
  }

  /// The offset at which the next bytes are appended.
  package var fileEnd: Int { state.withLock { $0.fileBytes } }

  /// Fills `bytes` from the file.
  /// - Throws: ``ScratchError/system(operation:path:code:)`` if the file cannot be read.
  package func read(at offset: Int, into bytes: UnsafeMutableRawBufferPointer) throws(ScratchError) {
    try state.withLock { $0.file }?.read(at: offset, into: bytes)
  }
}
