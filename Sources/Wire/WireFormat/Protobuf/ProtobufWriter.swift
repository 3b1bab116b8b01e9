package import DocumentModel

/// A writer that appends protobuf fields to a byte array.
///
/// Cost: no allocation except the growth of the array. Scalars are written even if they have their default value.
/// The caller decides whether to omit them, because members of a oneof must be written.
package enum ProtobufWriter {
  /// Appends a base-128 number.
  package static func varint(_ value: UInt64, to out: inout [UInt8]) {
    var rest = value
    while rest >= 0x80 {
      out.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    out.append(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends the tag of a field.
  package static func tag(_ number: Int, _ wireType: ProtobufReader.WireType, to out: inout [UInt8]) {
    varint(UInt64(number) << 3 | UInt64(wireType.rawValue), to: &out)
  }

  /// Appends an int32, int64 or enum field.
  package static func int64(_ number: Int, _ value: Int64, to out: inout [UInt8]) {
    tag(number, .varint, to: &out)
    varint(UInt64(bitPattern: value), to: &out)
  }

  /// Appends a bool field.
  package static func bool(_ number: Int, _ value: Bool, to out: inout [UInt8]) {
    tag(number, .varint, to: &out)
    out.append(value ? 1 : 0)
  }

  /// Appends a double field.
  package static func double(_ number: Int, _ value: Double, to out: inout [UInt8]) {
    tag(number, .fixed64, to: &out)
    withUnsafeBytes(of: value.bitPattern.littleEndian) { out.append(contentsOf: $0) }
  }

  /// Appends a bytes field, a string given as UTF-8, or a message that is already encoded.
  package static func bytes(_ number: Int, _ value: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    tag(number, .lengthDelimited, to: &out)
    varint(UInt64(value.count), to: &out)
    out.append(raw: value)
  }

  /// Appends a bytes field.
  package static func bytes(_ number: Int, _ value: [UInt8], to out: inout [UInt8]) {
    value.withUnsafeBytes { bytes(number, $0, to: &out) }
  }

  /// Appends a string field.
  package static func string(_ number: Int, _ value: String, to out: inout [UInt8]) {
    var copy = value
    copy.withUTF8 { bytes(number, UnsafeRawBufferPointer($0), to: &out) }
  }

  /// Appends a `google.protobuf.Timestamp` field.
  package static func timestamp(_ number: Int, _ value: Timestamp, to out: inout [UInt8]) {
    let start = beginMessage(number, to: &out)
    let (seconds, nanos) = (value.seconds, value.nanos)
    if seconds != 0 { int64(1, seconds, to: &out) }
    if nanos != 0 { int64(2, Int64(nanos), to: &out) }
    endMessage(start, in: &out)
  }

  /// Appends a `google.type.LatLng` field.
  package static func geoPoint(_ number: Int, _ value: GeoPoint, to out: inout [UInt8]) {
    let start = beginMessage(number, to: &out)
    // Compared by bits, because -0.0 is not the default.
    if value.latitude.bitPattern != 0 { double(1, value.latitude, to: &out) }
    if value.longitude.bitPattern != 0 { double(2, value.longitude, to: &out) }
    endMessage(start, in: &out)
  }

  /// Appends a message field. `body` appends its content.
  /// - Throws: The error that `body` throws.
  package static func message<E: Error>(
    _ number: Int, to out: inout [UInt8], _ body: (inout [UInt8]) throws(E) -> Void
  ) throws(E) {
    let start = beginMessage(number, to: &out)
    try body(&out)
    endMessage(start, in: &out)
  }

  /// Appends the tag of a message field and one byte for its length. Returns the start of the content.
  ///
  /// Append the content, then pass the returned value to ``endMessage(_:in:)``. Messages nest like brackets.
  package static func beginMessage(_ number: Int, to out: inout [UInt8]) -> Int {
    tag(number, .lengthDelimited, to: &out)
    out.append(0)
    return out.count
  }

  /// Sets the length of the message whose content starts at `start`.
  ///
  /// Cost: constant below 128 bytes. For longer messages the content moves by one to four bytes.
  package static func endMessage(_ start: Int, in out: inout [UInt8]) {
    let length = out.count - start
    if length < 0x80 {
      out[start - 1] = UInt8(length)
      return
    }
    var extra = 1
    while length >> (7 * (extra + 1)) != 0 { extra += 1 }
    for _ in 0..<extra { out.append(0) }
    out.withUnsafeMutableBytes { buffer in
      guard let base = buffer.baseAddress else { return }
      (base + start + extra).copyMemory(from: base + start, byteCount: length)
      var rest = length
      for index in 0..<extra {
        buffer[start - 1 + index] = UInt8(truncatingIfNeeded: rest) | 0x80
        rest >>= 7
      }
      buffer[start - 1 + extra] = UInt8(rest)
    }
  }
}
