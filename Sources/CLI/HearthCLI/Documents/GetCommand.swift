import DocumentModel
import WireFormat

extension Command {
  /// Shows a document, lists a collection, or lists the collections at the root.
  static let get = Command(
    name: "get", summary: "Shows a document, lists a collection, or lists the collections.", operands: "[PATH]",
    operandCount: 0...1,
    options: DatabaseChoice.placeOptions + [
      .value("limit", "N", "the maximum number of documents to list (default: 100)"),
      .flag("json", "print JSON: the API's document, one document per line, or a list of collections"),
    ],
    details: """
      Without a path, it lists the collections at the root of the database. If there is nothing to list, a message on
      standard error says so, except with --json, and the exit code is 0. With --json, the list of collections is a line
      such as `{"collectionIds": ["notes"]}`. If a document does not exist, the exit code is 1.
      """,
    examples: [
      ("hearth get users/ann", "one document"),
      ("hearth get users --limit 20", "a collection, one document per line"),
      ("hearth ls users", "the same, under another name"),
      ("hearth get users --json > users.ndjson", "for programs, and for `hearth import`"),
    ],
    aliases: ["ls", "list"],
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
        let ids = try client.collectionIDs(below: .root)
        if arguments.has("json") {
          Terminal.output.write(list(ids))
          return 0
        }
        for id in ids { Terminal.output.write("\(TerminalText.line(id))\n") }
        if ids.isEmpty { remark("no collections in \(client.database)") }
      } else {
        try list(path, limit: limit, isJSON: arguments.has("json"), client, text)
      }
      return 0
    })

  /// Returns the API's JSON for IDs of collections, in one line.
  private static func list(_ collectionIDs: [String]) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("collectionIds")
    json.beginArray()
    for id in collectionIDs { json.string(id) }
    json.endArray()
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }

  private static func list(
    _ collection: ResourcePath, limit: Int, isJSON: Bool, _ client: ServerClient, _ text: DocumentText
  ) throws {
    var count = 0
    var token: String?
    repeat {
      let page = try client.list(collection, pageSize: min(300, limit - count), pageToken: token)
      let width = min(40, page.documents.map { TextWidth.of(DocumentText.id(of: $0)) }.max() ?? 0)
      var out: [UInt8] = []
      for document in page.documents {
        out += isJSON ? try text.json(document, .compact) : try text.row(document, idWidth: width)
      }
      Terminal.output.write(out)
      count += page.documents.count
      token = page.nextPageToken
    } while token != nil && count < limit
    if token != nil, Terminal.error.isTerminal {
      remark("these are the first \(count); list more with --limit N")
    } else if count == 0, !isJSON {
      remark("no documents in \(TerminalText.line("\(collection)"))")
    }
  }

  /// Prints a remark for people to standard error, so that the output has results only.
  static func remark(_ text: String) { Terminal.error.write("\(Terminal.error.faint(text))\n") }
}
