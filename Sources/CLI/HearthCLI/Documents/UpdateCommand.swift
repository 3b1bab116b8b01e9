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
      The document must exist. FIELD may be a path into maps, such as address.city. VALUE is JSON, so a string needs
      quotes.

      \(FieldInput.details)
      """,
    examples: [
      (#"hearth update users/ann '{"age": 37}'"#, "only the field age"),
      (#"hearth update users/ann address.city='"Turin"' age=38"#, "a field inside a map, and another"),
      ("hearth update users/ann --remove nickname", "removes a field"),
    ],
    run: { arguments in
      let key = try DatabaseChoice.document(arguments.operands[0])
      let client = try ServerClient(ofServerOrDirectory: arguments)
      var change = FieldChange()
      let words = arguments.operands.dropFirst()
      if words.count == 1, let word = words.first, word == "-" || word.first == "{" {
        try change.merge(try FieldInput.fields(word, of: key, in: client.database))
      } else {
        for word in words { try change.set(word, of: key, in: client.database) }
      }
      for field in arguments.values("remove") { try change.remove(field) }
      guard !change.paths.isEmpty else {
        throw CommandFailure.usage("no fields to change; give JSON, FIELD=VALUE or --remove FIELD")
      }
      let document = try client.update(key, EncodedFields(change.map), mask: FieldMask(change.paths))
      let text = DocumentText(database: client.database)
      Terminal.output.write(arguments.has("json") ? try text.json(document, .pretty) : try text.page(document))
      return 0
    })
}

/// The fields that an update sets and removes: its mask and its values.
struct FieldChange {
  private(set) var map = MapValue()
  private(set) var paths: [FieldPath] = []

  /// Sets every field of an object.
  /// - Throws: `WireError` if the fields cannot be decoded.
  mutating func merge(_ fields: EncodedFields) throws {
    for (name, value) in try fields.decoded().entries {
      map[name] = value
      paths.append(FieldPath(field: name))
    }
  }

  /// Sets the field of `FIELD=VALUE`.
  /// - Throws: ``CommandFailure`` or `FixtureTreeError` if the word does not have that form.
  mutating func set(_ word: String, of key: DocumentKey, in database: DatabaseID) throws {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2 else {
      throw CommandFailure.usage("'\(word)' must be FIELD=VALUE, such as age=37, or one JSON object")
    }
    let path = try Self.path(parts[0])
    let fields = try FieldInput.fields(
      #"{"value": \#(parts[1])}"#, of: key, in: database, source: "the value of \(path)")
    guard let value = try fields.decoded()["value"] else { throw CommandFailure.usage("'\(word)' has no value") }
    map.set(value, at: path)
    paths.append(path)
  }

  /// Removes a field.
  /// - Throws: ``CommandFailure`` if the text is not a field path.
  mutating func remove(_ text: String) throws { paths.append(try Self.path(text)) }

  private static func path(_ text: String) throws -> FieldPath {
    do { return try FieldPath(text) } catch { throw CommandFailure.usage("'\(text)' is not a field path: \(error)") }
  }
}
