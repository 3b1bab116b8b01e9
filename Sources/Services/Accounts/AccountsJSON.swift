package import WireFormat

/// A JSON value that outlives the text it was read from: requests about accounts are small and are worked on by other
/// threads.
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
    /// The name as it was written.
    package var name: String
    /// The value.
    package var value: AccountsJSON

    /// Creates a member.
    package init(name: String, value: AccountsJSON) {
      self.name = name
      self.value = value
    }
  }

  /// Parses a text. Cost: two passes over it; memory some times its size.
  /// - Throws: `WireError` when it is no JSON, or nests too deep.
  package init(parsing text: [UInt8]) throws(WireError) {
    self = try text.withUnsafeBytes { text in
      // Batches of imported users are megabytes at most; the transport bounds what arrives.
      Result { () throws(WireError) in
        try JSONDocument(bytesMax: 64 << 20, keptBytesMax: 0).withParsed(text) { (root) throws(WireError) in
          AccountsJSON(root)
        }
      }
    }.get()
  }

  /// Copies a parsed value. Its depth is bounded by the parser.
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

  /// A field of a message: the last member of that name, whichever way protobuf's JSON form lets it be spelt
  /// (`photoUrl`, `photo_url`, and `photoURL` as some clients have it). `nil` where it is absent or `null`.
  package subscript(field: StaticString) -> AccountsJSON? {
    guard case .object(let members) = self else { return nil }
    guard let found = members.last(where: { Self.isField($0.name, field) })?.value else { return nil }
    if case .null = found { return nil }
    return found
  }

  /// The last member of exactly that name, byte by byte; `nil` where it is absent.
  package func member(_ name: String) -> AccountsJSON? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The text of a string.
  package var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The number of an int64, which is written as a number or as a string.
  package var int64: Int64? {
    switch self {
    case .integer(let number): number
    case .double(let number): Int64(exactly: number)
    case .string(let text): Int64(text)
    default: nil
    }
  }

  /// The flag of a boolean.
  package var flag: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .string("true"): true
    case .string("false"): false
    default: nil
    }
  }

  /// The elements of an array, nothing for all else.
  package var elements: [AccountsJSON] {
    if case .array(let elements) = self { elements } else { [] }
  }

  /// The members of an object; `nil` for all else.
  package var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// Whether a member's name spells a field's: case and underscores do not count.
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
