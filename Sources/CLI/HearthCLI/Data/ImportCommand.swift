import DatabaseService
import DocumentModel
import FirebaseExport
import FixtureTree

extension Command {
  /// Imports documents from files, and all parts of Firebase exports.
  static let `import` = Command(
    name: "import", summary: "Imports documents from files, and Firebase exports.", operands: "(FILE | DIR)…",
    operandCount: 1...10_000,
    options: [.value("data", "DIR", "import into a data directory; for documents, no server may use it")]
      + DatabaseChoice.serverOptions + [
        ExportParts.option,
        .value("map-size", "BYTES", "with --data, the maximum size of the database (default: 64G)"),
        ConnectedWork.option,
        .flag("quiet", "show no progress and no summary"),
      ],
    details: """
      The verb reads Firebase exports, fixture trees, trees with `__collections__`, and NDJSON with
      `{"path": …, "fields": …}` or a document of the API on each line. Several files are imported one after the other.

      A Firebase export is a folder that `firebase emulators:export` or `gcloud firestore export` wrote, also inside a
      .tar, .tar.gz or .zip, or one of its parts: a file .overall_export_metadata, .export_metadata or output-N.
      Accounts and files of the export are imported too. References to the exported database are rewritten to the one
      that receives the documents; other references are kept and counted.

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
      ("hearth import ./firebase-export --data ./hearth-data --project my-app", "a Firebase export"),
      ("hearth import export.tar.gz --only firestore --data ./hearth-data --project my-app", "only its documents"),
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
      let database = try DatabaseChoice.database(arguments)
      let sources = try ImportSources(arguments.operands, database: database, parts: ExportParts.chosen(arguments))
      let isQuiet = arguments.has("quiet")
      var summary = ExportSummary()
      if !sources.documents.isEmpty {
        if let directory = arguments.value("data") {
          let mapBytes = try arguments.bytes("map-size", in: 1 << 20...1 << 46) ?? 64 << 30
          summary.documents = try DirectoryImport(directory: directory, mapBytes: mapBytes)
            .run(sources.documents, isQuiet: isQuiet)
        } else {
          summary.documents = try send(
            sources.documents, to: try ServerClient(arguments), connections: try ConnectedWork.connections(arguments),
            isQuiet: isQuiet)
        }
      }
      if sources.hasOtherParts {
        let admin = try AdminServer(arguments)
        defer { admin.finish() }
        try OtherPartsImport.run(sources, to: admin, &summary, isQuiet: isQuiet)
      }
      if !isQuiet {
        Terminal.output.write("\(summary.text("imported"))\n")
        for note in summary.notes + sources.notes { Terminal.error.write("hearth: \(TerminalText.line(note))\n") }
      }
      return summary.hasFailures ? ExitCode.data : 0
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
    let total = try files.check { progress.show($0, of: files.expectedCount, "documents checked") }
    var upload = ServerImport(to: client.place, connections: connections)
    try files.forEachBatch(documentsMax: ServerImport.documentsMax, bytesMax: ServerImport.bytesMax) { batch in
      try upload.add(batch) { progress.show(ServerImport.text($0, of: total, seconds: progress.seconds)) }
    }
    try upload.finish { progress.show(ServerImport.text($0, of: total, seconds: progress.seconds)) }
    return upload.outcome
  }
}
