/// The components of a stored vector, read where they lie.
///
/// In canonical form every component is a double and so takes the same number of bytes: the array is a table. Valid as
/// long as the bytes are.
package struct EncodedVector {
  /// The number of components.
  package let count: Int
  private let bytes: UnsafeRawBufferPointer

  /// Bytes from one component to the next: tag and length of the element, tag of the double, the double.
  private static let stride = 11
  /// What stands before each double, as a little-endian number of three bytes.
  private static let head: UInt32 = 0x19_09_0A
  private static let headMask: UInt32 = 0xFF_FF_FF

  /// The components of a value, or `nil` where it is no vector. Cost: does not look at the components.
  /// - Throws: ``WireError/malformedProtobuf(_:)``.
  package init?(_ value: EncodedValue) throws(WireError) {
    guard case .map(let map) = try value.content, let array = try map.vectorComponents else { return nil }
    guard array.bytes.count.isMultiple(of: Self.stride) else {
      throw .malformedProtobuf("vector is not in canonical form")
    }
    bytes = array.bytes
    count = array.bytes.count / Self.stride
  }

  /// Reads four components from `index` on; `wrong` gets bits set where one is no double.
  @inline(__always)
  func four(from index: Int, _ wrong: inout UInt32) -> SIMD4<Double> {
    SIMD4(
      component(index, &wrong), component(index + 1, &wrong), component(index + 2, &wrong),
      component(index + 3, &wrong))
  }

  @inline(__always)
  func component(_ index: Int, _ wrong: inout UInt32) -> Double {
    let offset = index &* Self.stride
    wrong |= (UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) & Self.headMask) ^ Self.head
    return Double(
      bitPattern: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 3, as: UInt64.self)))
  }
}
