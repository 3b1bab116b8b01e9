/// A JSON value as written: numbers keep their text, and objects keep the order of their members.
///
/// It has its own parser, as strict as RFC 8259, so that tests do not check the server's JSON with the server's JSON
/// code. Names and strings are compared by their UTF-8 bytes, never by Unicode equivalence.
package enum JSONNode: Sendable {
  case null
  case bool(Bool)
  /// The text of the number, such as `1.0E7`.
  case number(String)
  case string(String)
  case array([JSONNode])
  case object([Member])

  package struct Member: Sendable {
    package var name: String
    package var value: JSONNode

    package init(_ name: String, _ value: JSONNode) {
      self.name = name
      self.value = value
    }
  }

  /// The value of an object's member with this name, or `nil`.
  package subscript(name: String) -> JSONNode? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The elements of an array, empty for every other value.
  package var elements: [JSONNode] {
    if case .array(let elements) = self { elements } else { [] }
  }

  /// The members of an object, empty for every other value.
  package var members: [Member] {
    if case .object(let members) = self { members } else { [] }
  }

  /// The characters of a string, or `nil` for every other value.
  package var stringValue: String? {
    if case .string(let string) = self { string } else { nil }
  }

  /// The number, or `nil` for other values and for numbers that are not 64-bit integers.
  package var integerValue: Int? {
    if case .number(let text) = self { Int(text) } else { nil }
  }

  /// The same value with the members of every object sorted by the bytes of their names.
  package var sorted: JSONNode {
    switch self {
    case .array(let elements): .array(elements.map(\.sorted))
    case .object(let members):
      .object(
        members.map { Member($0.name, $0.value.sorted) }
          .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) })
    default: self
    }
  }

  /// Whether both have the same text after the members of objects are sorted.
  package func isSame(as other: JSONNode) -> Bool {
    sorted.text.utf8.elementsEqual(other.sorted.text.utf8)
  }
}

extension JSONNode: ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(arrayLiteral elements: JSONNode...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSONNode)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  package init(integerLiteral value: Int) { self = .number(String(value)) }
  package init(floatLiteral value: Double) { self = .number(String(value)) }
}

extension JSONNode {
  /// The value as compact JSON text.
  package var text: String {
    var text = ""
    write(to: &text)
    return text
  }

  private func write(to text: inout String) {
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .number(let number): text += number
    case .string(let string): Self.write(string, to: &text)
    case .array(let elements):
      text += "["
      for (index, element) in elements.enumerated() {
        if index > 0 { text += "," }
        element.write(to: &text)
      }
      text += "]"
    case .object(let members):
      text += "{"
      for (index, member) in members.enumerated() {
        if index > 0 { text += "," }
        Self.write(member.name, to: &text)
        text += ":"
        member.value.write(to: &text)
      }
      text += "}"
    }
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\u{0}"..<" ":
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}

/// The position and the reason at which bytes are not valid JSON.
package struct JSONNodeError: Error, CustomStringConvertible {
  package let offset: Int
  package let reason: String
  package var description: String { "not JSON at byte \(offset): \(reason)" }
}

extension JSONNode {
  /// Parses one JSON value that spans all of `bytes`.
  ///
  /// - Throws: ``JSONNodeError`` for everything that RFC 8259 does not allow, for lone surrogates, for duplicate
  ///   members and for values nested deeper than 200 levels.
  package init(parsing bytes: [UInt8]) throws(JSONNodeError) {
    var parser = JSONNodeParser(bytes: bytes)
    self = try parser.parseDocument()
  }
}

private struct JSONNodeParser {
  let bytes: [UInt8]
  var offset = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func parseDocument() throws(JSONNodeError) -> JSONNode {
    skipSpace()
    let value = try parseValue(depth: 0)
    skipSpace()
    guard offset == bytes.count else { throw failure("unexpected text after the value") }
    return value
  }

  private func failure(_ reason: String) -> JSONNodeError { JSONNodeError(offset: offset, reason: reason) }

  private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    offset += 1
    return true
  }

  private mutating func parseValue(depth: Int) throws(JSONNodeError) -> JSONNode {
    guard depth <= 200 else { throw failure("nested too deeply") }
    switch next {
    case UInt8(ascii: "{"): return try parseObject(depth: depth)
    case UInt8(ascii: "["): return try parseArray(depth: depth)
    case UInt8(ascii: "\""): return .string(try parseString())
    case UInt8(ascii: "t"): return try parseWord("true", .bool(true))
    case UInt8(ascii: "f"): return try parseWord("false", .bool(false))
    case UInt8(ascii: "n"): return try parseWord("null", .null)
    default: return .number(try parseNumber())
    }
  }

  private mutating func parseWord(_ word: StaticString, _ value: JSONNode) throws(JSONNodeError) -> JSONNode {
    for byte in word.description.utf8 where !take(byte) { throw failure("unknown word") }
    return value
  }

  private mutating func parseObject(depth: Int) throws(JSONNodeError) -> JSONNode {
    offset += 1
    var members: [JSONNode.Member] = []
    var names: Set<[UInt8]> = []
    skipSpace()
    if take(UInt8(ascii: "}")) { return .object(members) }
    while true {
      skipSpace()
      let name = try parseString()
      guard names.insert(Array(name.utf8)).inserted else { throw failure("duplicate member \(name)") }
      skipSpace()
      guard take(UInt8(ascii: ":")) else { throw failure("expected a colon") }
      skipSpace()
      members.append(JSONNode.Member(name, try parseValue(depth: depth + 1)))
      skipSpace()
      if take(UInt8(ascii: "}")) { return .object(members) }
      guard take(UInt8(ascii: ",")) else { throw failure("expected a comma") }
    }
  }

  private mutating func parseArray(depth: Int) throws(JSONNodeError) -> JSONNode {
    offset += 1
    var elements: [JSONNode] = []
    skipSpace()
    if take(UInt8(ascii: "]")) { return .array(elements) }
    while true {
      skipSpace()
      elements.append(try parseValue(depth: depth + 1))
      skipSpace()
      if take(UInt8(ascii: "]")) { return .array(elements) }
      guard take(UInt8(ascii: ",")) else { throw failure("expected a comma") }
    }
  }

  private mutating func parseNumber() throws(JSONNodeError) -> String {
    let start = offset
    _ = take(UInt8(ascii: "-"))
    if !take(UInt8(ascii: "0")) { try takeDigits() }
    if take(UInt8(ascii: ".")) { try takeDigits() }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      try takeDigits()
    }
    return String(decoding: bytes[start..<offset], as: UTF8.self)
  }

  private mutating func takeDigits() throws(JSONNodeError) {
    let start = offset
    while let byte = next, (0x30...0x39).contains(byte) { offset += 1 }
    guard offset > start else { throw failure("no digit") }
  }

  private mutating func parseString() throws(JSONNodeError) -> String {
    guard take(UInt8(ascii: "\"")) else { throw failure("expected a string") }
    var characters: [UInt8] = []
    while true {
      guard let byte = next else { throw failure("unterminated string") }
      offset += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let string = String(validating: characters, as: UTF8.self) else { throw failure("invalid UTF-8") }
        return string
      case UInt8(ascii: "\\"): characters += try parseEscape()
      case 0..<0x20: throw failure("raw control character in a string")
      default: characters.append(byte)
      }
    }
  }

  private mutating func parseEscape() throws(JSONNodeError) -> [UInt8] {
    guard let byte = next else { throw failure("unterminated string") }
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [8]
    case UInt8(ascii: "f"): return [12]
    case UInt8(ascii: "n"): return [10]
    case UInt8(ascii: "r"): return [13]
    case UInt8(ascii: "t"): return [9]
    case UInt8(ascii: "u"):
      var units = [try parseHex()]
      if UTF16.isLeadSurrogate(units[0]) {
        guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw failure("lone surrogate") }
        units.append(try parseHex())
      }
      guard let character = String(validating: units, as: UTF16.self) else { throw failure("lone surrogate") }
      return Array(character.utf8)
    default: throw failure("unknown escape")
    }
  }

  private mutating func parseHex() throws(JSONNodeError) -> UInt16 {
    guard offset + 4 <= bytes.count,
      let unit = UInt16(String(decoding: bytes[offset..<offset + 4], as: UTF8.self), radix: 16)
    else { throw failure("expected four hexadecimal digits") }
    offset += 4
    return unit
  }
}
