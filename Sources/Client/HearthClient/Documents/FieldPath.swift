/// The path of a field: the names from the document down to the field.
///
///     "name"                      // a field
///     "address.city"              // a field of a map
///     "meals.`Calorie intake`"    // a name that is not an identifier, in backticks
///     FieldPath("a.b", "c")       // separate names, without quoting
public struct FieldPath: Sendable, Hashable, ExpressibleByStringInterpolation, CustomStringConvertible {
  public let segments: [String]

  /// The path of these names, without unquoting.
  public init(_ segments: String...) { self.segments = segments }

  /// The path of these names, without unquoting.
  public init(segments: [String]) { self.segments = segments }

  /// Parses names separated by dots. A name that contains a dot, a backtick or a backslash must be in backticks;
  /// all other names can be written without.
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

  /// The name of the document, for orders and comparisons.
  public static let documentID = FieldPath("__name__")

  /// The path in the format of the API, with backticks if needed.
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
  /// Whether both paths have the same names. Names are compared by bytes, as on the server.
  public static func == (a: FieldPath, b: FieldPath) -> Bool {
    a.segments.elementsEqual(b.segments) { $0.hasBytes(of: $1) }
  }

  /// Hashes the bytes of the names.
  public func hash(into hasher: inout Hasher) {
    for var name in segments {
      name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
      // Mark the end of a name with a byte that UTF-8 never contains.
      hasher.combine(UInt8.max)
    }
  }
}

extension [String: Value] {
  /// The value at a path, or `nil` if the field does not exist.
  public subscript(path: FieldPath) -> Value? {
    guard let first = path.segments.first, var value = self[first] else { return nil }
    for name in path.segments.dropFirst() {
      guard case .map(let fields) = value, let next = fields[name] else { return nil }
      value = next
    }
    return value
  }

  /// Returns the paths of all values, except maps that are not empty.
  func leaves(below parent: [String] = []) -> [FieldPath] {
    flatMap { name, value -> [FieldPath] in
      let path = parent + [name]
      guard case .map(let fields) = value, !fields.isEmpty else { return [FieldPath(segments: path)] }
      return fields.leaves(below: path)
    }
  }
}

extension [JSON.Member] {
  /// Adds a value to fields in the format of the API, and creates maps along the path. Names that differ only in
  /// bytes stay separate, which the keys of a dictionary would not.
  ///
  /// Add paths in the order of the bytes of their descriptions. Then a common prefix of two paths is always the
  /// last member.
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
