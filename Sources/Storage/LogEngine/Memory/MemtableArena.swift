import Glibc

/// Memory that one thread fills piece by piece, and that is freed as a whole.
///
/// A piece is never moved, so other threads can read what the filling thread has published to them. All but the first
/// chunks are mapped, so the system gets their memory back at once when they are freed.
struct MemtableArena: ~Copyable {
  /// The length of the first chunk in bytes. Each chunk has a quarter of the bytes before, up to ``chunkBytesMax``.
  private static let chunkBytesMin = 4 << 10
  private static let chunkBytesMax = 1 << 20
  /// The length from which chunks are mapped, in bytes. The allocator would keep freed chunks below.
  private static let mappedBytesMin = 32 << 10

  /// The bytes allocated.
  private(set) var allocatedBytes = 0
  private var chunks: [UnsafeMutableRawPointer] = []
  private var mappings: [UnsafeMutableRawBufferPointer] = []
  private var free = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  deinit {
    for chunk in chunks { chunk.deallocate() }
    for mapping in mappings { munmap(mapping.baseAddress, mapping.count) }
  }

  /// Returns `count` new bytes, aligned to 8.
  mutating func allocate(_ count: Int) -> UnsafeMutableRawPointer {
    let count = (count + 7) & ~7
    if count > free.count {
      if count > Self.chunkBytesMax / 4 { return makeChunk(count) }
      // The rest of the chunk is lost, which is at most a quarter of one.
      let share = min(max(Self.chunkBytesMin, allocatedBytes / 4), Self.chunkBytesMax)
      let bytes = max((share + 4095) & ~4095, count)
      free = UnsafeMutableRawBufferPointer(start: makeChunk(bytes), count: bytes)
    }
    let start = free.baseAddress ?? makeChunk(count)
    free = UnsafeMutableRawBufferPointer(rebasing: free[count...])
    return start
  }

  private mutating func makeChunk(_ count: Int) -> UnsafeMutableRawPointer {
    var mapped: UnsafeMutableRawPointer? = MAP_FAILED
    if count >= Self.mappedBytesMin {
      mapped = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    }
    allocatedBytes += count
    guard let start = mapped, start != MAP_FAILED else {
      let chunk = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 16)
      chunks.append(chunk)
      return chunk
    }
    mappings.append(UnsafeMutableRawBufferPointer(start: start, count: count))
    return start
  }
}
