extension UnsafeRawBufferPointer {
  /// Splits a request target at the `?`.
  package var pathAndQuery: (path: UnsafeRawBufferPointer, query: UnsafeRawBufferPointer) {
    let mark = firstIndex(of: UInt8(ascii: "?")) ?? count
    return (
      UnsafeRawBufferPointer(rebasing: self[..<mark]),
      UnsafeRawBufferPointer(rebasing: self[Swift.min(mark + 1, count)...])
    )
  }

  /// The bytes after a prefix, or `nil` if the bytes do not begin with it.
  package func dropping(_ prefix: StaticString) -> UnsafeRawBufferPointer? {
    guard count >= prefix.utf8CodeUnitCount else { return nil }
    for index in 0..<prefix.utf8CodeUnitCount where self[index] != prefix.utf8Start[index] { return nil }
    return UnsafeRawBufferPointer(rebasing: self[prefix.utf8CodeUnitCount...])
  }
}
