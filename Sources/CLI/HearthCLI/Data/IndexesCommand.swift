import DocumentModel
import FixtureTree
import WireFormat

extension Command {
  /// Lists the indexes of a running server, or suggests an index file.
  static let indexes = Command(
    name: "indexes", summary: "Lists the indexes of a server, or suggests an index file for the queries it has run.",
    operands: "list | suggest", operandCount: 1...1,
    options: DatabaseChoice.placeOptions + [
      .value("merge", "FILE", "with suggest, the index file to add to (default: the server's indexes)"),
      .flag("json", "with list, print JSON"),
    ],
    details: """
      `list` shows the declared indexes, and the progress of those that are still being built. One index serves both
      directions, so it may be shown with all directions reversed: an index on `city` ascending and `age` descending
      is shown with `city` descending and `age` ascending.

      `suggest` prints a firestore.indexes.json with all indexes that Firestore in production needs for the queries
      that this server has received since it started, including queries that it refused because an index was missing.
      Only the fields that a query compares and orders matter, not the values. The file goes to standard output, and a
      summary to standard error.
      """,
    examples: [
      ("hearth indexes suggest > firestore.indexes.json", "after the app or its tests have used the server"),
      ("hearth indexes suggest --merge firestore.indexes.json", "the same file with the missing indexes added"),
      ("hearth indexes list", "the declared indexes and their state"),
    ],
    run: { arguments in
      switch arguments.operands[0] {
      case "list":
        guard !arguments.has("merge") else { throw CommandFailure.usage("'--merge' works with suggest only") }
        try list(arguments)
      case "suggest":
        guard !arguments.has("json") else {
          throw CommandFailure.usage("'--json' works with list only; suggest always prints JSON")
        }
        try suggest(arguments)
      case let word:
        let hint = NearestMatch.find(word, in: ["list", "suggest"]).map { "; did you mean '\($0)'?" } ?? ""
        throw CommandFailure.usage("'\(word)' must be list or suggest\(hint)")
      }
      return 0
    })

  private static func list(_ arguments: Arguments) throws {
    let body = try ServerClient(ofServerOrDirectory: arguments).indexes()
    if arguments.has("json") { return Terminal.output.write(body) }
    let lines = try JSONText.read(body) { root in
      (root.member("indexes")?.array ?? []).map { index in
        let state = index.member("state")?.text ?? ""
        let progress = state == "building" ? ", \(index.member("documents")?.integer ?? 0) documents so far" : ""
        return TerminalText.line("\(index.member("index")?.text ?? ""): \(state)\(progress)") + "\n"
      }
    }
    Terminal.output.write(lines.isEmpty ? "no indexes except those on single fields\n" : lines.joined())
  }

  private static func suggest(_ arguments: Arguments) throws {
    let base = try arguments.value("merge").map { IndexFile.text(of: try IndexFile.read(file: $0)) }
    let client = try ServerClient(ofServerOrDirectory: arguments)
    let suggestion = try client.suggestIndexes(adding: base ?? [])
    Terminal.output.write(suggestion.file)
    let queries = suggestion.queries == 1 ? "1 kind of query" : "\(suggestion.queries) kinds of queries"
    let added = suggestion.added == 1 ? "1 index" : "\(suggestion.added) indexes"
    var text = "hearth: \(queries) seen, \(added) added\n"
    if !suggestion.isComplete {
      text +=
        "hearth: the file is incomplete: the server received more kinds of queries than it remembers or than one "
        + "file can serve; run fewer at a time\n"
    }
    Terminal.error.write(text)
  }
}
