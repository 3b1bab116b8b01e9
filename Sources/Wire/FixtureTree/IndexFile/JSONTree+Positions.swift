package import WireFormat

extension JSONTree {
  /// Reads a JSON text, with positions, for small files whose errors users see.
  /// - Throws: ``FixtureTreeError`` if the text is not valid JSON or is longer than `bytesMax`.
  package static func read(_ source: ByteSource, bytesMax: Int) throws(FixtureTreeError) -> JSONTree {
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
  ) throws(FixtureTreeError) -> JSONTree {
    let (line, column) = (tokens.line, tokens.column)
    let kind: Kind
    switch token {
    case .true: kind = .boolean(true)
    case .false: kind = .boolean(false)
    case .number: kind = .number(String(decoding: tokens.text, as: UTF8.self))
    case .string: kind = .string(String(decoding: tokens.text, as: UTF8.self))
    case .arrayStart:
      var elements: [JSONTree] = []
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
    var tree = JSONTree(kind)
    (tree.line, tree.column, tree.end) = (line, column, (tokens.line, tokens.column))
    return tree
  }
}
