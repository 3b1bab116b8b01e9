import DocumentModel
import FixtureTree
import WireFormat

extension Command {
  /// Creates or replaces a document.
  static let set = Command(
    name: "set", summary: "Creates a document, or replaces all its fields.", operands: "PATH JSON",
    operandCount: 2...2,
    options: DatabaseChoice.placeOptions + [.flag("json", "print the document as the API's JSON")],
    details: FieldInput.details,
    examples: [
      (#"hearth set users/ann '{"name": "Ann", "since": {"$timestamp": "2025-03-27T14:30:00Z"}}'"#, ""),
      ("hearth set users/ann - < ann.json", "the fields from standard input"),
    ],
    run: { arguments in
      let key = try DatabaseChoice.document(arguments.operands[0])
      let client = try ServerClient(ofServerOrDirectory: arguments)
      let fields = try FieldInput.fields(arguments.operands[1], of: key, in: client.database)
      let document = try client.set(key, fields)
      let text = DocumentText(database: client.database)
      Terminal.output.write(arguments.has("json") ? try text.json(document, .pretty) : try text.page(document))
      return 0
    })
}
