/// A reader for the fields of one protobuf message, directly from its bytes.
///
/// The bytes are untrusted: every length is checked against the remaining bytes, a varint has at most 10 bytes, and
/// groups are skipped up to a limited nesting. Nothing is copied or allocated: the fields point into the input.
package struct ProtobufReader {
  /// The layout of a field's payload. Groups have no case: see ``nextOrGroup()``.
  package enum WireType: UInt8, Sendable {
    case varint = 0
    case fixed64 = 1
    case lengthDelimited = 2
    case fixed32 = 5
  }

  /// One field of the message.
  package struct Field {
    /// The field number, from 1 to 2^29 - 1.
    package let number: Int
    /// The layout of the payload.
    package let wireType: WireType
    /// The bits of a ``WireType/varint``, ``WireType/fixed64`` or ``WireType/fixed32`` payload; otherwise 0.
    package let bits: UInt64
    /// The payload of ``WireType/lengthDelimited``; otherwise empty.
    package let bytes: UnsafeRawBufferPointer

    /// The payload as an int64. An int32 or enum is also 64 bits wide on the wire.
    package var int64: Int64 { Int64(bitPattern: bits) }
    /// The payload as an int32, which is the low 32 bits.
    package var int32: Int32 { Int32(truncatingIfNeeded: bits) }
    /// The payload as a bool.
    package var bool: Bool { bits != 0 }
    /// The payload as a double.
    package var double: Double { Double(bitPattern: bits) }
    /// The payload as text. Invalid UTF-8 is replaced by U+FFFD.
    package var string: String { String(decoding: bytes, as: UTF8.self) }
  }

  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  /// The maximum nesting of unknown groups.
  private static let groupDepthMax = 32

  /// Creates a reader at the first field of a message.
  package init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// Whether all bytes were read.
  package var isAtEnd: Bool { offset >= bytes.count }

  /// The number of bytes that were read.
  package var position: Int { offset }

  /// Returns the next field, or `nil` at the end. Groups are skipped.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are malformed.
  package mutating func next() throws(WireError) -> Field? { try next(keepsGroups: false) }

  /// Returns the next field, or `nil` at the end. A group is returned like an embedded message, with the bytes between
  /// its tags as payload.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are malformed.
  package mutating func nextOrGroup() throws(WireError) -> Field? { try next(keepsGroups: true) }

  @inline(__always)
  private mutating func next(keepsGroups: Bool) throws(WireError) -> Field? {
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
        let start = offset
        let end = try skipGroup(number)
        guard keepsGroups, let base = bytes.baseAddress else { continue }
        return Field(
          number: Int(number), wireType: .lengthDelimited, bits: 0,
          bytes: UnsafeRawBufferPointer(start: base + start, count: end - start))
      default:
        throw .malformedProtobuf("wire type out of range")
      }
    }
    return nil
  }

  /// Reads a base-128 number.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if it is truncated or has more than 10 bytes.
  package mutating func varint() throws(WireError) -> UInt64 {
    guard offset < bytes.count else { throw .malformedProtobuf("truncated varint") }
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
    throw .malformedProtobuf("truncated varint")
  }

  /// Reads a length and that number of bytes.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if fewer bytes remain.
  package mutating func lengthDelimited() throws(WireError) -> UnsafeRawBufferPointer {
    let length = try varint()
    guard length <= UInt64(bytes.count - offset) else { throw .malformedProtobuf("field longer than its message") }
    return try take(Int(length))
  }

  /// Reads one byte if it equals `byte`, and returns whether it does.
  @inline(__always)
  mutating func skip(_ byte: UInt8) -> Bool {
    guard offset < bytes.count, bytes[offset] == byte else { return false }
    offset += 1
    return true
  }

  /// Reads an entry of a map if each of its lengths is one byte, as in most entries: `tag`, and a message of exactly the
  /// fields 1 and 2. Otherwise reads nothing and returns `nil`.
  @inline(__always)
  mutating func shortMapEntry(_ tag: UInt8) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    let rest = bytes.count &- offset
    guard rest >= 6, let start = bytes.baseAddress?.advanced(by: offset) else { return nil }
    func byte(_ place: Int) -> Int { Int(truncatingIfNeeded: start.load(fromByteOffset: place, as: UInt8.self)) }
    let end = 2 &+ byte(1)
    let keyCount = byte(3)
    let valueStart = 6 &+ keyCount
    guard byte(0) == Int(tag), end < 2 &+ 0x80, byte(2) == 0x0A, keyCount < 0x80, valueStart <= end, end <= rest,
      byte(valueStart &- 2) == 0x12, byte(valueStart &- 1) < 0x80, valueStart &+ byte(valueStart &- 1) == end
    else { return nil }
    offset &+= end
    return (
      UnsafeRawBufferPointer(start: start + 4, count: keyCount),
      UnsafeRawBufferPointer(start: start + valueStart, count: end &- valueStart)
    )
  }

  private static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

  @inline(__always)
  private mutating func take(_ count: Int) throws(WireError) -> UnsafeRawBufferPointer {
    guard count <= bytes.count - offset, let base = bytes.baseAddress else {
      // A buffer without a base address can still contain an empty field.
      if count == 0 { return Self.empty }
      throw .malformedProtobuf("truncated field")
    }
    defer { offset += count }
    return UnsafeRawBufferPointer(start: base + offset, count: count)
  }

  /// Skips to the end of a group whose start tag was just read. Returns the end of its content.
  private mutating func skipGroup(_ number: UInt64) throws(WireError) -> Int {
    // The numbers of the open groups. Each group must end with its own end tag.
    var open: [UInt64] = [number]
    var contentEnd = offset
    while let innermost = open.last {
      contentEnd = offset
      let tag = try varint()
      switch tag & 7 {
      case 0: _ = try varint()
      case 1: _ = try take(8)
      case 2: _ = try lengthDelimited()
      case 3:
        guard open.count < Self.groupDepthMax else { throw .malformedProtobuf("groups are nested too deeply") }
        open.append(tag >> 3)
      case 4:
        guard tag >> 3 == innermost else { throw .malformedProtobuf("group ends with the tag of another group") }
        open.removeLast()
      case 5: _ = try take(4)
      default: throw .malformedProtobuf("wire type out of range")
      }
    }
    return contentEnd
  }
}
