import WireFormat

/// Reads JSON texts, such as configuration files and responses of a server.
enum JSONText {
  /// Parses a text and passes its root to `body`. The root is valid during the call only.
  /// - Throws: `WireError` if the text is not valid JSON, or the error of `body`.
  static func read<R>(_ bytes: [UInt8], _ body: (JSONValue) throws -> R) throws -> R {
    // The parser's closure can throw only `WireError`, so the result of `body` is returned as a value.
    try bytes.withUnsafeBytes { text in
      try JSONDocument(bytesMax: 128 << 20).withParsed(text) { (root) throws(WireError) in Result { try body(root) } }
    }.get()
  }
}

extension JSONValue {
  /// Returns the member of that name, or `nil` if this is not an object or has no such member.
  func member(_ name: StaticString) -> JSONValue? {
    guard case .object(var members) = kind else { return nil }
    while let (key, value) = members.next() {
      if name ~= key { return value }
    }
    return nil
  }

  /// The text, or `nil` if this is not a string.
  var text: String? {
    guard case .string(let bytes) = kind else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The number, or `nil` if this is not an integer.
  var integer: Int? {
    guard case .integer(let number) = kind else { return nil }
    return Int(number)
  }

  /// Whether this is `true`.
  var isTrue: Bool {
    guard case .boolean(true) = kind else { return false }
    return true
  }

  /// The elements, or none if this is not an array.
  var array: [JSONValue] {
    guard case .array(var elements) = kind else { return [] }
    var all: [JSONValue] = []
    while let element = elements.next() { all.append(element) }
    return all
  }
}
