/// Adds header fields to a response. The transport itself writes `Date`, `Content-Length`, `Transfer-Encoding`,
/// `Connection` and, if it compresses, `Content-Encoding`. Do not add those.
package struct HeaderWriter: ~Copyable {
  var bytes: [UInt8]

  init(bytes: consuming [UInt8]) {
    self.bytes = bytes
  }

  /// Adds a field with a constant value.
  package mutating func add(_ name: StaticString, _ value: StaticString) {
    addName(name)
    bytes.append(value)
    bytes.append("\r\n")
  }

  /// Adds fields that are constants, each ended by CR and LF.
  package mutating func add(lines: StaticString) { bytes.append(lines) }

  /// Adds a field. CR, LF and NUL in the value become spaces, so that a value cannot start another field.
  package mutating func add(_ name: StaticString, _ value: String) {
    addName(name)
    let start = bytes.count
    bytes.append(contentsOf: value.utf8)
    endValue(from: start)
  }

  /// Adds a field with a value of bytes. CR, LF and NUL become spaces.
  package mutating func add(_ name: StaticString, bytes value: UnsafeRawBufferPointer) {
    addName(name)
    let start = bytes.count
    bytes.append(raw: value)
    endValue(from: start)
  }

  /// Adds a field whose name is not a constant. The name must be a token.
  package mutating func add(name: String, value: String) {
    bytes.append(contentsOf: name.utf8)
    bytes.append(": ")
    let start = bytes.count
    bytes.append(contentsOf: value.utf8)
    endValue(from: start)
  }

  /// Adds fields that were written before.
  package mutating func add(_ block: HeaderBlock) { bytes.append(contentsOf: block.bytes) }

  private mutating func addName(_ name: StaticString) {
    bytes.append(name)
    bytes.append(": ")
  }

  private mutating func endValue(from start: Int) {
    bytes.withUnsafeMutableBufferPointer { bytes in
      for index in start..<bytes.count where bytes[index] <= 0x0d {
        if bytes[index] == 0x0d || bytes[index] == 0x0a || bytes[index] == 0 { bytes[index] = 0x20 }
      }
    }
    bytes.append("\r\n")
  }
}

/// Header fields that are written once and added to many responses.
package struct HeaderBlock: Sendable {
  let bytes: [UInt8]
  /// The bytes of the fields.
  package var count: Int { bytes.count }

  /// Creates a block of the fields that `write` adds.
  package init(_ write: (inout HeaderWriter) -> Void) {
    var writer = HeaderWriter(bytes: [])
    write(&writer)
    bytes = writer.bytes
  }
}

extension [UInt8] {
  @inline(__always)
  mutating func append(_ text: StaticString) {
    append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  // Appending an `UnsafeBufferPointer` makes one copy, whereas the raw kind is appended byte by byte.
  @inline(__always)
  mutating func append(raw bytes: UnsafeRawBufferPointer) {
    append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
  }

  /// Writes `value` right-aligned into `width` bytes from `start`, padded with blanks.
  ///
  /// - Precondition: the decimal form fits the width.
  mutating func writeDecimal(_ value: Int, at start: Int, width: Int) {
    var rest = value
    var index = start + width
    repeat {
      index -= 1
      self[index] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0 && index > start
    precondition(rest == 0)
    while index > start {
      index -= 1
      self[index] = 0x20
    }
  }

  /// Writes `value` as `width` hexadecimal digits from `start`, padded with zeros.
  mutating func writeHexadecimal(_ value: Int, at start: Int, width: Int) {
    var rest = value
    for index in stride(from: start + width - 1, through: start, by: -1) {
      let digit = UInt8(truncatingIfNeeded: rest & 15)
      self[index] = digit < 10 ? 0x30 + digit : 0x57 + digit
      rest >>= 4
    }
    precondition(rest == 0)
  }
}
