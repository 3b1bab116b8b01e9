import CSimdjson
package import DocumentModel

/// A writer that appends a JSON text to a byte array piece by piece.
///
/// The caller opens and closes objects and arrays, and calls ``key(_:)-(StaticString)`` before the value of each
/// member. The writer adds commas and line breaks. It does not check the order of calls. Cost: no allocation except
/// the growth of ``bytes``.
package struct JSONWriter {
  /// The layout of the text.
  package enum Style: Sendable {
    /// One member per line, indented by two spaces per level, as the service prints by default.
    case pretty
    /// Without spaces and line breaks.
    case compact
  }

  /// The text so far. The caller can take it, or set a buffer that has capacity.
  package var bytes: [UInt8]
  /// Whether to escape all characters outside ASCII in strings.
  package var escapesNonASCII = false
  let style: Style
  private(set) var depth: Int
  /// The level at which the text began. Values at this level are not separated.
  private let baseDepth: Int
  /// Whether the innermost object or array is still empty.
  var isFirst = true
  /// Whether a key was written and its value comes next.
  private var isAfterKey = false
  /// The date of the latest time that a ``ReservedJSON`` wrote.
  var latestDate = Timestamp.RFC3339Date()

  /// Creates a writer that appends to `bytes`. `depth` is the indentation level of the surrounding text.
  package init(_ style: Style, bytes: [UInt8] = [], depth: Int = 0) {
    self.style = style
    self.bytes = bytes
    self.depth = depth
    baseDepth = depth
  }

  // MARK: Structure

  /// Opens an object.
  package mutating func beginObject() { open(UInt8(ascii: "{")) }
  /// Closes an object. An empty one is `{}`.
  package mutating func endObject() { close(UInt8(ascii: "}")) }
  /// Opens an array.
  package mutating func beginArray() { open(UInt8(ascii: "[")) }
  /// Closes an array. An empty one is `[]`.
  package mutating func endArray() { close(UInt8(ascii: "]")) }

  /// Writes the name of a member. The name must not need escaping.
  package mutating func key(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    bytes.append(raw: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    endKey()
  }

  /// Writes the name of a member.
  package mutating func key(_ name: UnsafeRawBufferPointer) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    escape(name)
    endKey()
  }

  // MARK: Values

  /// Writes `null`.
  package mutating func null() { word("null") }

  /// Writes `true` or `false`.
  package mutating func bool(_ value: Bool) { word(value ? "true" : "false") }

  /// Writes an int32 or a count as a number.
  package mutating func number(_ value: Int) {
    separate()
    digits(Int64(value))
  }

  /// Writes an int64 as a string of digits.
  package mutating func int64(_ value: Int64) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    digits(value)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes a double: the shortest number that reads back as the same double, or the name of a non-finite one as a
  /// string.
  package mutating func double(_ value: Double) {
    if value.isFinite {
      separate()
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(hearth_double_text_max)) { buffer in
        guard let start = buffer.baseAddress else { return }
        bytes.append(raw: UnsafeRawBufferPointer(start: start, count: hearth_format_double(value, start)))
      }
    } else {
      word(value.isNaN ? "\"NaN\"" : (value < 0 ? "\"-Infinity\"" : "\"Infinity\""))
    }
  }

  /// Writes UTF-8 bytes as a string.
  package mutating func string(_ text: UnsafeRawBufferPointer) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    escape(text)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes a Swift string as a JSON string.
  package mutating func string(_ text: String) {
    text.withRawUTF8 { string($0) }
  }

  /// Writes a value that is already JSON.
  package mutating func value(_ json: String) {
    separate()
    bytes.append(contentsOf: json.utf8)
  }

  /// Writes two texts as one string with `/` between them, such as a documents root and a path.
  package mutating func string(_ first: UnsafeRawBufferPointer, slash second: UnsafeRawBufferPointer) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    escape(first)
    bytes.append(UInt8(ascii: "/"))
    escape(second)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes bytes as base64.
  package mutating func base64(_ value: UnsafeRawBufferPointer) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    Base64.append(value, to: &bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes UTF-8 bytes that are already compact JSON.
  package mutating func encoded(_ text: UnsafeRawBufferPointer) {
    separate()
    bytes.append(raw: text)
  }

  /// Writes a timestamp in RFC 3339.
  package mutating func timestamp(_ value: Timestamp) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    value.appendRFC3339(to: &bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  // MARK: Parts

  private mutating func open(_ bracket: UInt8) {
    separate()
    bytes.append(bracket)
    depth += 1
    isFirst = true
  }

  private mutating func close(_ bracket: UInt8) {
    depth -= 1
    if !isFirst { breakLine() }
    bytes.append(bracket)
    isFirst = false
  }

  private mutating func endKey() {
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
    if style == .pretty { bytes.append(UInt8(ascii: " ")) }
    isAfterKey = true
  }

  private mutating func word(_ text: StaticString) {
    separate()
    bytes.append(raw: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Writes the separator between the previous value and the next.
  mutating func separate() {
    if isAfterKey {
      isAfterKey = false
      return
    }
    guard depth > baseDepth else { return }
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
    breakLine()
  }

  private mutating func breakLine() {
    guard style == .pretty else { return }
    // One copy covers the usual depths. The rest of a deeper indentation follows.
    var count = 2 * depth + 1
    let run = min(count, Self.lineBreak.utf8CodeUnitCount)
    bytes.append(raw: UnsafeRawBufferPointer(start: Self.lineBreak.utf8Start, count: run))
    count -= run
    if count > 0 { bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: count)) }
  }

  /// A line break and the indentation of the usual depths.
  static let lineBreak: StaticString = "\n                                                                "

  private mutating func digits(_ value: Int64) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { buffer in
      var start = 20
      var rest = value.magnitude
      repeat {
        start -= 1
        buffer[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if value < 0 {
        start -= 1
        buffer[start] = UInt8(ascii: "-")
      }
      bytes.append(raw: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[start...]))
    }
  }

  /// Appends text, escaping quotes, backslashes and control characters. Runs of other characters are copied at
  /// once.
  mutating func escape(_ text: UnsafeRawBufferPointer) {
    var start = 0
    var offset = 0
    let tops: UInt64 = escapesNonASCII ? Self.tops : 0
    while true {
      offset = Self.plainRun(text, from: offset, excluding: tops)
      if offset > start { bytes.append(raw: UnsafeRawBufferPointer(rebasing: text[start..<offset])) }
      guard offset < text.count else { return }
      if text[offset] < 0x80 {
        escape(text[offset])
        offset += 1
      } else {
        offset += escapeCharacter(UnsafeRawBufferPointer(rebasing: text[offset...].prefix(4)))
      }
      start = offset
    }
  }

  private mutating func escape(_ byte: UInt8) {
    bytes.append(UInt8(ascii: "\\"))
    switch byte {
    case 0x08: bytes.append(UInt8(ascii: "b"))
    case 0x09: bytes.append(UInt8(ascii: "t"))
    case 0x0A: bytes.append(UInt8(ascii: "n"))
    case 0x0C: bytes.append(UInt8(ascii: "f"))
    case 0x0D: bytes.append(UInt8(ascii: "r"))
    case 0x00..<0x20: codeUnit(UInt16(byte))
    default: bytes.append(byte)
    }
  }

  /// Appends the escape of the first character of `text`, which is not ASCII, and returns its length in bytes. Each
  /// byte that is not part of a character becomes U+FFFD.
  private mutating func escapeCharacter(_ text: UnsafeRawBufferPointer) -> Int {
    var iterator = text.makeIterator()
    var decoder = UTF8()
    guard case .scalarValue(let scalar) = decoder.decode(&iterator) else {
      bytes.append(UInt8(ascii: "\\"))
      codeUnit(0xFFFD)
      return 1
    }
    for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
      bytes.append(UInt8(ascii: "\\"))
      codeUnit(unit)
    }
    return UTF8.width(scalar)
  }

  /// Appends the rest of a `\u` escape after the backslash.
  private mutating func codeUnit(_ unit: UInt16) {
    let hex: StaticString = "0123456789abcdef"
    bytes.append(UInt8(ascii: "u"))
    for shift: UInt16 in [12, 8, 4, 0] { bytes.append(hex.utf8Start[Int(unit >> shift & 15)]) }
  }

  /// The top bit of every byte of a word.
  static let tops: UInt64 = 0x8080_8080_8080_8080

  /// Returns the top bit of each byte of a word that must be escaped. Bytes after the first such byte may be marked too.
  @inline(__always)
  private static func specials(in word: UInt64, excluding top: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let quotes = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
    let slashes = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
    // The top bit of a byte below 0x20 is set. A borrow can only add false positives, and only after a true one.
    let below = (word &- ones &* 0x20) & ~word
    let special = below | ((quotes &- ones) & ~quotes) | ((slashes &- ones) & ~slashes)
    return (special & tops) | (word & top)
  }

  /// Whether no byte of a text must be escaped; see ``plainRun(_:from:excluding:)``. Cost: reads eight bytes at a time,
  /// and the last eight again.
  @inline(__always)
  static func isPlain(_ text: UnsafeRawBufferPointer, excluding top: UInt64) -> Bool {
    guard let start = text.baseAddress else { return true }
    let count = text.count
    guard count >= 8 else {
      guard count >= 4 else { return plainRun(text, from: 0, excluding: top) == count }
      let low = UInt64(start.loadUnaligned(as: UInt32.self))
      let high = UInt64(start.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      return specials(in: high << 32 | low, excluding: top) == 0
    }
    var found = specials(in: start.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self), excluding: top)
    var offset = 0
    while offset < count &- 8 {
      found |= specials(in: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self), excluding: top)
      offset &+= 8
    }
    return found == 0
  }

  /// Returns the offset of the first byte at or after `offset` that must be escaped, or the end. `top` is ``tops``
  /// if bytes outside ASCII must be escaped, else 0. Cost: reads eight bytes at a time.
  static func plainRun(_ text: UnsafeRawBufferPointer, from offset: Int, excluding top: UInt64) -> Int {
    var offset = offset
    while offset + 8 <= text.count {
      let found = specials(in: text.loadUnaligned(fromByteOffset: offset, as: UInt64.self), excluding: top)
      if found != 0 { return offset + UInt64(littleEndian: found).trailingZeroBitCount / 8 }
      offset += 8
    }
    while offset < text.count {
      let byte = text[offset]
      if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return offset }
      if byte & UInt8(truncatingIfNeeded: top) != 0 { return offset }
      offset += 1
    }
    return offset
  }
}
