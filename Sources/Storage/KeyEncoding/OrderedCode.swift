import DocumentModel
import Glibc
package import WireFormat

/// Byte strings that sort, as unsigned bytes, in the order of the values they encode.
///
/// For values `a` and `b`, `encode(a) < encode(b)` exactly if `a` precedes `b` in the order of firestore-api.md,
/// section 3, and the codes are equal exactly if the values are equal there. Every code is self-delimiting, so
/// codes can be concatenated: the result sorts by its first part, then by its second.
///
/// A value's code may be cut at a budget of bytes. Cut codes keep the order, but several values may share one. The
/// mark ``truncated`` shows the cut; a caller that needs the exact order compares the documents.
package enum OrderedCode {
  /// Ends a byte string. A zero byte in the string is written as `00 FF`.
  static let end: UInt8 = 0x01
  /// Marks a cut code. It sorts above every end and below every continuation at the same place.
  static let truncated: UInt8 = 0x02
  /// Ends the elements of an array or a map. It sorts below every type's label.
  static let endOfElements: UInt8 = 0x01
  private static let escape: UInt8 = 0x00
  private static let escapedZero: UInt8 = 0xFF
  /// The labels of numeric document IDs and of all other IDs (firestore-api.md, section 3.1).
  private static let numericID: UInt8 = 0x10
  private static let textID: UInt8 = 0x20

  // MARK: Numbers and IDs

  /// Appends the code of a number: one byte for numbers below 240, at most nine.
  package static func append(number: UInt64, to out: inout [UInt8]) {
    if number < 0xF0 {
      out.append(UInt8(number))
      return
    }
    let width = (64 - number.leadingZeroBitCount + 7) / 8
    out.append(0xF0 + UInt8(width - 1))
    for shift in stride(from: (width - 1) * 8, through: 0, by: -8) {
      out.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
    }
  }

  /// Removes a number from the front and returns it, or returns `nil` if the bytes are malformed.
  package static func takeNumber(_ bytes: inout UnsafeRawBufferPointer) -> UInt64? {
    guard let first = bytes.first else { return nil }
    if first < 0xF0 {
      bytes = UnsafeRawBufferPointer(rebasing: bytes[1...])
      return UInt64(first)
    }
    let width = Int(first - 0xF0) + 1
    guard width <= 8, bytes.count > width else { return nil }
    var number: UInt64 = 0
    for index in 1...width { number = number << 8 | UInt64(bytes[index]) }
    bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(width + 1))
    return number
  }

  /// Appends a commit version as eight bytes.
  package static func append(version: Int64, to out: inout [UInt8]) {
    appendBigEndian(UInt64(bitPattern: version) ^ (1 << 63), to: &out)
  }

  /// Returns the version at the end of a key, or `nil` if the key is too short.
  package static func version(atEndOf key: UnsafeRawBufferPointer) -> Int64? {
    guard key.count >= 8 else { return nil }
    return version(at: key.count - 8, of: key)
  }

  /// Returns the version at an offset. At least eight bytes must follow the offset.
  package static func version(at offset: Int, of key: UnsafeRawBufferPointer) -> Int64 {
    let bits = UInt64(bigEndian: key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    return Int64(bitPattern: bits ^ (1 << 63))
  }

  /// Appends a document ID as the last part of a key, without an end mark.
  package static func append<ID: Collection<UInt8>>(lastID id: ID, to out: inout [UInt8]) {
    withBytes(of: id) { append(lastID: $0, to: &out) }
  }

  /// Appends a document ID given as raw bytes; see ``append(lastID:to:)-(ID,_)``.
  package static func append(lastID id: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    if id.first == UInt8(ascii: "_"), let number = ResourceID.number(id) {
      out.append(numericID)
      append(signed: number, to: &out)
    } else {
      out.append(textID)
      out.append(raw: id)
    }
  }

  /// Appends a document ID or another path segment, with an end mark.
  package static func append<ID: Collection<UInt8>>(segment id: ID, to out: inout [UInt8]) {
    withBytes(of: id) { append(segment: $0, to: &out) }
  }

  /// Appends a path segment given as raw bytes; see ``append(segment:to:)-(ID,_)``.
  package static func append(segment id: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    if id.first == UInt8(ascii: "_"), let number = ResourceID.number(id) {
      out.append(numericID)
      append(signed: number, to: &out)
    } else {
      out.append(textID)
      appendEscaped(id, to: &out)
      out.append(escape)
      out.append(end)
    }
  }

  /// Calls `body` with the contiguous bytes of an ID. Other modules call generic code, which would copy byte by byte.
  private static func withBytes<ID: Collection<UInt8>>(of id: ID, _ body: (UnsafeRawBufferPointer) -> Void) {
    if id.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) == nil {
      Array(id).withUnsafeBytes(body)
    }
  }

  /// Decodes a document ID that ``append(lastID:to:)`` encoded, and appends it in the form used in paths.
  ///
  /// Returns `false` if the bytes are malformed.
  package static func decode(lastID code: UnsafeRawBufferPointer, into id: inout [UInt8]) -> Bool {
    guard let label = code.first else { return false }
    let rest = UnsafeRawBufferPointer(rebasing: code[1...])
    if label == textID {
      id.append(raw: rest)
      return true
    }
    guard label == numericID, rest.count == 8 else { return false }
    appendNumericID(rest, to: &id)
    return true
  }

  /// Appends a document ID in the form of a segment, given the code that ``append(lastID:to:)`` made.
  package static func append(segmentOfLastID code: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    guard code.first == textID else { return out.append(raw: code) }
    out.append(textID)
    appendEscaped(UnsafeRawBufferPointer(rebasing: code.dropFirst()), to: &out)
    out.append(escape)
    out.append(end)
  }

  /// Removes a segment from the front and appends its ID. Returns `false` if the bytes are malformed.
  package static func take(segment code: inout UnsafeRawBufferPointer, into id: inout [UInt8]) -> Bool {
    guard let label = code.first else { return false }
    if label == numericID {
      guard code.count >= 9 else { return false }
      appendNumericID(UnsafeRawBufferPointer(rebasing: code[1..<9]), to: &id)
      code = UnsafeRawBufferPointer(rebasing: code[9...])
      return true
    }
    guard label == textID else { return false }
    var index = 1
    while index < code.count {
      let byte = code[index]
      if byte != escape {
        id.append(byte)
        index += 1
        continue
      }
      guard index + 1 < code.count else { return false }
      if code[index + 1] == end {
        code = UnsafeRawBufferPointer(rebasing: code[(index + 2)...])
        return true
      }
      guard code[index + 1] == escapedZero else { return false }
      id.append(0)
      index += 2
    }
    return false
  }

  private static func appendNumericID(_ code: UnsafeRawBufferPointer, to id: inout [UInt8]) {
    let bits = UInt64(bigEndian: code.loadUnaligned(as: UInt64.self)) ^ (1 << 63)
    id.append(contentsOf: "__id".utf8)
    id.append(contentsOf: String(Int64(bitPattern: bits)).utf8)
    id.append(contentsOf: "__".utf8)
  }

  // MARK: Values

  /// Inverts every bit from an offset on, which reverses the order of codes. This works because codes are
  /// self-delimiting, so no code is a prefix of another.
  package static func invert(_ bytes: inout [UInt8], from start: Int) {
    for index in start..<bytes.count { bytes[index] = ~bytes[index] }
  }

  /// Appends a value's code, cut after about `budget` bytes.
  ///
  /// Returns whether the code is whole. Cost: linear in the encoded part of the value.
  /// - Throws: ``WireError`` if the stored bytes are not a valid value.
  @discardableResult
  package static func append(
    _ value: EncodedValue, to out: inout [UInt8], budget: Int = Limits.indexedValueBytesMax
  ) throws(WireError) -> Bool {
    try append(value, to: &out, limit: out.count + max(0, min(budget, Int.max / 2)))
  }

  static func append(
    _ value: EncodedValue, to out: inout [UInt8], limit: Int
  ) throws(WireError) -> Bool {
    switch try value.content {
    case .null:
      out.append(TypeBracket.null.rawValue)
    case .boolean(let flag):
      out.append(TypeBracket.boolean.rawValue)
      out.append(flag ? 1 : 0)
    case .integer(let number):
      append(integer: number, to: &out)
    case .double(let number):
      append(double: number, to: &out)
    case .timestamp(let time):
      out.append(TypeBracket.timestamp.rawValue)
      append(signed: time.microseconds, to: &out)
    case .string(let bytes):
      out.append(TypeBracket.string.rawValue)
      return appendBytes(bytes, to: &out, limit: limit)
    case .bytes(let bytes):
      out.append(TypeBracket.bytes.rawValue)
      return appendBytes(bytes, to: &out, limit: limit)
    case .reference(let name):
      out.append(TypeBracket.reference.rawValue)
      return appendReference(name, to: &out, limit: limit)
    case .geoPoint(let point):
      out.append(TypeBracket.geoPoint.rawValue)
      appendSortable(point.latitude, to: &out)
      appendSortable(point.longitude, to: &out)
    case .array(let elements):
      out.append(TypeBracket.array.rawValue)
      return try appendElements(elements, to: &out, limit: limit)
    case .map(let map):
      if let components = try map.vectorComponents {
        out.append(TypeBracket.vector.rawValue)
        return try appendVector(components, to: &out, limit: limit)
      }
      if let (type, content) = try map.bson { return try append(content, type, to: &out, limit: limit) }
      out.append(TypeBracket.map.rawValue)
      return try appendEntries(map, to: &out, limit: limit)
    }
    return true
  }

  static func append(signed number: Int64, to out: inout [UInt8]) {
    appendBigEndian(UInt64(bitPattern: number) ^ (1 << 63), to: &out)
  }

  /// Appends the code of a double value.
  package static func append(double number: Double, to out: inout [UInt8]) {
    guard !number.isNaN else {
      out.append(TypeBracket.nan.rawValue)
      return
    }
    out.append(TypeBracket.number.rawValue)
    appendSortable(number, to: &out)
    if isWide(number) { appendRemainder(0, to: &out) }
  }

  /// Appends an integer: the largest double that is not above it, then the distance from that double if doubles
  /// around it have gaps.
  package static func append(integer number: Int64, to out: inout [UInt8]) {
    out.append(TypeBracket.number.rawValue)
    var base = Double(number)
    if base >= 0x1p63 || Int64(base) > number { base = base.nextDown }
    appendSortable(base, to: &out)
    if isWide(base) { appendRemainder(UInt16(number - Int64(base)), to: &out) }
  }

  /// Whether some integers around a double are not doubles.
  private static func isWide(_ number: Double) -> Bool {
    let magnitude = abs(number)
    return magnitude >= 0x1p53 && magnitude <= 0x1p63
  }

  private static func appendRemainder(_ remainder: UInt16, to out: inout [UInt8]) {
    out.append(UInt8(remainder >> 8))
    out.append(UInt8(remainder & 0xFF))
  }

  private static func appendSortable(_ number: Double, to out: inout [UInt8]) {
    let bits = (number == 0 ? 0.0 : number).bitPattern
    appendBigEndian(bits & (1 << 63) == 0 ? bits | (1 << 63) : ~bits, to: &out)
  }

  private static func appendBigEndian(_ bits: UInt64, to out: inout [UInt8]) {
    withUnsafeBytes(of: bits.bigEndian) { out.append(raw: $0) }
  }

  /// Appends the whole code of a string value, given as UTF-8.
  package static func append(string text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    out.append(TypeBracket.string.rawValue)
    _ = appendBytes(text, to: &out, limit: .max)
  }

  private static func appendEscaped(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    guard let start = bytes.baseAddress, memchr(start, 0, bytes.count) != nil else {
      out.append(raw: bytes)
      return
    }
    for byte in bytes {
      out.append(byte)
      if byte == 0 { out.append(escapedZero) }
    }
  }

  static func appendBytes(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8], limit: Int) -> Bool {
    let room = max(0, limit - out.count)
    let isWhole = bytes.count <= room
    appendEscaped(isWhole ? bytes : UnsafeRawBufferPointer(rebasing: bytes[..<room]), to: &out)
    out.append(escape)
    out.append(isWhole ? end : truncated)
    return isWhole
  }

  private static func appendReference(_ name: UnsafeRawBufferPointer, to out: inout [UInt8], limit: Int) -> Bool {
    var start = 0
    for index in 0...name.count where index == name.count || name[index] == UInt8(ascii: "/") {
      if out.count >= limit {
        out.append(truncated)
        return false
      }
      append(segment: UnsafeRawBufferPointer(rebasing: name[start..<index]), to: &out)
      start = index + 1
    }
    out.append(endOfElements)
    return true
  }

  private static func appendElements(
    _ elements: EncodedArray, to out: inout [UInt8], limit: Int
  ) throws(WireError) -> Bool {
    var elements = elements.makeIterator()
    while let element = try elements.next() {
      if out.count >= limit {
        out.append(truncated)
        return false
      }
      guard try append(element, to: &out, limit: limit) else { return false }
    }
    out.append(endOfElements)
    return true
  }

  private static func appendVector(
    _ components: EncodedArray, to out: inout [UInt8], limit: Int
  ) throws(WireError) -> Bool {
    var counting = components.makeIterator()
    var dimension: UInt64 = 0
    while try counting.next() != nil { dimension += 1 }
    append(number: dimension, to: &out)
    return try appendElements(components, to: &out, limit: limit)
  }

  private static func appendEntries(
    _ map: EncodedMap, to out: inout [UInt8], limit: Int
  ) throws(WireError) -> Bool {
    var entries = map.makeIterator()
    while let (key, value) = try entries.next() {
      if out.count >= limit {
        out.append(truncated)
        return false
      }
      out.append(TypeBracket.string.rawValue)
      guard appendBytes(key, to: &out, limit: limit) else { return false }
      guard try append(value, to: &out, limit: limit) else { return false }
    }
    out.append(endOfElements)
    return true
  }
}
