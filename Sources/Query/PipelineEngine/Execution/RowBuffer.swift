/// Bytes at a stable address, which are reused from row to row.
final class RowBuffer {
  private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private(set) var count = 0

  /// The bytes, valid until they are replaced.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[..<count]) }
  /// The size of the memory.
  var capacity: Int { storage.count }

  deinit { storage.deallocate() }

  /// Replaces the bytes. They may not be part of this buffer.
  func assign(_ bytes: UnsafeRawBufferPointer) {
    removeAll()
    append(bytes)
  }

  func assign(_ bytes: [UInt8]) { bytes.withUnsafeBytes { assign($0) } }

  /// Appends bytes, which may move the others.
  func append(_ bytes: UnsafeRawBufferPointer) {
    if count + bytes.count > storage.count { grow(to: count + bytes.count) }
    if let source = bytes.baseAddress, let target = storage.baseAddress {
      (target + count).copyMemory(from: source, byteCount: bytes.count)
    }
    count += bytes.count
  }

  /// Removes all bytes. Keeps the memory unless it is large.
  func removeAll() {
    count = 0
    guard storage.count > Self.keptBytesMax else { return }
    storage.deallocate()
    storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  /// The memory that is kept for the next content.
  static let keptBytesMax = 1 << 20

  private func grow(to needed: Int) {
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(needed, 2 * storage.count, 256), alignment: 1)
    larger.copyMemory(from: bytes)
    storage.deallocate()
    storage = larger
  }
}
