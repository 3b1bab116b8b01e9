import DocumentModel
import FixtureTree
import WireFormat

extension Command {
  /// Creates or replaces a document.
  static let set = Command(
    name: "set", summary: "Creates a document, or replaces all its fields.", operands: "PATH (JSON | FIELD=VALUE …)",
    operandCount: 2...1000,
    options: DatabaseChoice.placeOptions + [.flag("json", "print the document as the API's JSON")],
    details: FieldInput.details,
    examples: [
      ("hearth set users/ann name=Ann age=37", "two fields"),
      (#"hearth set users/ann '{"name": "Ann", "since": {"$timestamp": "2025-03-27T14:30:00Z"}}'"#, ""),
      ("hearth set users/ann - < ann.json", "the fields from standard input"),
    ],
    run: { arguments in
      let key = try DatabaseChoice.document(arguments.operands[0])
      let client = try ServerClient(ofServerOrDirectory: arguments)
      let fields = try FieldChange(arguments.operands.dropFirst(), of: key, in: client.database).fields
      return try show(try client.set(key, fields), of: client.database, arguments)
    })

  /// Creates a document with a new ID.
  static let add = Command(
    name: "add", summary: "Adds a document with a new ID to a collection.",
    operands: "PATH (JSON | FIELD=VALUE …)", operandCount: 2...1000,
    options: DatabaseChoice.placeOptions + [.flag("json", "print the document as the API's JSON")],
    details: "PATH is the path of a collection. " + FieldInput.details,
    examples: [
      ("hearth add users name=Ann age=37", "prints the document with its ID"),
      ("hearth add users - < ann.json", "the fields from standard input"),
    ],
    run: { arguments in
      let path = try DatabaseChoice.path(arguments.operands[0])
      guard path.isCollection, let example = DocumentKey(path.appending("x")) else {
        throw CommandFailure.usage(
          path.isRoot
            ? "give the path of a collection, such as users"
            : "'\(path)' is a document; use `hearth set`, or name a collection such as \(path)/notes")
      }
      let client = try ServerClient(ofServerOrDirectory: arguments)
      let fields: EncodedFields
      do {
        fields = try FieldChange(arguments.operands.dropFirst(), of: example, in: client.database).fields
      } catch var error as FixtureTreeError {
        // The document has no ID yet.
        error.path = path.text
        throw error
      }
      return try show(try client.add(to: path, fields), of: client.database, arguments)
    })

  /// Prints a document that a verb has written.
  static func show(_ document: ServerClient.Found, of database: DatabaseID, _ arguments: Arguments) throws -> Int32 {
    let text = DocumentText(database: database)
    Terminal.output.write(arguments.has("json") ? try text.json(document, .pretty) : try text.page(document))
    return 0
  }
}
