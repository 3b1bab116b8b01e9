/// Writes records of the metadata store. A field is a number, a length and bytes, so later versions can add fields.
struct RecordWriter {
  private(set) var bytes: [UInt8] = []

  mutating func put(_ field: UInt8, _ value: some Collection<UInt8>) {
    bytes.append(field)
    appendLength(value.count)
    bytes.append(contentsOf: value)
  }

  mutating func put(_ field: UInt8, _ text: String?) {
    if let text { put(field, text.utf8) }
  }

  mutating func put(_ field: UInt8, _ number: Int64) {
    put(field, (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) })
  }

  private mutating func appendLength(_ count: Int) {
    var rest = count
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }
}

/// Reads records that ``RecordWriter`` wrote. Stops at the first bytes that are not valid.
struct RecordReader {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  /// Whether the record contains bytes that are not valid.
  private(set) var isDamaged = false

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func next() -> (field: UInt8, value: UnsafeRawBufferPointer)? {
    guard position < bytes.count else { return nil }
    let field = bytes[position]
    position += 1
    var count = 0
    var shift = 0
    while true {
      guard position < bytes.count, shift <= 28 else { return damaged() }
      let byte = bytes[position]
      position += 1
      count |= Int(byte & 0x7F) << shift
      if byte < 0x80 { break }
      shift += 7
    }
    guard count <= bytes.count - position else { return damaged() }
    defer { position += count }
    return (field, UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)]))
  }

  private mutating func damaged() -> (field: UInt8, value: UnsafeRawBufferPointer)? {
    isDamaged = true
    return nil
  }
}

extension UnsafeRawBufferPointer {
  /// The field as text.
  var fieldText: String { String(decoding: self, as: UTF8.self) }

  /// The field as a big-endian integer.
  var fieldNumber: Int64 { reduce(0) { $0 << 8 | Int64($1) } }
}
