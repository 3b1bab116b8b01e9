import Basics
import Glibc

/// The received bytes that are not consumed yet. Borrows standard-sized memory from the loop's pool only while it
/// holds bytes, so an idle connection has no buffer.
struct InputBuffer: ~Copyable {
  /// Readable bytes after the received ones, because simdjson reads past the end of its input.
  static let paddingBytes = 64
  /// The smallest space for one read.
  static let readBytesMin = 4 * 1024

  private var memory: UnsafeMutableRawPointer?
  private var capacity = 0
  private var start = 0
  private var end = 0

  deinit {
    free(memory)
  }

  var count: Int { end - start }
  var isEmpty: Bool { end == start }
  /// The unconsumed bytes. Valid only while the buffer is not empty.
  var bytes: UnsafeMutableRawPointer? { memory.map { $0 + start } }

  /// Returns space for one read and grows the buffer toward `expected` bytes in total. Returns `nil` if the loop's
  /// budget does not allow it.
  mutating func readSpace(expected: Int?, pool: BufferPool) -> UnsafeMutableRawBufferPointer? {
    if memory == nil {
      memory = pool.take()
      capacity = BufferPool.bufferBytes
    }
    guard let memory else { return nil }
    if start > 0 && (isEmpty || capacity - Self.paddingBytes - end < Self.readBytesMin) {
      memmove(memory, memory + start, count)
      end -= start
      start = 0
    }
    let missing = max((expected ?? 0) - count, 0)
    let room = capacity - Self.paddingBytes - end
    if room < min(Self.readBytesMin, missing) || room < Self.readBytesMin && expected == nil || room == 0 {
      // Grow by doubling, since a large Content-Length alone must not allocate memory.
      let wanted = max(min(capacity * 2, count + missing + Self.paddingBytes), capacity + Self.readBytesMin)
      guard grow(to: wanted, pool: pool) else { return nil }
    }
    guard let grown = self.memory else { return nil }
    return UnsafeMutableRawBufferPointer(start: grown + end, count: capacity - Self.paddingBytes - end)
  }

  /// Whether there may ever be memory for a message of `expected` bytes, or for one more read if that is unknown.
  func canHold(_ expected: Int?, pool: BufferPool) -> Bool {
    memory == nil || pool.canEverReserve(wholeCapacity(expected) - BufferPool.bufferBytes)
  }

  /// Takes memory after a wait: a buffer if it has not one yet, otherwise all that a message of `expected` bytes still needs,
  /// so that it need not wait again. Returns `false` if too little is free.
  mutating func takeAwaited(_ expected: Int?, pool: BufferPool) -> Bool {
    if memory == nil {
      memory = pool.take()
      capacity = BufferPool.bufferBytes
      return memory != nil
    }
    let wanted = wholeCapacity(expected)
    return wanted <= capacity || grow(to: wanted, pool: pool, for: .awaited)
  }

  private func wholeCapacity(_ expected: Int?) -> Int {
    max(expected.map { $0 + Self.paddingBytes } ?? capacity * 2, capacity + Self.readBytesMin)
  }

  /// Marks `count` bytes of the space as received.
  mutating func received(_ count: Int) {
    end += count
  }

  /// Drops bytes from the front.
  mutating func consume(_ count: Int) {
    start += count
  }

  /// Keeps only the first `count` bytes.
  mutating func truncate(to count: Int) {
    end = start + count
  }

  /// Returns the memory to the pool if the buffer is empty.
  mutating func releaseIfEmpty(to pool: BufferPool) {
    guard isEmpty else { return }
    release(to: pool)
  }

  /// Returns the memory to the pool and discards the content.
  mutating func release(to pool: BufferPool) {
    guard let memory else { return }
    pool.give(memory, capacity: capacity)
    self.memory = nil
    capacity = 0
    start = 0
    end = 0
  }

  private mutating func grow(to wanted: Int, pool: BufferPool, for use: BufferPool.Use = .body) -> Bool {
    guard pool.reserve(wanted - capacity, for: use) else { return false }
    guard let grown = realloc(memory, wanted) else {
      pool.release(wanted - capacity)
      return false
    }
    memory = grown
    capacity = wanted
    return true
  }
}

/// The memory for received bytes of the connections of one loop. All loops of a server share its limit.
///
/// Large bodies cannot use up the share: a quarter of it is only for small pieces of memory, with which every request
/// begins. Another quarter is not for bodies that can wait until they have waited, so that there is room to complete one.
final class BufferPool {
  /// The purpose of memory beyond the buffers of the standard size. It decides how much of the share must stay free.
  enum Use {
    /// A small piece of memory, with which a connection or a request begins.
    case start
    /// A part of a body.
    case body
    /// The rest of a body that has waited for it, or a large piece for a request that cannot wait, as over HTTP/2.
    case awaited
  }

  static let bufferBytes = 16 * 1024
  /// Free buffers kept for reuse. More connections than this rarely hold half a request at the same time. As many are
  /// not charged to the share, so that most requests cost no atomic operation.
  private static let keptMax = 64
  /// Buffers of the standard size that are charged to the share together.
  private static let buffersPerCharge = 64

  private let share: MemoryShare
  private var kept: [UnsafeMutableRawPointer] = []
  /// The buffers in use, and those of them that may be in use without a further charge.
  private var buffers = 0
  private var chargedBuffers = keptMax
  /// The bytes that buffers have beyond their standard size.
  private var reservedBytes = 0

  /// Whether no bytes are reserved.
  var isWhole: Bool { reservedBytes == 0 }

  init(_ share: MemoryShare) { self.share = share }

  deinit {
    for buffer in kept { free(buffer) }
  }

  /// Returns a buffer of the standard size, or `nil` if memory is short.
  func take() -> UnsafeMutableRawPointer? {
    if buffers == chargedBuffers {
      guard share.take(Self.buffersPerCharge * Self.bufferBytes) else { return nil }
      chargedBuffers += Self.buffersPerCharge
    }
    guard let buffer = kept.popLast() ?? malloc(Self.bufferBytes) else { return nil }
    buffers += 1
    return buffer
  }

  /// Takes bytes of the share for a request that cannot wait for them, or returns `false` if too few are left.
  func reserve(_ bytes: Int) -> Bool { reserve(bytes, for: bytes <= Self.bufferBytes ? .start : .awaited) }

  /// Takes bytes of the share, or returns `false` if too few are left for this use.
  func reserve(_ bytes: Int, for use: Use) -> Bool {
    guard share.take(bytes, leaving: keptBytes(from: use)) else { return false }
    reservedBytes += bytes
    return true
  }

  /// Whether so many bytes for a body could be reserved if all of the share were free.
  func canEverReserve(_ bytes: Int) -> Bool { bytes <= share.bytesMax - keptBytes(from: .awaited) }

  private func keptBytes(from use: Use) -> Int {
    switch use {
    case .start: 0
    case .body: share.bytesMax / 2
    case .awaited: share.bytesMax / 4
    }
  }

  func release(_ bytes: Int) {
    guard bytes != 0 else { return }
    reservedBytes -= bytes
    share.give(bytes)
  }

  func give(_ buffer: UnsafeMutableRawPointer, capacity: Int) {
    release(capacity - Self.bufferBytes)
    buffers -= 1
    if chargedBuffers - buffers >= Self.keptMax + 2 * Self.buffersPerCharge {
      share.give(Self.buffersPerCharge * Self.bufferBytes)
      chargedBuffers -= Self.buffersPerCharge
    }
    if capacity == Self.bufferBytes && kept.count < Self.keptMax {
      kept.append(buffer)
    } else {
      free(buffer)
    }
  }
}
