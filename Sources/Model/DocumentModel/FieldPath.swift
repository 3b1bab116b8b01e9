/// The path of a field inside a document: field names, from the outermost map to the innermost.
///
/// In text form, `.` joins the names. A name that does not match `[a-zA-Z_][a-zA-Z_0-9]*` is quoted with backticks,
/// and `\` escapes a backtick or backslash inside the quotes (firestore-api.md, section 0). Paths are compared as
/// UTF-8 bytes.
package struct FieldPath: Sendable {
  /// The field names; never empty.
  package let segments: [String]

  /// Wraps names that are known to be legal. There must be at least one.
  package init(segments: [String]) {
    precondition(!segments.isEmpty, "a field path has at least one segment")
    self.segments = segments
  }

  /// Creates a path of one field.
  package init(field name: String) {
    segments = [name]
  }

  /// Parses a path such as ``a.b.`odd name` ``.
  /// - Throws: ``ModelError`` with the documented text if the path is empty, malformed, too long or reserved.
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

  /// Whether this is `__name__`, the pseudo-field for the name of the document.
  package var isDocumentName: Bool { segments.count == 1 && segments[0] == "__name__" }

  /// The text form. Parsing it returns the same path.
  package var text: String { segments.map(Self.quote).joined(separator: ".") }

  /// Returns whether `other` is this path or a path inside it.
  package func isPrefix(of other: FieldPath) -> Bool {
    segments.count <= other.segments.count
      && zip(segments, other.segments).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }

  /// Returns a name in the form it has in the text of a path: quoted if necessary.
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

  /// Orders paths segment by segment, each by its UTF-8 bytes. A prefix sorts first.
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

/// A set of field paths: the fields that an update changes, or the fields that a read returns.
package struct FieldMask: Hashable, Sendable {
  /// The sorted paths, without those that are inside another path of the mask.
  package let paths: [FieldPath]

  /// Creates a mask. Of overlapping paths it keeps the shorter one (firestore-api.md, section 14).
  package init(_ paths: [FieldPath]) {
    var kept: [FieldPath] = []
    for path in paths.sorted() {
      if let last = kept.last, last.isPrefix(of: path) { continue }
      kept.append(path)
    }
    self.paths = kept
  }
}
