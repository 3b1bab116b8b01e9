import Glibc

/// Memory for what one decision makes, given back all at once: values of rules hold bare pointers into it.
///
/// Keeps its first block between decisions, so that common ones allocate nothing.
struct Arena: ~Copyable {
  /// The most bytes one decision may use; a rule that asks for more fails.
  static let bytesMax = 32 << 20
  private static let firstBlockBytes = 32 << 10

  private var block: UnsafeMutableRawPointer
  private var blockBytes = Arena.firstBlockBytes
  private var offset = 0
  /// Blocks that are full, and the first one.
  private var retired: [UnsafeMutableRawPointer] = []
  private var retiredBytes = 0

  init() {
    block = UnsafeMutableRawPointer.allocate(byteCount: Self.firstBlockBytes, alignment: 16)
  }

  deinit {
    block.deallocate()
    for old in retired { old.deallocate() }
  }

  /// Forgets everything; all pointers into the arena become invalid.
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

  /// Room for that many bytes, aligned for any value; `nil` when the decision has used up its share.
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

  /// Room for that many elements of a trivial type, not initialised.
  @inline(__always)
  mutating func take<Element>(_ type: Element.Type, _ count: Int) -> UnsafeMutablePointer<Element>? {
    let (bytes, overflow) = count.multipliedReportingOverflow(by: MemoryLayout<Element>.stride)
    guard !overflow else { return nil }
    return take(bytes: bytes)?.bindMemory(to: Element.self, capacity: count)
  }
}
