/// Where a field is: names from the document inwards.
///
///     "name"                      // a field
///     "address.city"              // a field of a map
///     "meals.`Calorie intake`"    // a name that is no identifier stands between backticks
///     FieldPath("a.b", "c")       // or name by name, without any quoting
public struct FieldPath: Sendable, Hashable, ExpressibleByStringInterpolation, CustomStringConvertible {
  /// The names.
  public let segments: [String]

  /// The path of these names, as they are.
  public init(_ segments: String...) { self.segments = segments }

  /// The path of these names, as they are.
  public init(segments: [String]) { self.segments = segments }

  /// Reads a path of names between dots. A dot, a backtick or a backslash within a name needs backticks around it; all
  /// else is understood without.
  public init(stringLiteral text: String) {
    var segments: [String] = []
    var name: [UInt8] = []
    var isQuoted = false
    var isEscaped = false
    for byte in text.utf8 {
      if isEscaped {
        name.append(byte)
        isEscaped = false
      } else if isQuoted, byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "`") {
        isQuoted.toggle()
      } else if byte == UInt8(ascii: "."), !isQuoted {
        segments.append(String(decoding: name, as: UTF8.self))
        name = []
      } else {
        name.append(byte)
      }
    }
    self.segments = segments + [String(decoding: name, as: UTF8.self)]
  }

  /// The name of the document, by which results can be ordered and compared.
  public static let documentID = FieldPath("__name__")

  /// The path as the API writes it, with backticks where they are needed.
  public var description: String {
    segments.map { Self.isSimple($0) ? $0 : Self.quoted($0) }.joined(separator: ".")
  }

  private static func isSimple(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
    return name.utf8.allSatisfy { byte in
      byte == UInt8(ascii: "_") || (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
        || (0x61...0x7a).contains(byte)
    }
  }

  private static func quoted(_ name: String) -> String {
    var bytes = [UInt8(ascii: "`")]
    for byte in name.utf8 {
      if byte == UInt8(ascii: "`") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
      bytes.append(byte)
    }
    return String(decoding: bytes + [UInt8(ascii: "`")], as: UTF8.self)
  }
}

extension FieldPath {
  /// Whether both have the same names; compared byte by byte, as the server does.
  public static func == (a: FieldPath, b: FieldPath) -> Bool {
    a.segments.elementsEqual(b.segments) { $0.hasBytes(of: $1) }
  }

  /// Hashes the bytes of the names.
  public func hash(into hasher: inout Hasher) {
    for var name in segments {
      name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
      // A byte of no name, so that it matters where one ends.
      hasher.combine(UInt8.max)
    }
  }
}

extension [String: Value] {
  /// The value at a path.
  public subscript(path: FieldPath) -> Value? {
    guard let first = path.segments.first, var value = self[first] else { return nil }
    for name in path.segments.dropFirst() {
      guard case .map(let fields) = value, let next = fields[name] else { return nil }
      value = next
    }
    return value
  }

  /// The paths of all that is no map, and of empty maps.
  func leaves(below parent: [String] = []) -> [FieldPath] {
    flatMap { name, value -> [FieldPath] in
      let path = parent + [name]
      guard case .map(let fields) = value, !fields.isEmpty else { return [FieldPath(segments: path)] }
      return fields.leaves(below: path)
    }
  }
}

extension [JSON.Member] {
  /// Puts a value at a path into fields as the API has them, making maps on the way. Names that differ in bytes only
  /// stay apart, which they would not as keys of a dictionary.
  ///
  /// Paths come in the order of the bytes of their descriptions: then what two of them share is the last member.
  mutating func put(_ value: Value, at segments: ArraySlice<String>) {
    guard let name = segments.first else { return }
    let before = if let last, last.name.hasBytes(of: name) { removeLast().value } else { nil as JSON? }
    let rest = segments.dropFirst()
    guard !rest.isEmpty else { return append(JSON.Member(name, value.json)) }
    var inner = before?["mapValue"]?["fields"]?.members ?? []
    inner.put(value, at: rest)
    append(JSON.Member(name, .of(["mapValue": .of(["fields": .object(inner)])])))
  }
}
