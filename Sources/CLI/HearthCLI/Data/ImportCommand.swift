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
      interruption, run the same command again.

      Standard input can be read only once, so `-` needs --data and an empty database.
      """,
    examples: [
      ("hearth import fixtures/journeys.json", "into the server at http://127.0.0.1:8080"),
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
        outcome = try send(files, to: try ServerClient(arguments), isQuiet: isQuiet)
      }
      if !isQuiet { Terminal.output.write("\(ImportText.summary(outcome))\n") }
      return 0
    })

  private static func send(_ files: ImportFiles, to client: ServerClient, isQuiet: Bool) throws -> ImportOutcome {
    if let once = files.unrepeatable {
      throw CommandFailure.data(
        "\(once): an import into a server reads its input twice, to check it first; save the input as a file, and "
          + "import the file")
    }
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    _ = try files.check { progress.show($0, "documents checked") }
    var outcome = ImportOutcome()
    // JSON is about three times as long as the stored form, and the server accepts requests of up to 10 MiB.
    try files.forEachBatch(documentsMax: 500, bytesMax: 2 << 20) { batch in
      let changed = try client.commit(batch.documents.map { .set($0.key, $0.fields) })
      outcome.documents += batch.documents.count
      outcome.unchanged += changed.count { !$0 }
      progress.show(outcome.documents, "documents imported")
    }
    return outcome
  }
}

/// The text that reports the outcome of an import.
enum ImportText {
  static func summary(_ outcome: ImportOutcome) -> String {
    let unchanged = outcome.unchanged > 0 ? " (\(outcome.unchanged) unchanged)" : ""
    return "imported \(outcome.documents) \(outcome.documents == 1 ? "document" : "documents")\(unchanged)"
  }
}
