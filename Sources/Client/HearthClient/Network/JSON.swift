import Foundation

/// A JSON text as a tree. Numbers are kept as text, so that they lose no digits. Members keep their order, and
/// their names are compared by bytes.
enum JSON: Sendable, Equatable {
  case null
  case boolean(Bool)
  case number(String)
  case string(String)
  case array([JSON])
  case object([Member])

  /// A member of an object.
  struct Member: Sendable, Equatable {
    var name: String
    var value: JSON

    init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }

  /// The first member of an object with this name, or `nil`.
  subscript(name: StaticString) -> JSON? {
    guard case .object(let members) = self else { return nil }
    let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
    return members.first { $0.name.utf8.elementsEqual(name) }?.value
  }

  var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The integer of a JSON number, or of a string with one, because 64-bit integers are sent as strings.
  var integer: Int? {
    switch self {
    case .number(let text), .string(let text): Int(text)
    default: nil
    }
  }

  var flag: Bool? {
    if case .boolean(let flag) = self { flag } else { nil }
  }

  var elements: [JSON] {
    if case .array(let elements) = self { elements } else { [] }
  }

  var members: [Member] {
    if case .object(let members) = self { members } else { [] }
  }

  /// Returns an object with these members, without those that are `nil`.
  static func of(_ members: KeyValuePairs<String, JSON?>) -> JSON {
    .object(members.compactMap { name, value in value.map { Member(name, $0) } })
  }
}

// MARK: - Writing

extension JSON {
  /// The JSON text in UTF-8.
  var data: Data {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return Data(bytes)
  }

  private func append(to out: inout [UInt8]) {
    switch self {
    case .null: out.append(contentsOf: "null".utf8)
    case .boolean(let flag): out.append(contentsOf: (flag ? "true" : "false").utf8)
    case .number(let text): out.append(contentsOf: text.utf8)
    case .string(let text): Self.append(text, to: &out)
    case .array(let elements):
      out.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { out.append(UInt8(ascii: ",")) }
        element.append(to: &out)
      }
      out.append(UInt8(ascii: "]"))
    case .object(let members):
      out.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { out.append(UInt8(ascii: ",")) }
        Self.append(member.name, to: &out)
        out.append(UInt8(ascii: ":"))
        member.value.append(to: &out)
      }
      out.append(UInt8(ascii: "}"))
    }
  }

  private static func append(_ text: String, to out: inout [UInt8]) {
    let digits = Array("0123456789abcdef".utf8)
    out.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): out.append(contentsOf: [UInt8(ascii: "\\"), byte])
      case 0..<0x20:
        out.append(contentsOf: "\\u00".utf8)
        out.append(contentsOf: [digits[Int(byte >> 4)], digits[Int(byte & 15)]])
      default: out.append(byte)
      }
    }
    out.append(UInt8(ascii: "\""))
  }
}
