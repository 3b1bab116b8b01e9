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

  private mutating func grow(to wanted: Int, pool: BufferPool) -> Bool {
    guard pool.reserve(wanted - capacity), let grown = realloc(memory, wanted) else { return false }
    memory = grown
    capacity = wanted
    return true
  }
}

/// The memory for received bytes of the connections of one loop. All loops of a server share its limit.
final class BufferPool {
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

  func reserve(_ bytes: Int) -> Bool {
    guard share.take(bytes) else { return false }
    reservedBytes += bytes
    return true
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
