import Glibc

/// Memory for the values of one evaluation, freed all at once. The values are plain pointers into it: those of one
/// decision of security rules, or those of one row of a pipeline.
///
/// The arena keeps its first block between evaluations, so that most evaluations do not allocate.
package struct Arena: ~Copyable {
  private static let firstBlockBytes = 32 << 10

  /// The limit of memory for one evaluation, in bytes.
  package let bytesMax: Int
  @usableFromInline var block: UnsafeMutableRawPointer
  @usableFromInline var blockBytes = Arena.firstBlockBytes
  @usableFromInline var offset = 0
  /// The full blocks, beginning with the first block. Empty while the first block is in use.
  private var retired: [UnsafeMutableRawPointer] = []
  private var retiredBytes = 0

  /// Creates an arena that holds at most `bytesMax` bytes.
  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
    block = UnsafeMutableRawPointer.allocate(byteCount: Self.firstBlockBytes, alignment: 16)
  }

  deinit {
    block.deallocate()
    for old in retired { old.deallocate() }
  }

  /// Frees everything for the next evaluation. All pointers into the arena become invalid.
  package mutating func reset() {
    offset = 0
    if retired.isEmpty { return }
    block.deallocate()
    for old in retired.dropFirst() { old.deallocate() }
    block = retired[0]
    blockBytes = Self.firstBlockBytes
    retired.removeAll(keepingCapacity: true)
    retiredBytes = 0
  }

  /// Returns memory for `count` bytes, aligned for any value, or `nil` if the limit is reached.
  @inlinable
  @inline(__always)
  package mutating func take(bytes count: Int) -> UnsafeMutableRawPointer? {
    let aligned = (count + 15) & ~15
    if aligned <= blockBytes - offset {
      defer { offset += aligned }
      return block + offset
    }
    return takeFromNewBlock(aligned)
  }

  @inline(never)
  @usableFromInline
  mutating func takeFromNewBlock(_ count: Int) -> UnsafeMutableRawPointer? {
    guard count >= 0, count <= bytesMax - retiredBytes - blockBytes else { return nil }
    retired.append(block)
    retiredBytes += blockBytes
    blockBytes = max(count, min(2 * blockBytes, 1 << 20))
    block = UnsafeMutableRawPointer.allocate(byteCount: blockBytes, alignment: 16)
    offset = count
    return block
  }

  /// Returns uninitialized memory for `count` elements of a trivial type, or `nil` if the limit is reached.
  @inlinable
  @inline(__always)
  package mutating func take<Element>(_ type: Element.Type, _ count: Int) -> UnsafeMutablePointer<Element>? {
    let (bytes, overflow) = count.multipliedReportingOverflow(by: MemoryLayout<Element>.stride)
    guard !overflow else { return nil }
    return take(bytes: bytes)?.bindMemory(to: Element.self, capacity: count)
  }
}
