/// The path of a field inside a document: field names from the outermost map inwards.
///
/// As text the names are joined by `.`; a name that is not `[a-zA-Z_][a-zA-Z_0-9]*` stands between backticks, with
/// `\` before a backtick or a backslash (firestore-api.md, section 0). Compared as UTF-8 bytes.
package struct FieldPath: Sendable {
  /// The field names; never empty.
  package let segments: [String]

  /// Wraps names that are known to be legal and at least one.
  package init(segments: [String]) {
    precondition(!segments.isEmpty, "a field path has at least one segment")
    self.segments = segments
  }

  /// A path of one field.
  package init(field name: String) {
    segments = [name]
  }

  /// Parses a path such as ``a.b.`odd name` ``.
  /// - Throws: ``ModelError`` with the documented text when it is empty, malformed, too long or reserved.
  package init(_ text: String) throws(ModelError) {
    guard !text.isEmpty else { throw .emptyFieldPath }
    var names: [String] = []
    var current: [UInt8] = []
    var bytes = Array(text.utf8)[...]
    while true {
      current.removeAll(keepingCapacity: true)
      if bytes.first == UInt8(ascii: "`") {
        bytes = bytes.dropFirst()
        try Self.takeQuoted(&bytes, into: &current, whole: text)
      } else {
        while let byte = bytes.first, byte != UInt8(ascii: ".") {
          guard Self.isSimple(byte, first: current.isEmpty) else { throw .invalidFieldPath(text) }
          current.append(byte)
          bytes = bytes.dropFirst()
        }
      }
      guard !current.isEmpty else { throw .invalidFieldPath(text) }
      guard current.count <= Limits.fieldNameBytesMax else { throw .fieldNameTooLong }
      names.append(String(decoding: current, as: UTF8.self))
      guard let separator = bytes.first else { break }
      guard separator == UInt8(ascii: ".") else { throw .invalidFieldPath(text) }
      bytes = bytes.dropFirst()
    }
    segments = names
    guard !isDocumentName else { return }
    for name in names where ResourceID.isReserved(Array(name.utf8)) { throw .reservedFieldPath(text) }
  }

  /// Whether this is `__name__`, the pseudo-field that stands for the document's name.
  package var isDocumentName: Bool { segments.count == 1 && segments[0].utf8.elementsEqual("__name__".utf8) }

  /// The text form; parsing it gives the same path.
  package var text: String { segments.map(Self.quote).joined(separator: ".") }

  /// Whether `other` is this path or one inside it.
  package func isPrefix(of other: FieldPath) -> Bool {
    segments.count <= other.segments.count
      && zip(segments, other.segments).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }

  /// A name as it stands in a path: quoted where it must be.
  package static func quote(_ name: String) -> String {
    var isFirst = true
    let plain = name.utf8.allSatisfy { byte in
      defer { isFirst = false }
      return isSimple(byte, first: isFirst)
    }
    if plain, !name.isEmpty { return name }
    var quoted = "`"
    for scalar in name.unicodeScalars {
      if scalar == "`" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
      quoted.unicodeScalars.append(scalar)
    }
    return quoted + "`"
  }

  private static func takeQuoted(
    _ bytes: inout ArraySlice<UInt8>, into name: inout [UInt8], whole: String
  ) throws(ModelError) {
    while let byte = bytes.popFirst() {
      if byte == UInt8(ascii: "`") { return }
      if byte == UInt8(ascii: "\\") {
        guard let escaped = bytes.popFirst() else { throw .invalidFieldPath(whole) }
        name.append(escaped)
      } else {
        name.append(byte)
      }
    }
    throw .invalidFieldPath(whole)
  }

  private static func isSimple(_ byte: UInt8, first: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"): !first
    default: false
    }
  }
}

extension FieldPath: Hashable, Comparable {
  package static func == (a: FieldPath, b: FieldPath) -> Bool {
    a.segments.count == b.segments.count && a.isPrefix(of: b)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(segments.count)
    for segment in segments {
      var copy = segment
      copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
      hasher.combine(UInt8(0xFF))
    }
  }

  /// Lexicographic by segments, each by UTF-8 bytes; a prefix first.
  package static func < (a: FieldPath, b: FieldPath) -> Bool {
    for (x, y) in zip(a.segments, b.segments) {
      let order = Ordering.bytes(x.utf8, y.utf8)
      if order != .equal { return order == .less }
    }
    return a.segments.count < b.segments.count
  }
}

extension FieldPath: CustomStringConvertible {
  package var description: String { text }
}

/// A set of field paths: which fields an update touches, or which a reader wants back.
package struct FieldMask: Hashable, Sendable {
  /// The paths, sorted, with those left out that another path of the mask already covers.
  package let paths: [FieldPath]

  /// Makes a mask; of overlapping paths the shorter one stands (firestore-api.md, section 14).
  package init(_ paths: [FieldPath]) {
    var kept: [FieldPath] = []
    for path in paths.sorted() {
      if let last = kept.last, last.isPrefix(of: path) { continue }
      kept.append(path)
    }
    self.paths = kept
  }
}
