/// Writes the records of the metadata store: fields of a number, a length and bytes, so that later versions can add some.
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

/// Reads what ``RecordWriter`` wrote. Bytes that are none end it.
struct RecordReader {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  /// Whether something was found that no writer writes.
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
  /// The text of a field.
  var fieldText: String { String(decoding: self, as: UTF8.self) }

  /// The number of a field.
  var fieldNumber: Int64 { reduce(0) { $0 << 8 | Int64($1) } }
}
