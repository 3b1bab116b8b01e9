import Glibc

/// A request body that is collected until complete. All its memory is charged to the loop's budget.
struct HTTP2RequestBody: ~Copyable {
  private static let bytesMin = 1024
  private var memory: UnsafeMutableRawPointer?
  private var capacity = 0
  private(set) var count = 0

  deinit {
    free(memory)
  }

  /// The bytes, followed by `InputBuffer.paddingBytes` readable ones. An empty body points to `padding`.
  func bytes(padding: UnsafeRawPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: memory.map { UnsafeRawPointer($0) } ?? padding, count: count)
  }

  /// Appends bytes. Returns `false` if the loop holds too many large requests.
  mutating func append(_ bytes: UnsafeRawBufferPointer, pool: BufferPool) -> Bool {
    guard let source = bytes.baseAddress, !bytes.isEmpty else { return true }
    let needed = count + bytes.count + InputBuffer.paddingBytes
    if needed > capacity {
      let wanted = max(needed, capacity * 2, Self.bytesMin)
      guard pool.reserve(wanted - capacity) else { return false }
      guard let grown = realloc(memory, wanted) else {
        pool.release(wanted - capacity)
        return false
      }
      memory = grown
      capacity = wanted
    }
    if let memory { memcpy(memory + count, source, bytes.count) }
    count += bytes.count
    return true
  }

  /// Returns the memory to the budget.
  mutating func release(to pool: BufferPool) {
    pool.release(capacity)
    free(memory)
    memory = nil
    capacity = 0
    count = 0
  }
}
