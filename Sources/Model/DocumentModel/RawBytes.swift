import Glibc

extension [UInt8] {
  /// Appends raw bytes with one copy. `append(contentsOf:)` would copy a raw buffer byte by byte.
  @inlinable
  package mutating func append(raw bytes: UnsafeRawBufferPointer) {
    append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
  }
}

extension Ordering {
  /// Compares bytes in the order of ``bytes(_:_:)``, with one call of `memcmp`.
  package static func raw(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Ordering {
    if let left = a.baseAddress, let right = b.baseAddress {
      let order = memcmp(left, right, min(a.count, b.count))
      if order != 0 { return order < 0 ? .less : .greater }
    }
    return Ordering(a.count, b.count)
  }

  /// Compares the bytes of two arrays in the order of ``bytes(_:_:)``.
  package static func raw(_ a: [UInt8], _ b: [UInt8]) -> Ordering {
    a.withUnsafeBytes { a in b.withUnsafeBytes { b in raw(a, b) } }
  }
}
