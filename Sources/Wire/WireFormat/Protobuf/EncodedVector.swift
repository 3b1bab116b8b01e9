/// A view of the components of a stored vector, read directly from their bytes.
///
/// In canonical form every component is a double and takes the same number of bytes, so the array is a table. A
/// view is valid as long as the bytes are.
package struct EncodedVector {
  package let count: Int
  private let bytes: UnsafeRawBufferPointer

  /// The distance between components, in bytes: tag and length of the element, tag of the double, the double.
  private static let stride = 11
  /// The bytes before each double, as a little-endian number of three bytes.
  private static let head: UInt32 = 0x19_09_0A
  private static let headMask: UInt32 = 0xFF_FF_FF

  /// Creates a view of a vector, or returns `nil` if the value is not a vector. Does not read the components.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the value is not in canonical form.
  package init?(_ value: EncodedValue) throws(WireError) {
    guard case .map(let map) = try value.content, let array = try map.vectorComponents else { return nil }
    guard array.bytes.count.isMultiple(of: Self.stride) else {
      throw .malformedProtobuf("vector is not in canonical form")
    }
    bytes = array.bytes
    count = array.bytes.count / Self.stride
  }

  /// Reads four components from `index` on. Sets bits in `wrong` if one of them is not a double.
  @inline(__always)
  func four(from index: Int, _ wrong: inout UInt32) -> SIMD4<Double> {
    SIMD4(
      component(index, &wrong), component(index + 1, &wrong), component(index + 2, &wrong),
      component(index + 3, &wrong))
  }

  @inline(__always)
  func component(_ index: Int, _ wrong: inout UInt32) -> Double {
    let offset = index &* Self.stride
    wrong |=
      (UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) & Self.headMask) ^ Self.head
    return Double(
      bitPattern: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 3, as: UInt64.self)))
  }
}
