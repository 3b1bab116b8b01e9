import DocumentModel
import WireFormat

/// Writes keys, values and fields in the notation of a fixture tree.
struct FixtureValueWriter {
  /// The prefix of references that are written as paths.
  private let documentsRoot: [UInt8]

  init(documentsRoot: String) {
    self.documentsRoot = Array(documentsRoot.utf8) + [UInt8(ascii: "/")]
  }

  // MARK: Layout

  /// Appends a line break and an indentation.
  func appendLine(indent: Int, to out: inout [UInt8]) {
    out.append(UInt8(ascii: "\n"))
    for _ in 0..<indent { out.append(UInt8(ascii: " ")) }
  }

  /// Appends a key and its colon. A key that begins with `$` gets another `$`.
  func appendKey(_ key: some Collection<UInt8>, to out: inout [UInt8]) {
    var text = Array(key)
    if text.first == UInt8(ascii: "$") { text.insert(UInt8(ascii: "$"), at: 0) }
    text.withUnsafeBytes { JSONStringText.append($0, to: &out) }
    out.append(contentsOf: ": ".utf8)
  }

  /// Appends a whole document on the current line if it fits; otherwise appends nothing and returns `false`.
  func appendInline(
    _ fields: EncodedFields, isApart: Bool, lineStart: Int, to out: inout [UInt8]
  ) throws(WireError) -> Bool {
    let start = out.count
    if isApart { out.append(contentsOf: "{\"$fields\": ".utf8) }
    let limit = lineStart + FixtureTreeWriter.lineBytesMax - (isApart ? 1 : 0)
    let fits = try fields.withMap { (map) throws(WireError) in try appendInline(map, limit: limit, to: &out) }
    if fits, isApart { out.append(UInt8(ascii: "}")) }
    if !fits { out.removeLast(out.count - start) }
    return fits
  }

  /// Appends fields as an object that starts on the current line.
  func append(_ fields: EncodedFields, indent: Int, to out: inout [UInt8]) throws(WireError) {
    out.append(UInt8(ascii: "{"))
    var hasMember = false
    try appendMembers(fields, indent: indent + 2, hasMember: &hasMember, to: &out)
    if hasMember { appendLine(indent: indent, to: &out) }
    out.append(UInt8(ascii: "}"))
  }

  /// Appends fields as members of an open object, each on a new line.
  func appendMembers(
    _ fields: EncodedFields, indent: Int, hasMember: inout Bool, to out: inout [UInt8]
  ) throws(WireError) {
    try fields.withMap { (map) throws(WireError) in
      try appendMembers(map, indent: indent, hasMember: &hasMember, to: &out)
    }
  }

  private func appendMembers(
    _ map: EncodedMap, indent: Int, hasMember: inout Bool, to out: inout [UInt8]
  ) throws(WireError) {
    var iterator = map.makeIterator()
    while let entry = try iterator.next() {
      if hasMember { out.append(UInt8(ascii: ",")) }
      hasMember = true
      appendLine(indent: indent, to: &out)
      let lineStart = out.count - indent
      appendKey(entry.key, to: &out)
      try appendValue(entry.value, indent: indent, lineStart: lineStart, to: &out)
    }
  }

  /// Appends a value, on the current line if it fits, else over several lines.
  private func appendValue(
    _ value: EncodedValue, indent: Int, lineStart: Int, to out: inout [UInt8]
  ) throws(WireError) {
    let content = try value.content
    let start = out.count
    // Leaves room for the comma that may follow.
    if try appendInline(content, limit: lineStart + FixtureTreeWriter.lineBytesMax - 1, to: &out) { return }
    out.removeLast(out.count - start)
    switch content {
    case .map(let map) where try !map.isVector:
      out.append(UInt8(ascii: "{"))
      var hasMember = false
      try appendMembers(map, indent: indent + 2, hasMember: &hasMember, to: &out)
      appendLine(indent: indent, to: &out)
      out.append(UInt8(ascii: "}"))
    case .array(let array):
      out.append(UInt8(ascii: "["))
      var iterator = array.makeIterator()
      var hasElement = false
      while let element = try iterator.next() {
        if hasElement { out.append(UInt8(ascii: ",")) }
        hasElement = true
        appendLine(indent: indent + 2, to: &out)
        try appendValue(element, indent: indent + 2, lineStart: out.count - indent - 2, to: &out)
      }
      appendLine(indent: indent, to: &out)
      out.append(UInt8(ascii: "]"))
    default:
      // Scalars and vectors have no shorter form, so they may exceed the line length.
      _ = try appendInline(content, limit: .max, to: &out)
    }
  }

  // MARK: Inline

  /// Appends a value on one line of any length.
  func append(_ value: EncodedValue, to out: inout [UInt8]) throws(WireError) {
    _ = try appendInline(try value.content, limit: .max, to: &out)
  }

  /// Appends a value on the current line. Stops and returns `false` as soon as `out` is longer than `limit`.
  func appendInline(
    _ content: EncodedValue.Content, limit: Int, to out: inout [UInt8]
  ) throws(WireError) -> Bool {
    switch content {
    case .null: out.append(contentsOf: "null".utf8)
    case .boolean(let flag): out.append(contentsOf: (flag ? "true" : "false").utf8)
    case .integer(let number): out.append(contentsOf: number.description.utf8)
    case .double(let number): appendDouble(number, to: &out)
    case .string(let text): JSONStringText.append(text, to: &out)
    case .timestamp(let moment):
      out.append(contentsOf: "{\"$timestamp\": \"".utf8)
      moment.appendRFC3339(to: &out)
      out.append(contentsOf: "\"}".utf8)
    case .bytes(let bytes):
      out.append(contentsOf: "{\"$bytes\": \"".utf8)
      Base64.append(bytes, to: &out)
      out.append(contentsOf: "\"}".utf8)
    case .reference(let name):
      out.append(contentsOf: "{\"$ref\": ".utf8)
      appendReference(name, to: &out)
      out.append(UInt8(ascii: "}"))
    case .geoPoint(let point):
      out.append(contentsOf: "{\"$geo\": [".utf8)
      appendCoordinate(point.latitude, to: &out)
      out.append(contentsOf: ", ".utf8)
      appendCoordinate(point.longitude, to: &out)
      out.append(contentsOf: "]}".utf8)
    case .array(let array):
      out.append(UInt8(ascii: "["))
      var iterator = array.makeIterator()
      var hasElement = false
      while let element = try iterator.next() {
        if hasElement { out.append(contentsOf: ", ".utf8) }
        hasElement = true
        guard try appendInline(element.content, limit: limit, to: &out) else { return false }
      }
      out.append(UInt8(ascii: "]"))
    case .map(let map):
      if let components = try map.vectorComponents {
        // A vector is one value, like a scalar, so it is written on one line.
        try appendVector(components, to: &out)
      } else {
        return try appendInline(map, limit: limit, to: &out)
      }
    }
    return out.count <= limit
  }

  private func appendInline(_ map: EncodedMap, limit: Int, to out: inout [UInt8]) throws(WireError) -> Bool {
    out.append(UInt8(ascii: "{"))
    var iterator = map.makeIterator()
    var hasMember = false
    while let entry = try iterator.next() {
      if hasMember { out.append(contentsOf: ", ".utf8) }
      hasMember = true
      appendKey(entry.key, to: &out)
      guard try appendInline(entry.value.content, limit: limit, to: &out) else { return false }
    }
    out.append(UInt8(ascii: "}"))
    return out.count <= limit
  }

  // MARK: Scalars

  /// Appends a double. It is written as a plain number only if no JSON tool reads it as an integer.
  private func appendDouble(_ number: Double, to out: inout [UInt8]) {
    if number.isFinite, number != number.rounded(.towardZero) {
      out.append(contentsOf: number.description.utf8)
    } else {
      out.append(contentsOf: "{\"$double\": ".utf8)
      appendComponent(number, to: &out)
      out.append(UInt8(ascii: "}"))
    }
  }

  /// Appends a number in a place for doubles. NaN, infinities and negative zero are strings.
  private func appendComponent(_ number: Double, to out: inout [UInt8]) {
    if number.isNaN {
      out.append(contentsOf: "\"NaN\"".utf8)
    } else if number.isInfinite {
      out.append(contentsOf: (number < 0 ? "\"-Infinity\"" : "\"Infinity\"").utf8)
    } else if number == 0, number.sign == .minus {
      out.append(contentsOf: "\"-0\"".utf8)
    } else {
      appendCoordinate(number, to: &out)
    }
  }

  /// Appends a finite double in its shortest form, without `.0`.
  private func appendCoordinate(_ number: Double, to out: inout [UInt8]) {
    if number == 0, number.sign == .minus {
      out.append(contentsOf: "-0.0".utf8)
    } else if number.magnitude < 0x1p53, number == number.rounded(.towardZero) {
      out.append(contentsOf: Int64(number).description.utf8)
    } else {
      out.append(contentsOf: number.description.utf8)
    }
  }

  private func appendVector(_ components: EncodedArray, to out: inout [UInt8]) throws(WireError) {
    out.append(contentsOf: "{\"$vector\": [".utf8)
    var iterator = components.makeIterator()
    var hasComponent = false
    while let component = try iterator.next() {
      guard case .double(let number) = try component.content else {
        throw .malformedProtobuf("vector component is not a double")
      }
      if hasComponent { out.append(contentsOf: ", ".utf8) }
      hasComponent = true
      appendComponent(number, to: &out)
    }
    out.append(contentsOf: "]}".utf8)
  }

  private func appendReference(_ name: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    JSONStringText.append(shortReference(name), to: &out)
  }

  /// Returns the text of a reference: a path if it is in the exported database, unless that path looks like a full name.
  func shortReference(_ name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard name.starts(with: documentsRoot) else { return name }
    let path = UnsafeRawBufferPointer(rebasing: name[documentsRoot.count...])
    return ReferenceText.isFullName(path) ? name : path
  }
}
