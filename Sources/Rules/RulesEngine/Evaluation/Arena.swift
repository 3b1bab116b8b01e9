import Glibc

/// Memory for the values of one decision, freed all at once. Values of rules hold plain pointers into it.
///
/// The arena keeps its first block between decisions, so that common decisions do not allocate.
struct Arena: ~Copyable {
  /// The limit of memory for one decision, in bytes. An expression that needs more fails.
  static let bytesMax = 32 << 20
  private static let firstBlockBytes = 32 << 10

  private var block: UnsafeMutableRawPointer
  private var blockBytes = Arena.firstBlockBytes
  private var offset = 0
  /// The full blocks, beginning with the first block. Empty while the first block is in use.
  private var retired: [UnsafeMutableRawPointer] = []
  private var retiredBytes = 0

  init() {
    block = UnsafeMutableRawPointer.allocate(byteCount: Self.firstBlockBytes, alignment: 16)
  }

  deinit {
    block.deallocate()
    for old in retired { old.deallocate() }
  }

  /// Frees everything for the next decision. All pointers into the arena become invalid.
  mutating func reset() {
    offset = 0
    if retired.isEmpty { return }
    block.deallocate()
    for old in retired.dropFirst() { old.deallocate() }
    block = retired[0]
    blockBytes = Self.firstBlockBytes
    retired.removeAll(keepingCapacity: true)
    retiredBytes = 0
  }

  /// Returns memory for `count` bytes, aligned for any value, or `nil` if the decision has reached its limit.
  @inline(__always)
  mutating func take(bytes count: Int) -> UnsafeMutableRawPointer? {
    let aligned = (count + 15) & ~15
    if aligned <= blockBytes - offset {
      defer { offset += aligned }
      return block + offset
    }
    return takeFromNewBlock(aligned)
  }

  @inline(never)
  private mutating func takeFromNewBlock(_ count: Int) -> UnsafeMutableRawPointer? {
    guard count >= 0, count <= Self.bytesMax - retiredBytes - blockBytes else { return nil }
    retired.append(block)
    retiredBytes += blockBytes
    blockBytes = max(count, min(2 * blockBytes, 1 << 20))
    block = UnsafeMutableRawPointer.allocate(byteCount: blockBytes, alignment: 16)
    offset = count
    return block
  }

  /// Returns uninitialized memory for `count` elements of a trivial type, or `nil` if the limit is reached.
  @inline(__always)
  mutating func take<Element>(_ type: Element.Type, _ count: Int) -> UnsafeMutablePointer<Element>? {
    let (bytes, overflow) = count.multipliedReportingOverflow(by: MemoryLayout<Element>.stride)
    guard !overflow else { return nil }
    return take(bytes: bytes)?.bindMemory(to: Element.self, capacity: count)
  }
}
