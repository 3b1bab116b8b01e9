import Basics

/// A pull tokenizer for JSON text, which reads its source through a fixed buffer.
///
/// The text can be larger than memory. The tokenizer checks all of RFC 8259: escapes and surrogate pairs (it
/// rejects a lone surrogate), UTF-8, the grammar of numbers, control characters, nesting, and text after the end.
/// It skips a byte order mark at the start. It allocates two buffers at the start and grows one of them for the
/// longest string, but allocates nothing per token.
package struct JSONTokenizer: ~Copyable {
  /// A token. The text of a key, string or number is in ``JSONTokenizer/text``.
  package enum Token: Equatable, Sendable {
    case objectStart
    case objectEnd
    case arrayStart
    case arrayEnd
    case key
    case string
    case number
    case `true`
    case `false`
    case null
    /// The end of a complete text.
    case end
  }

  /// Whether the text is one value or a sequence of values, as in NDJSON.
  package enum Extent: Sendable {
    case oneValue
    case manyValues
  }

  /// The tokens that may come next.
  private enum Expectation {
    case value
    case valueOrArrayEnd
    case keyOrObjectEnd
    case key
    case colon
    case separatorOrEnd
    case nothing
  }

  /// The maximum nesting of objects and arrays. A hundred levels of collections take two each, plus the levels of
  /// fields.
  package static let nestingMax = 512
  /// The maximum length of a string after unescaping, in bytes. It is more than the base64 of the longest bytes
  /// value.
  package static let stringBytesMax = 2 << 20
  /// The maximum length of a number, in bytes.
  package static let numberBytesMax = 4096
  /// The default size of the read buffer, in bytes.
  package static let bufferBytesDefault = 256 << 10

  /// The line of the latest token, from 1.
  package private(set) var line = 1
  /// The column of the latest token, from 1, in UTF-8 bytes.
  package private(set) var column = 1
  /// The text of the latest key, string (with escapes resolved) or number. Valid until the next call of ``next()``.
  package private(set) var text = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Whether the latest number has neither fraction nor exponent.
  package private(set) var numberIsInteger = false

  let source: ByteSource
  private let extent: Extent
  private let buffer: UnsafeMutablePointer<UInt8>
  private let bufferCapacity: Int
  private var position = 0
  private var end = 0
  /// The number of bytes before those in the buffer.
  private var bytesBefore = 0
  private var currentLine = 1
  /// The offset of the current line in the text, in bytes.
  private var lineStart = 0
  /// The part of a string or number that is not in the buffer, or not in the same form.
  private var scratch = ScratchBytes()
  /// Whether each open container is an object; the innermost is last.
  private var containers: [Bool] = []
  private var expectation = Expectation.value

  /// Creates a tokenizer at the start of a source.
  package init(_ source: ByteSource, _ extent: Extent = .oneValue, bufferBytes: Int = bufferBytesDefault) {
    self.source = source
    self.extent = extent
    bufferCapacity = max(bufferBytes, 1)
    buffer = .allocate(capacity: bufferCapacity)
  }

  deinit {
    buffer.deallocate()
  }

  /// The current size of the buffers, in bytes.
  package var bufferedBytes: Int { bufferCapacity + scratch.capacity + containers.capacity }

  /// The number of open containers.
  package var depth: Int { containers.count }

  /// Returns the next token. After the end of the text it always returns ``Token/end``.
  /// - Throws: ``FixtureTreeError`` with line and column if the text is not valid JSON or reading fails.
  package mutating func next() throws(FixtureTreeError) -> Token {
    while true {
      guard let byte = try nextSignificantByte() else { return try endOfText() }
      switch expectation {
      case .value:
        return try value(byte)
      case .valueOrArrayEnd:
        return byte == UInt8(ascii: "]") ? close(.arrayEnd) : try value(byte)
      case .keyOrObjectEnd:
        return byte == UInt8(ascii: "}") ? close(.objectEnd) : try key(byte)
      case .key:
        return try key(byte)
      case .colon:
        guard byte == UInt8(ascii: ":") else { throw unexpected(byte, wanted: "\":\" after the key") }
        position += 1
        expectation = .value
      case .separatorOrEnd:
        let isObject = containers.last == true
        switch byte {
        case UInt8(ascii: ","):
          position += 1
          expectation = isObject ? .key : .value
        case UInt8(ascii: "}") where isObject:
          return close(.objectEnd)
        case UInt8(ascii: "]") where !isObject:
          return close(.arrayEnd)
        default:
          throw unexpected(byte, wanted: isObject ? "\",\" or \"}\"" : "\",\" or \"]\"")
        }
      case .nothing:
        throw unexpected(byte, wanted: "the end of the text")
      }
    }
  }

  /// Returns an error at the latest token.
  func failure(_ message: String) -> FixtureTreeError {
    FixtureTreeError(file: source.name, line: line, column: column, message: message)
  }

  // MARK: Structure

  /// Skips white space and records the position of the next token.
  @inline(__always)
  private mutating func nextSignificantByte() throws(FixtureTreeError) -> UInt8? {
    while true {
      while position < end {
        let byte = buffer[position]
        if byte > 0x20 {
          line = currentLine
          column = bytesBefore + position - lineStart + 1
          if byte == 0xEF, bytesBefore + position == 0 {
            try skipByteOrderMark()
            continue
          }
          return byte
        }
        switch byte {
        case 0x20, 0x09, 0x0D:
          position += 1
        case 0x0A:
          position += 1
          currentLine += 1
          lineStart = bytesBefore + position
        default:
          line = currentLine
          column = bytesBefore + position - lineStart + 1
          throw unexpected(byte, wanted: "JSON")
        }
      }
      guard try refill() else {
        line = currentLine
        column = bytesBefore + position - lineStart + 1
        return nil
      }
    }
  }

  private mutating func skipByteOrderMark() throws(FixtureTreeError) {
    for expected: UInt8 in [0xEF, 0xBB, 0xBF] {
      guard try takeByte() == expected else { throw failure("expected JSON, but the text is not UTF-8") }
    }
    lineStart = 3
  }

  private mutating func endOfText() throws(FixtureTreeError) -> Token {
    switch expectation {
    case .nothing: return .end
    case .value where extent == .manyValues && containers.isEmpty: return .end
    case .value where containers.isEmpty: throw failure("the file is empty; it must contain one JSON object")
    default: throw failure("the text ends too early; the file may be cut short")
    }
  }

  private mutating func value(_ byte: UInt8) throws(FixtureTreeError) -> Token {
    switch byte {
    case UInt8(ascii: "{"):
      try open(isObject: true)
      return .objectStart
    case UInt8(ascii: "["):
      try open(isObject: false)
      return .arrayStart
    case UInt8(ascii: "\""):
      try string()
      valueEnded()
      return .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      try number()
      valueEnded()
      return .number
    case UInt8(ascii: "t"): return try literal("true", .true)
    case UInt8(ascii: "f"): return try literal("false", .false)
    case UInt8(ascii: "n"): return try literal("null", .null)
    default: throw unexpected(byte, wanted: "a value")
    }
  }

  private mutating func key(_ byte: UInt8) throws(FixtureTreeError) -> Token {
    guard byte == UInt8(ascii: "\"") else { throw unexpected(byte, wanted: "a key in double quotes") }
    try string()
    expectation = .colon
    return .key
  }

  private mutating func open(isObject: Bool) throws(FixtureTreeError) {
    guard containers.count < Self.nestingMax else {
      throw failure("objects and arrays nest deeper than \(Self.nestingMax) levels")
    }
    position += 1
    containers.append(isObject)
    expectation = isObject ? .keyOrObjectEnd : .valueOrArrayEnd
  }

  private mutating func close(_ token: Token) -> Token {
    position += 1
    containers.removeLast()
    valueEnded()
    return token
  }

  private mutating func valueEnded() {
    if !containers.isEmpty {
      expectation = .separatorOrEnd
    } else {
      expectation = extent == .manyValues ? .value : .nothing
    }
  }

  private mutating func literal(_ word: StaticString, _ token: Token) throws(FixtureTreeError) -> Token {
    for offset in 0..<word.utf8CodeUnitCount {
      guard try takeByte() == word.utf8Start[offset] else { throw failure("expected a value; did you mean \(word)?") }
    }
    valueEnded()
    return token
  }

  private func unexpected(_ byte: UInt8, wanted: String) -> FixtureTreeError {
    let found = (0x21...0x7E).contains(byte) ? "\"\(Character(Unicode.Scalar(byte)))\"" : "byte \(byte)"
    return failure("expected \(wanted), found \(found)")
  }

  // MARK: Numbers

  private mutating func number() throws(FixtureTreeError) {
    var start = position
    scratch.removeAll()
    while true {
      while position < end, Self.isNumberByte(buffer[position]) { position += 1 }
      guard scratch.count + position - start <= Self.numberBytesMax else {
        throw failure("a number has more than \(Self.numberBytesMax) digits")
      }
      if position < end { break }
      keep(from: start)
      guard try refill() else {
        start = position
        break
      }
      start = 0
    }
    finishText(from: start)
    guard let isInteger = JSONNumber.check(text) else {
      throw failure("\(FixtureTreeError.quote(text)) is not a JSON number")
    }
    numberIsInteger = isInteger
  }

  @inline(__always)
  private static func isNumberByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
      UInt8(ascii: "e"), UInt8(ascii: "E"):
      true
    default: false
    }
  }

  // MARK: Strings

  private mutating func string() throws(FixtureTreeError) {
    position += 1
    var start = position
    var seenBits: UInt8 = 0
    scratch.removeAll()
    while true {
      skipPlainBytes(&seenBits)
      guard position < end else {
        keep(from: start)
        try checkStringSize()
        guard try refill() else { throw failure("a string is not closed") }
        start = 0
        continue
      }
      switch buffer[position] {
      case UInt8(ascii: "\""):
        finishText(from: start)
        position += 1
        if seenBits >= 0x80 { try checkUTF8() }
        return
      case UInt8(ascii: "\\"):
        keep(from: start)
        try checkStringSize()
        position += 1
        try escape()
        start = position
      default:
        throw failure("a string contains a control character; write it as an escape such as \\n")
      }
    }
  }

  /// Advances to the next quote, backslash or control character, or to the end of the buffer.
  @inline(__always)
  private mutating func skipPlainBytes(_ seenBits: inout UInt8) {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    var bits: UInt64 = 0
    while position + 8 <= end {
      let word = UnsafeRawPointer(buffer + position).loadUnaligned(as: UInt64.self)
      let quote = word ^ (ones &* 0x22)
      let backslash = word ^ (ones &* 0x5C)
      // A byte of the sum has its high bit set if the byte was zero (or below 0x20). A borrow can only add false
      // positives, which the loop below resolves.
      let found =
        ((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash) | ((word &- ones &* 0x20) & ~word)
      if found & highs != 0 { break }
      bits |= word
      position += 8
    }
    if bits & highs != 0 { seenBits = 0x80 }
    while position < end {
      let byte = buffer[position]
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { return }
      seenBits |= byte
      position += 1
    }
  }

  private mutating func escape() throws(FixtureTreeError) {
    switch try takeByte() {
    case UInt8(ascii: "\""): scratch.append(UInt8(ascii: "\""))
    case UInt8(ascii: "\\"): scratch.append(UInt8(ascii: "\\"))
    case UInt8(ascii: "/"): scratch.append(UInt8(ascii: "/"))
    case UInt8(ascii: "b"): scratch.append(0x08)
    case UInt8(ascii: "f"): scratch.append(0x0C)
    case UInt8(ascii: "n"): scratch.append(0x0A)
    case UInt8(ascii: "r"): scratch.append(0x0D)
    case UInt8(ascii: "t"): scratch.append(0x09)
    case UInt8(ascii: "u"): try unicodeEscape()
    default: throw failure("a string contains an unknown escape; write a backslash as \\\\")
    }
  }

  private mutating func unicodeEscape() throws(FixtureTreeError) {
    var code = try hexCode()
    if (0xD800..<0xDC00).contains(code) {
      guard try takeByte() == UInt8(ascii: "\\"), try takeByte() == UInt8(ascii: "u") else { throw loneSurrogate() }
      let low = try hexCode()
      guard (0xDC00..<0xE000).contains(low) else { throw loneSurrogate() }
      code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(code) else { throw loneSurrogate() }
    for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { scratch.append(byte) }
  }

  private mutating func hexCode() throws(FixtureTreeError) -> UInt32 {
    var code: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = try takeByte().flatMap(Hexadecimal.digit) else {
        throw failure("a string contains \\u without four hexadecimal digits")
      }
      code = code << 4 | UInt32(digit)
    }
    return code
  }

  private func loneSurrogate() -> FixtureTreeError {
    failure("a string contains half of a surrogate pair, which is not a character")
  }

  private func checkStringSize() throws(FixtureTreeError) {
    guard scratch.count <= Self.stringBytesMax else {
      throw failure("a string is longer than \(Self.stringBytesMax) bytes")
    }
  }

  private func checkUTF8() throws(FixtureTreeError) {
    let bytes = UnsafeBufferPointer(start: text.baseAddress?.assumingMemoryBound(to: UInt8.self), count: text.count)
    guard (try? UTF8Span(validating: bytes.span)) != nil else {
      throw failure("a string is not valid UTF-8; save the file as UTF-8")
    }
  }

  // MARK: Bytes

  /// Consumes one byte, refilling the buffer if necessary. Returns `nil` at the end of the text.
  private mutating func takeByte() throws(FixtureTreeError) -> UInt8? {
    if position == end {
      guard try refill() else { return nil }
    }
    defer { position += 1 }
    return buffer[position]
  }

  /// Replaces the buffer, which is fully consumed, with the next bytes. Returns `false` at the end of the text.
  private mutating func refill() throws(FixtureTreeError) -> Bool {
    bytesBefore += end
    position = 0
    end = 0
    end = try source.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: bufferCapacity))
    return end > 0
  }

  /// Copies the bytes from `start` on into the scratch buffer.
  private mutating func keep(from start: Int) {
    scratch.append(UnsafeBufferPointer(start: buffer + start, count: position - start))
  }

  /// Sets the text of the token that ends here, in place if the buffer contains all of it.
  @inline(__always)
  private mutating func finishText(from start: Int) {
    if scratch.count == 0 {
      text = UnsafeRawBufferPointer(start: buffer + start, count: position - start)
    } else {
      keep(from: start)
      text = scratch.bytes
    }
  }
}
