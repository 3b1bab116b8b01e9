import Glibc

extension UnsafeRawBufferPointer {
  /// Returns the offset of the first byte at or after `start` that equals `byte`. Returns the count if no byte does.
  package func offset(of byte: UInt8, from start: Int = 0) -> Int {
    guard let baseAddress, start < count, let found = memchr(baseAddress + start, Int32(byte), count - start) else {
      return count
    }
    return UnsafeRawPointer(found) - baseAddress
  }

  /// Splits a request target at the `?`.
  package var pathAndQuery: (path: UnsafeRawBufferPointer, query: UnsafeRawBufferPointer) {
    let mark = offset(of: UInt8(ascii: "?"))
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
