import DocumentModel
import WireFormat

extension DocumentBuilder {
  /// How a format writes the value types that JSON lacks.
  enum Notation {
    /// `{"$timestamp": "…"}`, as in fixture trees.
    case fixture
    /// `{"__datatype__": "timestamp", "value": {…}}`, as in `__collections__` trees.
    case datatype
    /// Plain JSON of other programs, with the special values of fixture trees and those of Firebase's SDKs.
    case record
    /// `{"timestampValue": "…"}`, as in the REST API: every value names its type.
    case wire
  }

  /// Reads the rest of a map whose opening brace was read.
  mutating func fields(_ notation: Notation) throws(FixtureTreeError) {
    keys.open()
    while try next() == .key { try field(tokens.text, notation) }
    keys.close()
  }

  /// Reads the value of a field whose key was read.
  mutating func field(_ name: UnsafeRawBufferPointer, _ notation: Notation) throws(FixtureTreeError) {
    try note(name)
    try openField(name)
    try value(try next(), notation)
    closeField()
  }

  /// Reads a value whose first token was just read.
  ///
  /// The encoder's limit on nesting bounds the recursion.
  mutating func value(_ token: JSONTokenizer.Token, _ notation: Notation) throws(FixtureTreeError) {
    if notation == .wire { return try wireValue(token) }
    switch token {
    case .string:
      let text = tokens.text
      try encode { (encoder) throws(WireError) in try encoder.string(text) }
    case .number: try plainNumber()
    case .true: encoder.boolean(true)
    case .false: encoder.boolean(false)
    case .null: encoder.null()
    case .arrayStart:
      try array(notation)
    case .objectStart:
      try object(notation)
    default: throw failure("expected a value")
    }
  }

  /// Appends the latest number: an integer if it has no fraction and no exponent, else a double.
  private mutating func plainNumber() throws(FixtureTreeError) {
    guard tokens.numberIsInteger else { return encoder.double(try double()) }
    guard let integer = JSONNumber.integer(tokens.text) else {
      let text = String(decoding: tokens.text.prefix(FixtureTreeError.quotedBytesMax), as: UTF8.self)
      throw failure("\(text) does not fit 64 bits; write {\"$double\": \(text)} for a double, or a string")
    }
    encoder.integer(integer)
  }

  /// Returns the latest number as a double.
  func double() throws(FixtureTreeError) -> Double {
    guard let double = JSONNumber.double(tokens.text) else {
      throw failure("\(FixtureTreeError.quote(tokens.text)) is beyond the range of doubles")
    }
    return double
  }

  /// Reads the rest of an array whose opening bracket was read.
  mutating func array(_ notation: Notation) throws(FixtureTreeError) {
    try encode { (encoder) throws(WireError) in try encoder.beginArray() }
    while true {
      let token = try next()
      if token == .arrayEnd { break }
      try value(token, notation)
    }
    encoder.endArray()
  }

  private mutating func object(_ notation: Notation) throws(FixtureTreeError) {
    let first = try next()
    if first == .key, notation == .fixture, tokens.text.first == UInt8(ascii: "$"), !Self.isEscaped(tokens.text) {
      return try fixtureSpecial()
    }
    if first == .key, notation == .record, tokens.text.first == UInt8(ascii: "$"), Self.isSpecialKey(tokens.text) {
      return try fixtureSpecial()
    }
    if first == .key, notation == .datatype, Self.isEqual(tokens.text, "__datatype__") {
      return try datatypeSpecial()
    }
    let mark = encoder.mark
    var mayBeSDKValue = false
    try encode { (encoder) throws(WireError) in try encoder.beginMap() }
    keys.open()
    var token = first
    while token == .key {
      var name = tokens.text
      if SDKValue.mayHave(name) { mayBeSDKValue = true }
      if notation == .fixture { name = try unescaped(name) }
      try field(name, notation)
      token = try next()
    }
    keys.close()
    try encode { (encoder) throws(WireError) in try encoder.endMap() }
    if mayBeSDKValue { try replaceSDKValue(from: mark, notation) }
  }

  /// Returns a key without the `$` that escapes a leading `$`.
  /// - Throws: ``FixtureTreeError`` if the key begins with a single `$`, which only special keys may.
  func unescaped(_ key: UnsafeRawBufferPointer) throws(FixtureTreeError) -> UnsafeRawBufferPointer {
    guard key.first == UInt8(ascii: "$") else { return key }
    guard Self.isEscaped(key) else {
      throw failure(
        "\(FixtureTreeError.quote(key)) is not allowed here; write a key that begins with \"$\" as \"$$…\"")
    }
    return UnsafeRawBufferPointer(rebasing: key[1...])
  }

  static func isEscaped(_ key: UnsafeRawBufferPointer) -> Bool {
    key.count >= 2 && key[1] == UInt8(ascii: "$")
  }

  @inline(__always)
  static func isEqual(_ text: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    guard text.count == word.utf8CodeUnitCount else { return false }
    for index in 0..<text.count where text[index] != word.utf8Start[index] { return false }
    return true
  }

  // MARK: Parts that the formats share

  /// Consumes the next token, which must be a string, and returns its text.
  mutating func expectString(_ what: @autoclosure () -> String) throws(FixtureTreeError) -> UnsafeRawBufferPointer {
    guard try next() == .string else { throw failure("\(what()) must be a string") }
    return tokens.text
  }

  /// Consumes the next token, which must be a number, and returns it.
  mutating func expectDouble(_ what: @autoclosure () -> String) throws(FixtureTreeError) -> Double {
    guard try next() == .number else { throw failure("\(what()) must be a number") }
    return try double()
  }

  /// Consumes the next token, which must be an integer, and returns it.
  mutating func expectInteger(_ what: @autoclosure () -> String) throws(FixtureTreeError) -> Int64 {
    guard try next() == .number, tokens.numberIsInteger, let integer = JSONNumber.integer(tokens.text) else {
      throw failure("\(what()) must be a whole number")
    }
    return integer
  }

  /// Appends a timestamp given as text.
  mutating func timestamp(_ text: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    guard let moment = Timestamp(rfc3339: text) else {
      throw failure(
        "\(FixtureTreeError.quote(text)) is not a timestamp; write one such as \"2025-03-27T14:30:00Z\"")
    }
    encoder.timestamp(moment)
  }

  /// Appends a bytes value given as base64.
  mutating func bytes(_ text: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    scratch.removeAll(keepingCapacity: true)
    scratch.append(contentsOf: repeatElement(0, count: Base64.decodedCountMax(text.count)))
    guard let count = scratch.withUnsafeMutableBytes({ Base64.decode(text, into: $0) }) else {
      throw failure("\(FixtureTreeError.quote(text)) is not valid base64")
    }
    scratch.removeLast(scratch.count - count)
    let decoded = scratch
    try encode { (encoder) throws(WireError) in
      try decoded.withUnsafeBytesTyped { (buffer) throws(WireError) in try encoder.bytes(buffer) }
    }
  }

  /// Appends a reference given as a path in the target database or as a full name. Counts a name of another database,
  /// and changes it to the same path of the target database if the options say so.
  mutating func reference(_ text: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    scratch.removeAll(keepingCapacity: true)
    let isFullName = ReferenceText.isFullName(text)
    var rest = text
    if isFullName, !text.starts(with: documentsRoot) {
      if tally.foreignReferences == 0 {
        tally.firstForeignReference = String(decoding: text.prefix(FixtureTreeError.quotedBytesMax), as: UTF8.self)
      }
      tally.foreignReferences += 1
      if options.rewritesReferences { rest = ReferenceText.path(inFullName: text) }
    }
    if !isFullName || rest.count < text.count { scratch.append(contentsOf: documentsRoot) }
    scratch.append(contentsOf: rest)
    let name = scratch
    do throws(WireError) {
      try name.withUnsafeBytesTyped { (buffer) throws(WireError) in try encoder.reference(buffer) }
    } catch {
      throw failure(
        "\(FixtureTreeError.quote(text)) is not a document; write a path such as \"users/u1\" or a full name "
          + "(\(error))")
    }
  }
}

/// The two forms of a reference.
enum ReferenceText {
  /// Returns whether a text is a full name, `projects/{p}/databases/{d}/documents/…`, not a path in the target
  /// database.
  static func isFullName(_ text: UnsafeRawBufferPointer) -> Bool {
    let segments = text.split(separator: UInt8(ascii: "/"), maxSplits: 5, omittingEmptySubsequences: false)
    return segments.count == 6 && segments[0].elementsEqual("projects".utf8)
      && segments[2].elementsEqual("databases".utf8) && segments[4].elementsEqual("documents".utf8)
  }

  /// Returns the path of the document in a full name.
  static func path(inFullName name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var slashes = 0
    let start = name.firstIndex { byte in
      if byte == UInt8(ascii: "/") { slashes += 1 }
      return slashes == 5
    }
    return UnsafeRawBufferPointer(rebasing: name[((start ?? name.count - 1) + 1)...])
  }
}

extension Array where Element == UInt8 {
  /// Calls `body` with the bytes, and rethrows its typed error.
  func withUnsafeBytesTyped<E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> Void) throws(E) {
    try withUnsafeBufferPointer { (buffer) throws(E) in try body(UnsafeRawBufferPointer(buffer)) }
  }
}
