/// A whole JSON text as a tree that knows its places, for small files whose mistakes are shown to people.
package struct PositionedJSON: Sendable {
  /// What a value is.
  package enum Kind: Sendable {
    case null
    case boolean(Bool)
    /// A number, as written.
    case number(String)
    case string(String)
    case array([PositionedJSON])
    /// The members in the order of the text.
    case object([Member])
  }

  /// A member of an object.
  package struct Member: Sendable {
    /// Its name, escapes resolved.
    package var name: String
    /// Where the name stands, as ``PositionedJSON/line`` counts.
    package var line: Int
    /// See ``line``.
    package var column: Int
    /// Its value.
    package var value: PositionedJSON
  }

  /// What it is.
  package var kind: Kind
  /// The line where the value starts, from 1.
  package var line: Int
  /// The column where the value starts, from 1, in UTF-8 bytes.
  package var column: Int
  /// Where the value's last token starts: the closing bracket of an array or an object.
  package var end: (line: Int, column: Int)

  /// Reads a text.
  /// - Throws: ``FixtureTreeError`` when it is no JSON, or longer than `bytesMax`.
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

  /// The tokenizer bounds how deep this recurses.
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
