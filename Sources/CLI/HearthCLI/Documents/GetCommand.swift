import DocumentModel
import WireFormat

extension Command {
  /// Shows a document, lists a collection, or lists the collections at the root.
  static let get = Command(
    name: "get", summary: "Shows a document, lists a collection, or lists the collections.", operands: "[PATH]",
    operandCount: 0...1,
    options: DatabaseChoice.placeOptions + [
      .value("limit", "N", "the maximum number of documents to list (default: 100)"),
      .flag("json", "print the API's JSON; for a collection, one document per line"),
    ],
    details: "Without a path, it lists the collections at the root of the database.",
    examples: [
      ("hearth get users/ann", "one document"),
      ("hearth get users --limit 20", "a collection, one document per line"),
      ("hearth get users --json > users.ndjson", "for programs, and for `hearth import`"),
    ],
    run: { arguments in
      let path = try arguments.operands.first.map(DatabaseChoice.path) ?? .root
      let limit = try arguments.integer("limit", in: 1...10_000_000) ?? 100
      let client = try ServerClient(ofServerOrDirectory: arguments)
      let text = DocumentText(database: client.database)
      if let key = DocumentKey(path) {
        guard let document = try client.get(key) else {
          throw CommandFailure.failed("document \(key) does not exist in \(client.database)")
        }
        Terminal.output.write(
          arguments.has("json") ? try text.json(document, .pretty) : try text.page(document))
      } else if path.isRoot {
        let isExact = arguments.has("json")
        for id in try client.collectionIDs(below: .root) {
          Terminal.output.write("\(isExact ? id : TerminalText.line(id))\n")
        }
      } else {
        try list(path, limit: limit, isJSON: arguments.has("json"), client, text)
      }
      return 0
    })

  private static func list(
    _ collection: ResourcePath, limit: Int, isJSON: Bool, _ client: ServerClient, _ text: DocumentText
  ) throws {
    var count = 0
    var token: String?
    repeat {
      let page = try client.list(collection, pageSize: min(300, limit - count), pageToken: token)
      let width = min(40, page.documents.map { DocumentText.id(of: $0).count }.max() ?? 0)
      var out: [UInt8] = []
      for document in page.documents {
        out += isJSON ? try text.json(document, .compact) : try text.row(document, idWidth: width)
      }
      Terminal.output.write(out)
      count += page.documents.count
      token = page.nextPageToken
    } while token != nil && count < limit
    guard Terminal.error.isTerminal else { return }
    if token != nil {
      Terminal.error.write(Terminal.error.faint("these are the first \(count); list more with --limit N\n"))
    } else if count == 0 {
      Terminal.error.write(Terminal.error.faint("no documents in \(TerminalText.line("\(collection)"))\n"))
    }
  }
}
