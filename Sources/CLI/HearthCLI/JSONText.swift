import WireFormat

/// Reads JSON texts of any kind: configuration, answers of a server.
enum JSONText {
  /// Parses a text and lends its root, which is valid during the call.
  /// - Throws: `WireError` when it is no JSON, and what `body` throws.
  static func read<R>(_ bytes: [UInt8], _ body: (JSONValue) throws -> R) throws -> R {
    // The parser's own closures throw one type only, so the outcome travels as a value.
    try bytes.withUnsafeBytes { text in
      try JSONDocument(bytesMax: 128 << 20).withParsed(text) { (root) throws(WireError) in Result { try body(root) } }
    }.get()
  }
}

extension JSONValue {
  /// The member of that name where this is an object that has it.
  func member(_ name: StaticString) -> JSONValue? {
    guard case .object(var members) = kind else { return nil }
    while let (key, value) = members.next() {
      if name ~= key { return value }
    }
    return nil
  }

  /// The text where this is a string.
  var text: String? {
    guard case .string(let bytes) = kind else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The number where this is an integer.
  var integer: Int? {
    guard case .integer(let number) = kind else { return nil }
    return Int(number)
  }

  /// Whether this is `true`.
  var isTrue: Bool {
    guard case .boolean(true) = kind else { return false }
    return true
  }

  /// The elements where this is an array.
  var array: [JSONValue] {
    guard case .array(var elements) = kind else { return [] }
    var all: [JSONValue] = []
    while let element = elements.next() { all.append(element) }
    return all
  }
}
