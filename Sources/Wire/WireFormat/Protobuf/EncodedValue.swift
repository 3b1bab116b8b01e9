package import DocumentModel

/// A view of a `google.firestore.v1.Value` message, read directly from its bytes.
///
/// The message must be in canonical form, with exactly one member of the oneof and nothing else; other bytes throw.
/// Pass a client's input through ``CanonicalEncoder`` first. A view is valid as long as the bytes are.
package struct EncodedValue {
  /// The bytes of the message.
  package let bytes: UnsafeRawBufferPointer

  /// The field numbers of the members of `Value.value_type`.
  package enum Member {
    package static let boolean = 1
    package static let integer = 2
    package static let double = 3
    package static let reference = 5
    package static let map = 6
    package static let geoPoint = 8
    package static let array = 9
    package static let timestamp = 10
    package static let null = 11
    package static let string = 17
    package static let bytes = 18
  }

  /// The type and content of a value. Text and bytes point into the message.
  package enum Content {
    case null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    case timestamp(Timestamp)
    case string(UnsafeRawBufferPointer)
    case bytes(UnsafeRawBufferPointer)
    /// A full document name.
    case reference(UnsafeRawBufferPointer)
    case geoPoint(GeoPoint)
    case array(EncodedArray)
    case map(EncodedMap)
  }

  /// The fields of the value if it is a map that field paths can lead into, else `nil`. Vectors and BSON values are
  /// not.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package var fields: EncodedMap? {
    get throws(WireError) {
      guard case .map(let map) = try content, try !map.isOpaque else { return nil }
      return map
    }
  }

  /// Creates a view of a Value message.
  package init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// The type and content of the value. Cost: reads the tag and a scalar, but not the content of arrays and maps.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not one canonical Value.
  @inline(__always)
  package var content: Content {
    get throws(WireError) {
      if let content = shortContent { return content }
      return try anyContent
    }
  }

  /// The content of a text, a number, a boolean or a time whose length and tag are as short as possible, as in most
  /// documents; `nil` for all other values and for malformed ones.
  @inline(__always)
  private var shortContent: Content? {
    guard let start = bytes.baseAddress, bytes.count >= 2 else { return nil }
    switch start.load(as: UInt8.self) {
    case UInt8(Member.boolean << 3):
      let flag = start.load(fromByteOffset: 1, as: UInt8.self)
      return bytes.count == 2 && flag < 0x80 ? .boolean(flag != 0) : nil
    case UInt8(Member.double << 3 | 1):
      guard bytes.count == 9 else { return nil }
      return .double(
        Double(bitPattern: UInt64(littleEndian: start.loadUnaligned(fromByteOffset: 1, as: UInt64.self))))
    case UInt8(Member.integer << 3):
      var rest = bytes[1...]
      guard let number = Self.takeVarint(&rest), rest.isEmpty else { return nil }
      return .integer(Int64(bitPattern: number))
    case UInt8(Member.timestamp << 3 | 2): return Self.shortTimestamp(bytes)
    case UInt8(truncatingIfNeeded: Member.string << 3 | 2 | 0x80):
      // The tag has two bytes.
      guard bytes.count >= 3, start.load(fromByteOffset: 1, as: UInt8.self) == UInt8(Member.string >> 4) else {
        return nil
      }
      let count = Int(start.load(fromByteOffset: 2, as: UInt8.self))
      guard count < 0x80, bytes.count == 3 + count else { return nil }
      return .string(UnsafeRawBufferPointer(start: start + 3, count: count))
    default: return nil
    }
  }

  /// The content of a time with seconds and perhaps nanoseconds, in this order.
  private static func shortTimestamp(_ bytes: UnsafeRawBufferPointer) -> Content? {
    guard bytes[1] < 0x80, bytes.count == 2 + Int(bytes[1]), bytes.count > 2, bytes[2] == 1 << 3 else { return nil }
    var rest = bytes[3...]
    guard let seconds = takeVarint(&rest) else { return nil }
    var nanos: UInt64 = 0
    if let tag = rest.popFirst() {
      guard tag == 2 << 3, let number = takeVarint(&rest), number < 1_000_000_000, rest.isEmpty else { return nil }
      nanos = number
    }
    let time = try? Timestamp(seconds: Int64(bitPattern: seconds), nanos: Int32(truncatingIfNeeded: nanos))
    return time.map { .timestamp($0) }
  }

  /// Removes a number of at most 63 bits from the front. Returns `nil` if the bytes have another form.
  @inline(__always)
  private static func takeVarint(_ bytes: inout Slice<UnsafeRawBufferPointer>) -> UInt64? {
    var number: UInt64 = 0
    for shift in stride(from: 0 as UInt64, to: 63, by: 7) {
      guard let byte = bytes.popFirst() else { return nil }
      number |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return number }
    }
    return nil
  }

  /// The content of a value of any length.
  var anyContent: Content {
    get throws(WireError) {
      var reader = ProtobufReader(bytes)
      guard let field = try reader.next(), reader.isAtEnd else {
        throw .malformedProtobuf("value is not in canonical form")
      }
      return switch (field.number, field.wireType) {
      case (Member.string, .lengthDelimited): .string(field.bytes)
      case (Member.integer, .varint): .integer(field.int64)
      case (Member.boolean, .varint): .boolean(field.bool)
      case (Member.double, .fixed64): .double(field.double)
      case (Member.map, .lengthDelimited): .map(EncodedMap(mapValue: field.bytes))
      case (Member.array, .lengthDelimited): .array(EncodedArray(field.bytes))
      case (Member.timestamp, .lengthDelimited): .timestamp(try Self.timestamp(field.bytes))
      case (Member.null, .varint): .null
      case (Member.reference, .lengthDelimited): .reference(field.bytes)
      case (Member.bytes, .lengthDelimited): .bytes(field.bytes)
      case (Member.geoPoint, .lengthDelimited): .geoPoint(try Self.geoPoint(field.bytes))
      default: throw .malformedProtobuf("value of unknown type")
      }
    }
  }

  /// Decodes a `google.protobuf.Timestamp` message, truncated to microseconds.
  /// - Throws: ``WireError`` if the message is malformed or the time is out of range.
  package static func timestamp(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Timestamp {
    var reader = ProtobufReader(bytes)
    var seconds: Int64 = 0
    var nanos: Int32 = 0
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .varint): seconds = field.int64
      case (2, .varint): nanos = field.int32
      default: break
      }
    }
    do throws(ModelError) {
      return try Timestamp(seconds: seconds, nanos: nanos)
    } catch {
      throw .model(error)
    }
  }

  /// Decodes a `google.type.LatLng` message without checking the range.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the message is malformed.
  package static func geoPoint(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> GeoPoint {
    var reader = ProtobufReader(bytes)
    var point = GeoPoint(latitude: 0, longitude: 0)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .fixed64): point.latitude = field.double
      case (2, .fixed64): point.longitude = field.double
      default: break
      }
    }
    return point
  }
}

/// A view of a `google.firestore.v1.ArrayValue` message, read directly from its bytes.
package struct EncodedArray {
  /// The bytes of the message, which is a sequence of `values` fields.
  package let bytes: UnsafeRawBufferPointer

  /// Creates a view of an ArrayValue message.
  package init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// Whether the array has no elements.
  package var isEmpty: Bool { bytes.isEmpty }

  /// The number of elements. Cost: skips every element.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package var count: Int {
    get throws(WireError) {
      var iterator = makeIterator()
      var count = 0
      while try iterator.next() != nil { count += 1 }
      return count
    }
  }

  /// Returns an iterator at the first element.
  package func makeIterator() -> Iterator { Iterator(reader: ProtobufReader(bytes)) }

  /// An iterator over the elements in order.
  package struct Iterator {
    fileprivate var reader: ProtobufReader

    /// Returns the next element, or `nil` at the end.
    /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
    package mutating func next() throws(WireError) -> EncodedValue? {
      if reader.isAtEnd { return nil }
      guard reader.skip(0x0A) else { throw .malformedProtobuf("array is not in canonical form") }
      return EncodedValue(try reader.lengthDelimited())
    }
  }
}
