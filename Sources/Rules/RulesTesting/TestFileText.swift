import DocumentModel
import FixtureTree
import WireFormat

/// A test file as a JSON tree. Reads parts of it as documents and values, and reports errors with their places.
struct TestFileText {
  /// The maximum size of a test file, in bytes.
  static let bytesMax = 64 << 20

  /// The database of references in test files. Rules see only its name.
  static let database = DatabaseID.forTests

  let file: String
  let root: JSONTree
  private let bytes: [UInt8]
  private let lineStarts: [Int]

  init(file: String, _ bytes: [UInt8]) throws(FixtureTreeError) {
    self.file = file
    self.bytes = bytes
    root = try JSONTree.read(ByteSource(bytes, name: file), bytesMax: Self.bytesMax)
    lineStarts = [0] + bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
  }

  /// Returns an error at a place.
  func failure(_ tree: JSONTree, in test: String? = nil, _ message: String) -> FixtureTreeError {
    FixtureTreeError(
      file: file, line: tree.line, column: tree.column, path: test.map { "case \"\($0)\"" } ?? "", message: message)
  }

  /// Returns the members of an object.
  /// - Throws: ``FixtureTreeError`` if `tree` is not an object, or has a member that is unknown or occurs twice.
  func members(
    _ tree: JSONTree, _ what: String, known: [String], in test: String? = nil
  ) throws(FixtureTreeError) -> [String: JSONTree] {
    guard case .object(let members) = tree.kind else {
      throw failure(tree, in: test, "\(what) must be an object, {…}")
    }
    var found: [String: JSONTree] = [:]
    for member in members {
      var place = member.value
      (place.line, place.column) = (member.line, member.column)
      guard known.contains(member.name) else {
        let hint = known.nearest(to: member.name) ?? "\(what) can have the keys \(known.joined(separator: ", "))"
        throw failure(place, in: test, "unknown key \"\(member.name)\"; \(hint)")
      }
      guard found.updateValue(member.value, forKey: member.name) == nil else {
        throw failure(place, in: test, "duplicate key \"\(member.name)\" in this object; remove one")
      }
    }
    return found
  }

  /// Returns the elements of an array.
  /// - Throws: ``FixtureTreeError`` if `tree` is not an array.
  func elements(
    _ tree: JSONTree, _ what: String, in test: String? = nil
  ) throws(FixtureTreeError) -> [JSONTree] {
    guard case .array(let elements) = tree.kind else {
      throw failure(tree, in: test, "\(what) must be an array, […]")
    }
    return elements
  }

  /// Returns a string.
  /// - Throws: ``FixtureTreeError`` if `tree` is not a string.
  func string(_ tree: JSONTree, _ what: String, in test: String? = nil) throws(FixtureTreeError) -> String {
    guard case .string(let text) = tree.kind else { throw failure(tree, in: test, "\(what) must be a string") }
    return text
  }

  /// Returns a whole number that is not negative.
  /// - Throws: ``FixtureTreeError`` if `tree` is not such a number.
  func count(_ tree: JSONTree, _ what: String, in test: String? = nil) throws(FixtureTreeError) -> Int {
    guard case .number(let text) = tree.kind, let number = Int(text), number >= 0 else {
      throw failure(tree, in: test, "\(what) must be a whole number, 0 or greater")
    }
    return number
  }

  /// Returns a time in RFC 3339 format.
  /// - Throws: ``FixtureTreeError`` if `tree` is not such a time.
  func time(_ tree: JSONTree, in test: String? = nil) throws(FixtureTreeError) -> Timestamp {
    guard let time = Timestamp(rfc3339: try string(tree, "\"time\"", in: test).utf8) else {
      throw failure(tree, in: test, "\"time\" must have the form \"2025-03-27T14:30:00Z\"")
    }
    return time
  }

  // MARK: Documents and values

  /// Reads an object as a fixture tree.
  /// - Throws: ``FixtureTreeError`` with the place in this file if the tree is malformed.
  func documents(_ tree: JSONTree, into documents: inout TestDocuments) throws(FixtureTreeError) {
    guard case .object = tree.kind else { throw failure(tree, "\"documents\" must be an object, {…}") }
    let source = ByteSource(placed(tree, in: slice(tree)), name: file)
    var reader = try FixtureReader(source, database: Self.database, format: .fixtureTree)
    while let document = try reader.next() { documents[document.key.path] = document.fields }
  }

  /// Reads an object as the fields of a document.
  /// - Throws: ``FixtureTreeError`` with the place in this file if a field is malformed.
  func fields(_ tree: JSONTree, of key: DocumentKey, in test: String) throws(FixtureTreeError) -> EncodedFields {
    guard case .object = tree.kind else { throw failure(tree, in: test, "the fields must be an object, {…}") }
    return try parse(Array(slice(tree)), at: tree, key, in: test)
  }

  /// Reads a value in the format of fixture trees.
  /// - Throws: ``FixtureTreeError`` with the place in this file if the value is malformed.
  func value(_ tree: JSONTree, in test: String) throws(FixtureTreeError) -> Value {
    switch tree.kind {
    case .null: return .null
    case .boolean(let flag): return .boolean(flag)
    case .string(let text): return .string(text)
    case .number(let text):
      return try wrapped(Array(text.utf8), in: test, tree)
    case .array, .object:
      return try wrapped(slice(tree), in: test, tree)
    }
  }

  private static let wrapping = Array("{\"value\":".utf8)

  private func wrapped(
    _ text: some Collection<UInt8>, in test: String, _ tree: JSONTree
  ) throws(FixtureTreeError) -> Value {
    let text = Self.wrapping + text + [UInt8(ascii: "}")]
    let fields = try parse(text, at: tree, shift: Self.wrapping.count, .ofValues, in: test)
    guard let value = try? fields.decoded()["value"] else { throw failure(tree, in: test, "the value cannot be read") }
    return value
  }

  /// Parses fields that are at the place of `tree` in the file, after `shift` bytes. Cost: the length of the text. Only
  /// if it is malformed, the text is parsed again after the whitespace of ``placed(_:shift:in:)``.
  private func parse(
    _ text: [UInt8], at tree: JSONTree, shift: Int = 0, _ key: DocumentKey, in test: String
  ) throws(FixtureTreeError) -> EncodedFields {
    if let fields = try? FixtureFields.parse(text, source: file, key: key, database: Self.database) { return fields }
    do throws(FixtureTreeError) {
      return try FixtureFields.parse(
        placed(tree, shift: shift, in: text), source: file, key: key, database: Self.database)
    } catch {
      var located = error
      located.path = "case \"\(test)\""
      throw located
    }
  }

  /// Returns the bytes of an object or array.
  private func slice(_ tree: JSONTree) -> ArraySlice<UInt8> {
    bytes[offset(tree.line, tree.column)...offset(tree.end.line, tree.end.column)]
  }

  private func offset(_ line: Int, _ column: Int) -> Int { lineStarts[line - 1] + column - 1 }

  /// Returns `text` after enough whitespace that its place is the same as in the file.
  private func placed(_ tree: JSONTree, shift: Int = 0, in text: some Collection<UInt8>) -> [UInt8] {
    [UInt8](repeating: UInt8(ascii: "\n"), count: tree.line - 1)
      + [UInt8](repeating: UInt8(ascii: " "), count: max(0, tree.column - 1 - shift)) + text
  }
}

extension DatabaseID {
  /// The database of all test files.
  fileprivate static let forTests: DatabaseID = {
    guard let id = DatabaseID(project: "demo") else { preconditionFailure("the project ID must be valid") }
    return id
  }()
}

extension DocumentKey {
  /// The key for values that belong to no document.
  fileprivate static let ofValues = DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: Array("values/value".utf8)))
}
