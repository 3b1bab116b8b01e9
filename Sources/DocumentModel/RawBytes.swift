extension [UInt8] {
  /// Appends raw bytes with one copy; `append(contentsOf:)` takes the raw kind of buffer byte by byte.
  @inlinable
  package mutating func append(raw bytes: UnsafeRawBufferPointer) {
    append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
  }
}
