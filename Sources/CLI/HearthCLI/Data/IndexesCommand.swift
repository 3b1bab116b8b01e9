import DocumentModel
import FixtureTree
import WireFormat

extension Command {
  /// Shows the indexes of a running server, or what an index file must declare.
  static let indexes = Command(
    name: "indexes", summary: "Lists indexes, or suggests an index file for the queries that were asked.",
    operands: "list | suggest", operandCount: 1...1,
    options: DatabaseChoice.serverOptions + [
      .value("merge", "FILE", "with suggest: an index file to add to (default: what the server has)"),
      .flag("json", "with list: print JSON"),
    ],
    details: """
      `suggest` prints a firestore.indexes.json with which Firestore in production answers every query this server has
      answered since it started, those that it refused for want of an index included. Values do not matter, only which
      fields are compared and ordered. It prints to standard output; what it added it says on standard error.
      """,
    examples: [
      ("hearth indexes suggest > firestore.indexes.json", "after the app or its tests ran against the server"),
      ("hearth indexes suggest --merge firestore.indexes.json", "the file with what is missing there"),
      ("hearth indexes list", "the declared indexes, and how far those are that are being built"),
    ],
    run: { arguments in
      switch arguments.operands[0] {
      case "list":
        guard !arguments.has("merge") else { throw CommandFailure.usage("'--merge' goes with suggest") }
        try list(arguments)
      case "suggest":
        guard !arguments.has("json") else {
          throw CommandFailure.usage("'--json' goes with list; what suggest prints is JSON already")
        }
        try suggest(arguments)
      case let word:
        let hint = NearestMatch.find(word, in: ["list", "suggest"]).map { "; did you mean '\($0)'?" } ?? ""
        throw CommandFailure.usage("'\(word)' must be list or suggest\(hint)")
      }
      return 0
    })

  private static func list(_ arguments: Arguments) throws {
    let body = try ServerClient(arguments).indexes()
    if arguments.has("json") { return Terminal.output.write(body) }
    let lines = try JSONText.read(body) { root in
      (root.member("indexes")?.array ?? []).map { index in
        let state = index.member("state")?.text ?? ""
        let progress = state == "building" ? ", \(index.member("documents")?.integer ?? 0) documents so far" : ""
        return TerminalText.line("\(index.member("index")?.text ?? ""): \(state)\(progress)") + "\n"
      }
    }
    Terminal.output.write(lines.isEmpty ? "no indexes beyond those of single fields\n" : lines.joined())
  }

  private static func suggest(_ arguments: Arguments) throws {
    let base = try arguments.value("merge").map { IndexFile.text(of: try IndexFile.read(file: $0)) }
    let client = try ServerClient(arguments)
    let suggestion = try client.suggestIndexes(adding: base ?? [])
    Terminal.output.write(suggestion.file)
    let queries = suggestion.queries == 1 ? "1 kind of query" : "\(suggestion.queries) kinds of queries"
    let added = suggestion.added == 1 ? "1 index" : "\(suggestion.added) indexes"
    var text = "hearth: \(queries) seen, \(added) added\n"
    if !suggestion.isComplete {
      text += "hearth: more kinds of queries came than can be remembered or one file can serve; run fewer at a time\n"
    }
    Terminal.error.write(text)
  }
}
