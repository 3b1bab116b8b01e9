/// A JSON value that outlives the text it was read from, for texts that are small or read once: requests about accounts,
/// rule tests, index files.
///
/// ``init(parsing:)`` reads requests, with the errors of the API. FixtureTree reads files, with positions.
package struct JSONTree: Sendable {
  /// The type and content of a value.
  package enum Kind: Sendable {
    case null
    case boolean(Bool)
    /// A number in text form: as it was written in a file, or the shortest text of its value in a request.
    case number(String)
    case string(String)
    case array([JSONTree])
    /// The members in the order of the text.
    case object([Member])
  }

  /// A member of an object.
  package struct Member: Sendable {
    /// The name, with escapes resolved.
    package var name: String
    /// The line where the name starts, from 1, or 0 if the tree has no positions.
    package var line = 0
    /// The column where the name starts, from 1, in UTF-8 bytes, or 0 if the tree has no positions.
    package var column = 0
    package var value: JSONTree

    package init(name: String, line: Int = 0, column: Int = 0, value: JSONTree) {
      self.name = name
      self.line = line
      self.column = column
      self.value = value
    }
  }

  package var kind: Kind
  /// The line where the value starts, from 1, or 0 if the tree has no positions.
  package var line = 0
  /// The column where the value starts, from 1, in UTF-8 bytes, or 0 if the tree has no positions.
  package var column = 0
  /// The start of the value's last token, which for an array or object is the closing bracket.
  package var end = (line: 0, column: 0)

  /// Creates a value without positions.
  package init(_ kind: Kind) { self.kind = kind }

  /// Parses JSON text, without positions. Cost: two passes over the text, and memory of several times its size.
  /// - Throws: `WireError` if the text is not valid JSON or is nested too deeply.
  package init(parsing text: [UInt8]) throws(WireError) {
    self = try text.withUnsafeBytes { text in
      // A batch of imported users has a few megabytes at most, and the transport limits the size of requests.
      Result { () throws(WireError) in
        try JSONDocument(bytesMax: 64 << 20, keptBytesMax: 0).withParsed(text) { (root) throws(WireError) in
          JSONTree(root)
        }
      }
    }.get()
  }

  /// Copies a parsed value, without positions. The parser limits its depth.
  package init(_ value: JSONValue) {
    switch value.kind {
    case .null: kind = .null
    case .boolean(let value): kind = .boolean(value)
    case .integer(let value): kind = .number(String(value))
    case .unsigned(let value): kind = .number(String(value))
    case .double(let value): kind = .number(value.description)
    case .string(let text): kind = .string(String(decoding: text, as: UTF8.self))
    case .array(var elements):
      var all: [JSONTree] = []
      while let element = elements.next() { all.append(JSONTree(element)) }
      kind = .array(all)
    case .object(var members):
      var all: [Member] = []
      while let (name, value) = members.next() { all.append(Member(name: name.text, value: JSONTree(value))) }
      kind = .object(all)
    }
  }

  /// The value of a message field, or `nil` if it is absent or `null`. Accepts every spelling of protobuf's JSON
  /// form (`photoUrl`, `photo_url`, and `photoURL`, which some clients send). The last member of that name wins.
  package subscript(field: StaticString) -> JSONTree? {
    guard case .object(let members) = kind else { return nil }
    guard let found = members.last(where: { Self.isField($0.name, field) })?.value else { return nil }
    if case .null = found.kind { return nil }
    return found
  }

  /// The value of the last member with exactly this name, compared byte by byte, or `nil` if none exists.
  package func member(_ name: String) -> JSONTree? {
    guard case .object(let members) = kind else { return nil }
    return members.last { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The string, or `nil` if the value is not a string.
  package var text: String? {
    if case .string(let text) = kind { text } else { nil }
  }

  /// The integer of an int64 field, which JSON encodes as a number or as a string, or `nil` for any other value.
  package var int64: Int64? {
    switch kind {
    case .number(let text): Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    case .string(let text): Int64(text)
    default: nil
    }
  }

  /// The Boolean, also if it is spelled as a string, or `nil` for any other value.
  package var flag: Bool? {
    switch kind {
    case .boolean(let flag): flag
    case .string("true"): true
    case .string("false"): false
    default: nil
    }
  }

  /// The elements of an array, or an empty array for any other value.
  package var elements: [JSONTree] {
    if case .array(let elements) = kind { elements } else { [] }
  }

  /// The members of an object, or `nil` for any other value.
  package var members: [Member]? {
    if case .object(let members) = kind { members } else { nil }
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
