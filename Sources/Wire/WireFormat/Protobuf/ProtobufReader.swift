/// Reads the fields of one protobuf message in place.
///
/// The bytes may be hostile: every length is checked against what is left, a varint has at most 10 bytes, and groups
/// are skipped with bounded nesting. Nothing is copied or allocated; what it hands out points into the input.
package struct ProtobufReader {
  /// How a field's payload is laid out. Groups are never handed out.
  package enum WireType: UInt8, Sendable {
    case varint = 0
    case fixed64 = 1
    case lengthDelimited = 2
    case fixed32 = 5
  }

  /// One field as it stands in the message.
  package struct Field {
    /// The field number, 1 to 2^29 - 1.
    package let number: Int
    /// How the payload is laid out.
    package let wireType: WireType
    /// The payload of ``WireType/varint``, ``WireType/fixed64`` and ``WireType/fixed32``, as bits; else 0.
    package let bits: UInt64
    /// The payload of ``WireType/lengthDelimited``; else empty.
    package let bytes: UnsafeRawBufferPointer

    /// The payload as int64 (or an int32 or enum, which the wire extends to 64 bits).
    package var int64: Int64 { Int64(bitPattern: bits) }
    /// The payload as int32: the low 32 bits, as protobuf has it.
    package var int32: Int32 { Int32(truncatingIfNeeded: bits) }
    /// The payload as bool.
    package var bool: Bool { bits != 0 }
    /// The payload as double.
    package var double: Double { Double(bitPattern: bits) }
    /// The payload as text; ill-formed UTF-8 is repaired.
    package var string: String { String(decoding: bytes, as: UTF8.self) }
  }

  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  /// How deep unknown groups may nest.
  private static let groupDepthMax = 32

  /// Starts at the first field of a message.
  package init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// Whether everything was read.
  package var isAtEnd: Bool { offset >= bytes.count }

  /// How many bytes were read.
  package var position: Int { offset }

  /// The next field, or `nil` at the end. Unknown groups are skipped.
  /// - Throws: ``WireError/malformedProtobuf(_:)``.
  package mutating func next() throws(WireError) -> Field? {
    while offset < bytes.count {
      let tag = try varint()
      let number = tag >> 3
      guard number > 0, number < 1 << 29 else { throw .malformedProtobuf("field number out of range") }
      switch tag & 7 {
      case 0:
        return Field(number: Int(number), wireType: .varint, bits: try varint(), bytes: Self.empty)
      case 1:
        let payload = try take(8)
        let bits = UInt64(littleEndian: payload.loadUnaligned(as: UInt64.self))
        return Field(number: Int(number), wireType: .fixed64, bits: bits, bytes: Self.empty)
      case 2:
        return Field(number: Int(number), wireType: .lengthDelimited, bits: 0, bytes: try lengthDelimited())
      case 5:
        let payload = try take(4)
        let bits = UInt64(UInt32(littleEndian: payload.loadUnaligned(as: UInt32.self)))
        return Field(number: Int(number), wireType: .fixed32, bits: bits, bytes: Self.empty)
      case 3:
        try skipGroup(number)
      default:
        throw .malformedProtobuf("wire type out of range")
      }
    }
    return nil
  }

  /// Reads a base-128 number.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` when it is cut short or has more than 10 bytes.
  package mutating func varint() throws(WireError) -> UInt64 {
    guard offset < bytes.count else { throw .malformedProtobuf("varint cut short") }
    let first = bytes[offset]
    if first < 0x80 {
      offset += 1
      return UInt64(first)
    }
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while offset < bytes.count {
      let byte = bytes[offset]
      offset += 1
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
      shift += 7
      guard shift < 70 else { throw .malformedProtobuf("varint longer than 10 bytes") }
    }
    throw .malformedProtobuf("varint cut short")
  }

  /// Reads a length and that many bytes.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` when fewer are left.
  package mutating func lengthDelimited() throws(WireError) -> UnsafeRawBufferPointer {
    let length = try varint()
    guard length <= UInt64(bytes.count - offset) else { throw .malformedProtobuf("field longer than its message") }
    return try take(Int(length))
  }

  /// Reads one byte if it is `byte`; returns whether it was.
  @inline(__always)
  mutating func skip(_ byte: UInt8) -> Bool {
    guard offset < bytes.count, bytes[offset] == byte else { return false }
    offset += 1
    return true
  }

  private static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

  @inline(__always)
  private mutating func take(_ count: Int) throws(WireError) -> UnsafeRawBufferPointer {
    guard count <= bytes.count - offset, let base = bytes.baseAddress else {
      // An empty buffer without an address still holds a field of no bytes.
      if count == 0 { return Self.empty }
      throw .malformedProtobuf("field cut short")
    }
    defer { offset += count }
    return UnsafeRawBufferPointer(start: base + offset, count: count)
  }

  /// Skips to the end of a group whose start tag was just read.
  private mutating func skipGroup(_ number: UInt64) throws(WireError) {
    // The numbers of the open groups: each must be closed by its own end tag.
    var open: [UInt64] = [number]
    while let innermost = open.last {
      let tag = try varint()
      switch tag & 7 {
      case 0: _ = try varint()
      case 1: _ = try take(8)
      case 2: _ = try lengthDelimited()
      case 3:
        guard open.count < Self.groupDepthMax else { throw .malformedProtobuf("groups nest too deep") }
        open.append(tag >> 3)
      case 4:
        guard tag >> 3 == innermost else { throw .malformedProtobuf("group closed by another's end") }
        open.removeLast()
      case 5: _ = try take(4)
      default: throw .malformedProtobuf("wire type out of range")
      }
    }
  }
}
