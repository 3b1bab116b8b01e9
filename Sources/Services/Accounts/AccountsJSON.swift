package import WireFormat

/// A JSON value that outlives the text it was parsed from. Requests about accounts are small, and other threads
/// process them.
package indirect enum AccountsJSON: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case string(String)
  case array([AccountsJSON])
  case object([Member])

  /// A member of an object.
  package struct Member: Sendable {
    package var name: String
    package var value: AccountsJSON

    package init(name: String, value: AccountsJSON) {
      self.name = name
      self.value = value
    }
  }

  /// Parses JSON text. Cost: two passes over the text, and memory of several times its size.
  /// - Throws: `WireError` if the text is not valid JSON or is nested too deeply.
  package init(parsing text: [UInt8]) throws(WireError) {
    self = try text.withUnsafeBytes { text in
      // A batch of imported users has a few megabytes at most, and the transport limits the size of requests.
      Result { () throws(WireError) in
        try JSONDocument(bytesMax: 64 << 20, keptBytesMax: 0).withParsed(text) { (root) throws(WireError) in
          AccountsJSON(root)
        }
      }
    }.get()
  }

  /// Copies a parsed value. The parser limits its depth.
  package init(_ value: JSONValue) {
    switch value.kind {
    case .null: self = .null
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .unsigned(let value): self = .double(Double(value))
    case .double(let value): self = .double(value)
    case .string(let text): self = .string(String(decoding: text, as: UTF8.self))
    case .array(var elements):
      var all: [AccountsJSON] = []
      while let element = elements.next() { all.append(AccountsJSON(element)) }
      self = .array(all)
    case .object(var members):
      var all: [Member] = []
      while let (name, value) = members.next() { all.append(Member(name: name.text, value: AccountsJSON(value))) }
      self = .object(all)
    }
  }

  /// The value of a message field, or `nil` if it is absent or `null`. Accepts every spelling of protobuf's JSON
  /// form (`photoUrl`, `photo_url`, and `photoURL`, which some clients send). The last member of that name wins.
  package subscript(field: StaticString) -> AccountsJSON? {
    guard case .object(let members) = self else { return nil }
    guard let found = members.last(where: { Self.isField($0.name, field) })?.value else { return nil }
    if case .null = found { return nil }
    return found
  }

  /// The value of the last member with exactly this name, compared byte by byte, or `nil` if none exists.
  package func member(_ name: String) -> AccountsJSON? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The string, or `nil` if the value is not a string.
  package var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The integer of an int64 field, which JSON encodes as a number or as a string, or `nil` for any other value.
  package var int64: Int64? {
    switch self {
    case .integer(let number): number
    case .double(let number): Int64(exactly: number)
    case .string(let text): Int64(text)
    default: nil
    }
  }

  /// The Boolean, also if it is spelled as a string, or `nil` for any other value.
  package var flag: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .string("true"): true
    case .string("false"): false
    default: nil
    }
  }

  /// The elements of an array, or an empty array for any other value.
  package var elements: [AccountsJSON] {
    if case .array(let elements) = self { elements } else { [] }
  }

  /// The members of an object, or `nil` for any other value.
  package var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// Returns whether a member's name spells a field name. Case and underscores are ignored.
  private static func isField(_ name: String, _ field: StaticString) -> Bool {
    var expected = 0
    for byte in name.utf8 where byte != UInt8(ascii: "_") {
      guard expected < field.utf8CodeUnitCount, lower(byte) == lower(field.utf8Start[expected]) else { return false }
      expected += 1
    }
    return expected == field.utf8CodeUnitCount
  }

  private static func lower(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
}
