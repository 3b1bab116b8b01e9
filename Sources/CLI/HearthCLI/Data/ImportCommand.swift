import DatabaseService
import DocumentModel
import FixtureTree

extension Command {
  /// Imports documents from files.
  static let `import` = Command(
    name: "import", summary: "Imports documents from files.", operands: "FILE…", operandCount: 1...10_000,
    options: [.value("data", "DIR", "import into a data directory that no server uses")]
      + DatabaseChoice.serverOptions + [
        .value("map-size", "BYTES", "with --data, the maximum size of the database (default: 64G)"),
        ConnectedWork.option,
        .flag("quiet", "show no progress and no summary"),
      ],
    details: """
      The verb reads fixture trees, trees with `__collections__`, and NDJSON with `{"path": …, "fields": …}` or a
      document of the API on each line. Several files are imported one after the other.

      A fixture tree is a JSON object of documents by path, whose `$collections` names the maps that are collections:

          {"$collections": ["users", "users/*/notes"],
           "users": {"ann": {"name": "Ann", "notes": {"n1": {"text": "hello"}}}}}

      With --data, if the database is empty, Hearth builds the new one beside it and swaps it in when complete.
      Otherwise, and with --server, it adds to the existing documents: it checks all files first, then applies them in
      commits of up to 500 documents. An imported document replaces one with the same path. To continue after an
      interruption, run the same command again. With --server, several connections commit at the same time. The server may
      also be Cloud Firestore, https://firestore.googleapis.com: each document costs a write there.

      Standard input can be read only once, so `-` needs --data and an empty database.
      """,
    examples: [
      ("hearth import fixtures/journeys.json", "into the server at http://127.0.0.1:8080"),
      (
        "hearth import all.json --server https://firestore.googleapis.com --project my-app --key my-app.json",
        "into Cloud Firestore"
      ),
      ("hearth import a.json b.json --data ./hearth-data --project demo", "without a server"),
      ("zcat documents.json.gz | hearth import - --data ./new-data", "into an empty database"),
    ],
    run: { arguments in
      try arguments.exclude("data", "server")
      let files = ImportFiles(arguments.operands, database: try DatabaseChoice.database(arguments))
      let isQuiet = arguments.has("quiet")
      let outcome: ImportOutcome
      if let directory = arguments.value("data") {
        let mapBytes = try arguments.bytes("map-size", in: 1 << 20...1 << 46) ?? 64 << 30
        outcome = try DirectoryImport(directory: directory, mapBytes: mapBytes).run(files, isQuiet: isQuiet)
      } else {
        outcome = try send(
          files, to: try ServerClient(arguments), connections: try ConnectedWork.connections(arguments),
          isQuiet: isQuiet)
      }
      if !isQuiet { Terminal.output.write("\(ImportText.summary(outcome))\n") }
      return 0
    })

  private static func send(
    _ files: ImportFiles, to client: ServerClient, connections: Int, isQuiet: Bool
  ) throws -> ImportOutcome {
    if let once = files.unrepeatable {
      throw CommandFailure.data(
        "\(once): an import into a server reads its input twice, to check it first; save the input as a file, and "
          + "import the file")
    }
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    let total = try files.check { progress.show($0, "documents checked") }
    var upload = ServerImport(to: client.place, connections: connections)
    func show(_ count: Int) {
      let text = ServerImport.text(count, of: total, seconds: progress.seconds)
      progress.show(text)
    }
    try files.forEachBatch(documentsMax: ServerImport.documentsMax, bytesMax: ServerImport.bytesMax) { batch in
      try upload.add(batch, show)
    }
    try upload.finish(show)
    return upload.outcome
  }
}

/// The text that reports the outcome of an import.
enum ImportText {
  static func summary(_ outcome: ImportOutcome) -> String {
    let unchanged = outcome.unchanged > 0 ? " (\(outcome.unchanged) unchanged)" : ""
    return "imported \(outcome.documents) \(outcome.documents == 1 ? "document" : "documents")\(unchanged)"
  }
}
