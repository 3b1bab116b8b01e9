import Foundation

extension JSON {
  /// Parses a JSON text.
  /// - Throws: ``HearthClientError`` if the text is not valid JSON or is nested deeper than 200 levels.
  init(parsing data: Data) throws {
    try self.init(parsing: Array(data))
  }

  /// Parses a JSON text.
  /// - Throws: ``HearthClientError`` if the text is not valid JSON or is nested deeper than 200 levels.
  init(parsing bytes: [UInt8]) throws {
    var parser = JSONParser(bytes: bytes)
    self = try parser.text()
  }
}

/// A parser of JSON (RFC 8259).
private struct JSONParser {
  let bytes: [UInt8]
  private var position = 0
  private static let depthMax = 200

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func text() throws -> JSON {
    let value = try value(depth: 0)
    skipBlanks()
    guard position == bytes.count else { throw fault() }
    return value
  }

  private mutating func value(depth: Int) throws -> JSON {
    guard depth <= Self.depthMax else { throw fault() }
    skipBlanks()
    switch peek {
    case UInt8(ascii: "{"): return try object(depth)
    case UInt8(ascii: "["): return try array(depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .boolean(true))
    case UInt8(ascii: "f"): return try word("false", .boolean(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  private mutating func object(_ depth: Int) throws -> JSON {
    position += 1
    var members: [JSON.Member] = []
    if take(UInt8(ascii: "}")) { return .object(members) }
    repeat {
      skipBlanks()
      guard peek == UInt8(ascii: "\"") else { throw fault() }
      let name = try string()
      guard take(UInt8(ascii: ":")) else { throw fault() }
      members.append(JSON.Member(name, try value(depth: depth + 1)))
    } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "}")) else { throw fault() }
    return .object(members)
  }

  private mutating func array(_ depth: Int) throws -> JSON {
    position += 1
    var elements: [JSON] = []
    if take(UInt8(ascii: "]")) { return .array(elements) }
    repeat { elements.append(try value(depth: depth + 1)) } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "]")) else { throw fault() }
    return .array(elements)
  }

  private mutating func string() throws -> String {
    position += 1
    let start = position
    while let byte = peek, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { position += 1 }
    if peek == UInt8(ascii: "\"") {
      defer { position += 1 }
      return String(decoding: bytes[start..<position], as: UTF8.self)
    }
    var text = Array(bytes[start..<position])
    while let byte = peek {
      position += 1
      if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
      if byte == UInt8(ascii: "\\") { try escape(&text) } else { text.append(byte) }
    }
    throw fault()
  }

  private mutating func escape(_ text: inout [UInt8]) throws {
    guard let byte = peek else { throw fault() }
    position += 1
    switch byte {
    case UInt8(ascii: "n"): text.append(0x0a)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "r"): text.append(0x0d)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0c)
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "u"):
      var unit = try codeUnit()
      if 0xd800..<0xdc00 ~= unit, peek == UInt8(ascii: "\\"), position + 1 < bytes.count,
        bytes[position + 1] == UInt8(ascii: "u")
      {
        position += 2
        let low = try codeUnit()
        guard 0xdc00..<0xe000 ~= low else { throw fault() }
        unit = 0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00)
      }
      guard let scalar = Unicode.Scalar(unit) else { throw fault() }
      text.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
    default: throw fault()
    }
  }

  private mutating func codeUnit() throws -> UInt32 {
    guard position + 4 <= bytes.count,
      let unit = UInt32(String(decoding: bytes[position..<position + 4], as: UTF8.self), radix: 16)
    else { throw fault() }
    position += 4
    return unit
  }

  private mutating func number() throws -> JSON {
    let start = position
    while let byte = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.eE".utf8.contains(byte) {
      position += 1
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    guard Double(text) != nil else { throw fault() }
    return .number(text)
  }

  private mutating func word(_ word: StaticString, _ value: JSON) throws -> JSON {
    let expected = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    guard bytes[position...].starts(with: expected) else { throw fault() }
    position += expected.count
    return value
  }

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func take(_ byte: UInt8) -> Bool {
    skipBlanks()
    guard peek == byte else { return false }
    position += 1
    return true
  }

  private mutating func skipBlanks() {
    while let byte = peek, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { position += 1 }
  }

  private func fault() -> HearthClientError { .unreadable("invalid JSON at byte \(position)") }
}
