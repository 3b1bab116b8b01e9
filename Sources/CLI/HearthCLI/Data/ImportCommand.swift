import DatabaseService
import DocumentModel
import FixtureTree

extension Command {
  /// Stores the documents of files.
  static let `import` = Command(
    name: "import", summary: "Stores the documents of files.", operands: "FILE…", operandCount: 1...10_000,
    options: [.value("data", "DIR", "into a data directory that no server has open")]
      + DatabaseChoice.serverOptions + [
        .value("map-size", "BYTES", "with --data: the size the database may grow to (default: 64G)"),
        .flag("quiet", "no progress and no summary"),
      ],
    details: """
      Reads fixture trees, trees with __collections__, and NDJSON with {"path": …, "fields": …} or the API's documents
      on each line. `-` is standard input. Several files go in one after the other.

      An empty database is built aside and put in place when it is whole. Where documents are there already, all files
      are checked first and then applied in commits of 500 documents; documents of the same path are replaced. Run the
      same command again to go on after an interruption.
      """,
    examples: [
      ("hearth import fixtures/journeys.json", "into the server at http://127.0.0.1:8080"),
      ("hearth import a.json b.json --data ./hearth-data --project demo", "without a server"),
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
        "\(once): it is checked whole before anything is sent, so it is read twice; save it as a file and import that")
    }
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    _ = try files.check { progress.show($0, "documents checked") }
    var outcome = ImportOutcome()
    // JSON is about three times as long as what is stored, and the server takes requests of 10 MiB.
    try files.forEachBatch(documentsMax: 500, bytesMax: 2 << 20) { batch in
      let changed = try client.commit(batch.documents.map { .set($0.key, $0.fields) })
      outcome.documents += batch.documents.count
      outcome.unchanged += changed.count { !$0 }
      progress.show(outcome.documents, "documents imported")
    }
    return outcome
  }
}

/// How the end of an import reads.
enum ImportText {
  static func summary(_ outcome: ImportOutcome) -> String {
    let unchanged = outcome.unchanged > 0 ? ", \(outcome.unchanged) of them were there already" : ""
    return "imported \(outcome.documents) documents\(unchanged)"
  }
}
