import CSimdjson
import DocumentModel

/// A writer of the JSON form of values, in a small block of memory that is reserved once.
///
/// ``JSONWriter`` checks the capacity of its array for each token, and a document has a hundred tokens. This writer
/// stores most tokens with one comparison and one copy of constant length. It appends its block to the array when the
/// block is full and at the end. Long texts, and texts with characters to escape, go to the array directly.
///
/// The caller writes ``separate()`` before an element of an array, and ``key(_:)-(StaticString)`` before a member.
struct ReservedJSON {
  /// The size of the block. Blocks up to this size are on the stack.
  static let byteCount = 1024
  /// The maximum length of a token that is stored at once.
  private static let tokenBytesMax = 64

  /// The writer that receives the text. It is valid as long as the block.
  private let writer: UnsafeMutablePointer<JSONWriter>
  private let start: UnsafeMutableRawPointer
  private let end: UnsafeMutableRawPointer
  /// The end of the text in the block.
  private var at: UnsafeMutableRawPointer
  private let isPretty: Bool
  private let escaped: UInt64
  /// The latest time, and the place of its text in the block. `nil` after the block was emptied.
  private var latestTime: (time: Timestamp, text: UnsafeMutableRawPointer, count: Int)?
  private var depth: Int
  /// Whether the innermost object or array is still empty.
  private var isFirst: Bool

  fileprivate init(
    _ writer: UnsafeMutablePointer<JSONWriter>, _ block: UnsafeMutableRawBufferPointer, start: UnsafeMutableRawPointer
  ) {
    self.writer = writer
    self.start = start
    end = start + block.count
    at = start
    isPretty = writer.pointee.style == .pretty
    escaped = writer.pointee.escapesNonASCII ? JSONWriter.tops : 0
    depth = writer.pointee.depth
    isFirst = writer.pointee.isFirst
  }

  // MARK: Structure

  /// Writes the separator before a member or element.
  @inline(__always)
  mutating func separate() {
    reserve()
    if !isFirst { store(UInt8(ascii: ",")) }
    isFirst = false
    if isPretty { breakLine() }
  }

  /// Opens an object.
  @inline(__always)
  mutating func beginObject() { open(UInt8(ascii: "{")) }
  /// Closes an object.
  @inline(__always)
  mutating func endObject() { close(UInt8(ascii: "}")) }
  /// Opens an array.
  @inline(__always)
  mutating func beginArray() { open(UInt8(ascii: "[")) }
  /// Closes an array.
  @inline(__always)
  mutating func endArray() { close(UInt8(ascii: "]")) }

  /// Writes the name of a member, at most 32 characters that need no escape.
  @inline(__always)
  mutating func key(_ name: StaticString) {
    separate()
    reserve()
    store(UInt8(ascii: "\""))
    token(name)
    endKey()
  }

  /// Writes the name of a member.
  @inline(__always)
  mutating func key(_ name: UnsafeRawBufferPointer) {
    separate()
    string(name)
    reserve()
    store(UInt8(ascii: ":"))
    if isPretty { store(UInt8(ascii: " ")) }
  }

  // MARK: Values

  /// Writes a text of at most 64 characters as it is.
  @inline(__always)
  mutating func word(_ text: StaticString) {
    reserve()
    token(text)
  }

  /// Writes UTF-8 bytes as a string.
  @inline(__always)
  mutating func string(_ text: UnsafeRawBufferPointer) {
    reserve()
    store(UInt8(ascii: "\""))
    escape(text)
    reserve()
    store(UInt8(ascii: "\""))
  }

  /// Writes two texts as one string with `/` between them.
  mutating func string(_ first: UnsafeRawBufferPointer, slash second: UnsafeRawBufferPointer) {
    reserve()
    store(UInt8(ascii: "\""))
    escape(first)
    reserve()
    store(UInt8(ascii: "/"))
    escape(second)
    reserve()
    store(UInt8(ascii: "\""))
  }

  /// Writes an int64 as a string of digits.
  mutating func int64(_ value: Int64) {
    reserve()
    store(UInt8(ascii: "\""))
    if value < 0 { store(UInt8(ascii: "-")) }
    var rest = value.magnitude
    var count = 1
    var power: UInt64 = 10
    while rest >= power {
      count += 1
      // 10^19 is the greatest power of ten in 64 bits.
      guard count < 20 else { break }
      power *= 10
    }
    var place = count
    while place > 0 {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      place -= 1
      at.storeBytes(of: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit), toByteOffset: place, as: UInt8.self)
      rest = quotient
    }
    at += count
    store(UInt8(ascii: "\""))
  }

  /// Writes a double; see ``JSONWriter/double(_:)``.
  mutating func double(_ value: Double) {
    if value.isFinite {
      reserve()
      at += hearth_format_double(value, at.assumingMemoryBound(to: CChar.self))
    } else if value.isNaN {
      word("\"NaN\"")
    } else if value < 0 {
      word("\"-Infinity\"")
    } else {
      word("\"Infinity\"")
    }
  }

  /// Writes a timestamp in RFC 3339.
  mutating func timestamp(_ value: Timestamp) {
    reserve()
    store(UInt8(ascii: "\""))
    // A document that was never changed has the same time twice.
    if let latestTime, latestTime.time == value {
      at.copyMemory(from: latestTime.text, byteCount: Timestamp.rfc3339CountMax)
      at += latestTime.count
    } else {
      let count = value.storeRFC3339(at: at, &writer.pointee.latestDate)
      latestTime = (value, at, count)
      at += count
    }
    store(UInt8(ascii: "\""))
  }

  /// Writes bytes as base64.
  mutating func base64(_ value: UnsafeRawBufferPointer) {
    word("\"")
    flush()
    Base64.append(value, to: &writer.pointee.bytes)
    word("\"")
  }

  // MARK: Parts

  @inline(__always)
  private mutating func open(_ bracket: UInt8) {
    reserve()
    store(bracket)
    depth += 1
    isFirst = true
  }

  @inline(__always)
  private mutating func close(_ bracket: UInt8) {
    reserve()
    depth -= 1
    if isPretty, !isFirst { breakLine() }
    reserve()
    store(bracket)
    isFirst = false
  }

  @inline(__always)
  private mutating func endKey() {
    store(UInt8(ascii: "\""))
    store(UInt8(ascii: ":"))
    if isPretty { store(UInt8(ascii: " ")) }
  }

  private mutating func breakLine() {
    var count = 2 * depth + 1
    var text = JSONWriter.lineBreak.utf8Start
    while count > 0 {
      let run = min(count, Self.tokenBytesMax)
      reserve()
      at.copyMemory(from: text, byteCount: Self.tokenBytesMax)
      at += run
      count -= run
      // Only the first part begins with the line break.
      text = JSONWriter.lineBreak.utf8Start + 1
    }
  }

  /// Appends text, escaping quotes, backslashes and control characters.
  private mutating func escape(_ text: UnsafeRawBufferPointer) {
    guard JSONWriter.isPlain(text, excluding: escaped) else {
      flush()
      return writer.pointee.escape(text)
    }
    if text.count > end - at {
      flush()
      guard text.count <= Self.byteCount / 2 else { return writer.pointee.bytes.append(raw: text) }
    }
    guard let source = text.baseAddress else { return }
    at.copyMemory(from: source, byteCount: text.count)
    at += text.count
  }

  /// Stores a constant text, for which there is space.
  @inline(__always)
  private mutating func token(_ text: StaticString) {
    at.copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
    at += text.utf8CodeUnitCount
  }

  /// Stores a byte, for which there is space.
  @inline(__always)
  private mutating func store(_ byte: UInt8) {
    at.storeBytes(of: byte, as: UInt8.self)
    at += 1
  }

  /// Makes space for a token.
  @inline(__always)
  private mutating func reserve() {
    if end - at < Self.tokenBytesMax { flush() }
  }

  /// Appends the text of the block to the writer's.
  @inline(never)
  private mutating func flush() {
    writer.pointee.bytes.append(raw: UnsafeRawBufferPointer(start: start, count: at - start))
    at = start
    latestTime = nil
  }

  /// Ends the text.
  fileprivate mutating func finish() {
    flush()
    writer.pointee.isFirst = isFirst
  }
}

extension JSONWriter {
  /// Calls `body` to write one value with a ``ReservedJSON``, or members if an object is open.
  ///
  /// - Throws: The error that `body` throws. The text that it has written is then part of ``bytes``.
  mutating func reserving(_ body: (inout ReservedJSON) throws(WireError) -> Void) throws(WireError) {
    // `withUnsafeTemporaryAllocation` rethrows untyped errors, so the outcome is returned as a value.
    let outcome = withUnsafeMutablePointer(to: &self) { writer in
      withUnsafeTemporaryAllocation(byteCount: ReservedJSON.byteCount, alignment: 16) {
        (block) -> Result<Void, WireError> in
        guard let start = block.baseAddress else { return .success(()) }
        var reserved = ReservedJSON(writer, block, start: start)
        defer { reserved.finish() }
        do throws(WireError) { return .success(try body(&reserved)) } catch { return .failure(error) }
      }
    }
    try outcome.get()
  }
}
