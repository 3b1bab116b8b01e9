/// A JSON text as a tree that keeps source positions, for small files whose errors users see.
package struct PositionedJSON: Sendable {
  /// The type and content of a value.
  package enum Kind: Sendable {
    case null
    case boolean(Bool)
    /// A number, as written in the text.
    case number(String)
    case string(String)
    case array([PositionedJSON])
    /// The members in the order of the text.
    case object([Member])
  }

  /// A member of an object.
  package struct Member: Sendable {
    /// The name, with escapes resolved.
    package var name: String
    /// The line where the name starts, from 1.
    package var line: Int
    /// The column where the name starts, from 1, in UTF-8 bytes.
    package var column: Int
    package var value: PositionedJSON
  }

  package var kind: Kind
  /// The line where the value starts, from 1.
  package var line: Int
  /// The column where the value starts, from 1, in UTF-8 bytes.
  package var column: Int
  /// The start of the value's last token, which for an array or object is the closing bracket.
  package var end: (line: Int, column: Int)

  /// Reads a JSON text.
  /// - Throws: ``FixtureTreeError`` if the text is not valid JSON or is longer than `bytesMax`.
  package static func read(_ source: ByteSource, bytesMax: Int) throws(FixtureTreeError) -> PositionedJSON {
    var left = bytesMax
    let bounded = ByteSource(name: source.name) { (buffer) throws(FixtureTreeError) in
      let count = try source.read(into: buffer)
      left -= count
      guard left >= 0 else { throw FixtureTreeError(file: source.name, message: "is longer than \(bytesMax) bytes") }
      return count
    }
    var tokens = JSONTokenizer(bounded)
    let first = try tokens.next()
    let root = try value(first, &tokens)
    _ = try tokens.next()
    return root
  }

  /// The tokenizer's limit on nesting bounds this recursion.
  private static func value(
    _ token: JSONTokenizer.Token, _ tokens: inout JSONTokenizer
  ) throws(FixtureTreeError) -> PositionedJSON {
    let (line, column) = (tokens.line, tokens.column)
    let kind: Kind
    switch token {
    case .true: kind = .boolean(true)
    case .false: kind = .boolean(false)
    case .number: kind = .number(String(decoding: tokens.text, as: UTF8.self))
    case .string: kind = .string(String(decoding: tokens.text, as: UTF8.self))
    case .arrayStart:
      var elements: [PositionedJSON] = []
      while true {
        let next = try tokens.next()
        if next == .arrayEnd { break }
        elements.append(try value(next, &tokens))
      }
      kind = .array(elements)
    case .objectStart:
      var members: [Member] = []
      while try tokens.next() == .key {
        let name = String(decoding: tokens.text, as: UTF8.self)
        let place = (tokens.line, tokens.column)
        let next = try tokens.next()
        members.append(Member(name: name, line: place.0, column: place.1, value: try value(next, &tokens)))
      }
      kind = .object(members)
    default: kind = .null
    }
    return PositionedJSON(kind: kind, line: line, column: column, end: (tokens.line, tokens.column))
  }
}
