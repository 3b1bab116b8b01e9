import DocumentModel
import WireFormat

extension Command {
  /// Changes some fields of a document.
  static let update = Command(
    name: "update", summary: "Changes some fields of a document and keeps the others.",
    operands: "PATH (JSON | FIELD=VALUE …)", operandCount: 1...1000,
    options: DatabaseChoice.placeOptions + [
      .repeated("remove", "FIELD", "remove this field"),
      .flag("json", "print the document as the API's JSON"),
    ],
    details: """
      The document must exist. FIELD may be a path into maps, such as address.city.

      \(FieldInput.details)
      """,
    examples: [
      ("hearth update users/ann age=37", "only the field age"),
      ("hearth update users/ann address.city='New York' since=2025-03-27", "a field inside a map, and a timestamp"),
      (#"hearth update users/ann '{"tags": ["a", "b"]}'"#, "as JSON"),
      ("hearth update users/ann --remove nickname", "removes a field"),
    ],
    run: { arguments in
      let key = try DatabaseChoice.document(arguments.operands[0])
      let client = try ServerClient(ofServerOrDirectory: arguments)
      var change = try FieldChange(arguments.operands.dropFirst(), of: key, in: client.database)
      for field in arguments.values("remove") { try change.remove(field) }
      guard !change.paths.isEmpty else {
        throw CommandFailure.usage("no fields to change; give JSON, FIELD=VALUE or --remove FIELD")
      }
      let document = try client.update(key, change.fields, mask: FieldMask(change.paths))
      return try show(document, of: client.database, arguments)
    })
}

/// The fields that the operands of `add`, `set` and `update` name: the values, and the mask of an update.
struct FieldChange {
  private(set) var map = MapValue()
  private(set) var paths: [FieldPath] = []

  /// Reads one JSON object, or words of the form `FIELD=VALUE`.
  /// - Throws: ``CommandFailure``, `FixtureTreeError` or `WireError` if a word is not valid.
  init(_ words: ArraySlice<String>, of key: DocumentKey, in database: DatabaseID) throws {
    if words.count == 1, let word = words.first, word == "-" || Self.isJSON(word) {
      try merge(try FieldInput.fields(word, of: key, in: database))
    } else {
      for word in words { try set(word, in: database) }
    }
  }

  private static func isJSON(_ word: String) -> Bool {
    word.utf8.first { $0 > 0x20 }.map { Array("{[\"".utf8).contains($0) } ?? false
  }

  /// The values.
  var fields: EncodedFields { EncodedFields(map) }

  private mutating func merge(_ fields: EncodedFields) throws {
    for (name, value) in try fields.decoded().entries {
      map[name] = value
      try add(FieldPath(field: name))
    }
  }

  private mutating func set(_ word: String, in database: DatabaseID) throws {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2 else {
      throw CommandFailure.usage("'\(word)' must be FIELD=VALUE, such as age=37, or one JSON object")
    }
    let path = try Self.path(parts[0])
    let value = try ValueText.assigned(parts[1], to: parts[0], of: database)
    try add(path)
    map.set(value, at: path)
  }

  /// Adds a field to the mask.
  /// - Throws: ``CommandFailure`` if an earlier one is the same field, contains it or is in it.
  private mutating func add(_ path: FieldPath) throws {
    if let other = paths.first(where: { $0.isPrefix(of: path) || path.isPrefix(of: $0) }) {
      throw CommandFailure.usage(
        other.segments.count == path.segments.count
          ? "the field '\(path.text)' is named twice; set it or remove it, once"
          : "the fields '\(other.text)' and '\(path.text)' overlap; name only one of them")
    }
    paths.append(path)
  }

  /// Removes a field.
  /// - Throws: ``CommandFailure`` if the text is not a field path, or the field is also set.
  mutating func remove(_ text: String) throws { try add(try Self.path(text)) }

  private static func path(_ text: String) throws -> FieldPath {
    do { return try FieldPath(text) } catch { throw CommandFailure.usage("'\(text)' is not a field path: \(error)") }
  }
}
