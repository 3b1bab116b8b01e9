import DatabaseService
import DocumentModel
import FirebaseExport
import FixtureTree
import LMDBEngine

extension Command {
  /// Imports documents from files, and all parts of Firebase exports.
  static let `import` = Command(
    name: "import", summary: "Imports documents from files, and Firebase exports.", operands: "(FILE | DIR)…",
    operandCount: 1...10_000,
    options: [.value("data", "DIR", "import into a data directory, even while a server uses it")]
      + DatabaseChoice.serverOptions + ReadChoice.options + [
        ExportParts.option,
        .value("map-size", "BYTES", "with --data, the maximum size of the database (default: 64G)"),
        ConnectedWork.option,
        .flag("quiet", "show no progress and no summary"),
      ],
    details: """
      The verb reads Firebase exports, and these formats, also compressed with gzip or zstd:

      - Fixture trees: JSON objects of documents by path, whose `$collections` names the maps that are collections.
      - Trees with `__collections__`, as export tools write them.
      - NDJSON with `{"path": …, "fields": …}` or a document of the API on each line.
      - Arrays of objects, and NDJSON without paths, with --collection: each object becomes a document. In an object
        such as `{"users": [{…}]}` each key is a collection.
      - CSV with a header row, with --collection. A header such as `age:int` names the type of a column: string, int,
        double, number, bool, timestamp, bytes, ref, geo or json. An empty cell is a missing field. If the header has no
        comma, but semicolons, tabs or vertical bars, these separate the cells; the first row decides between several.

      A Firebase export is a folder that `firebase emulators:export` or `gcloud firestore export` wrote, also inside a
      .zip, .tar, .tar.gz or .tar.zst, or one of its parts: a file .overall_export_metadata, .export_metadata or output-N.
      Accounts and files of the export are imported too. The whole export is checked before anything is stored, the
      content of files by its checksum. References to the exported database are rewritten to the one
      that receives the documents; other references are kept and counted.

      A fixture tree looks like this:

          {"$collections": ["users", "users/*/notes"],
           "users": {"ann": {"name": "Ann", "notes": {"n1": {"text": "hello"}}}}}

      Objects and rows without paths get their IDs from the member `__id__`, `_id` or `id`: the first of these that the
      first object has, and then every object must have it. If the first object has none, the IDs are random. The member
      is stored as a field too, except `__id__`.

      In objects without paths, maps such as `{"_seconds": 1, "_nanoseconds": 0}` are values of Firebase's SDKs that a
      program printed with `JSON.stringify`, and are imported as such. In other formats they stay maps. --sdk-values
      changes that.

      With --data, if no server uses the directory and the database is empty, Hearth builds the new one beside it and
      swaps it in when complete. Otherwise, and with --server, it adds to the existing documents: it checks all files
      first, then applies them in commits of up to 500 documents. An imported document replaces one with the same path.
      To continue after an interruption, run the same command again. Through a server, several connections commit at the
      same time. The server may also be Cloud Firestore, https://firestore.googleapis.com: each document costs a write
      there.

      `-` is standard input. Input that must be read twice is copied to a temporary file in TMPDIR or /tmp.
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
      ("hearth import users.json --collection users --id email", "an array of objects, or one object per line"),
      ("hearth import users.csv.gz --collection users --types infer", "a compressed table"),
      ("mongoexport -c users | hearth import - --collection users --generate-ids", "from another program"),
    ],
    run: { arguments in
      try arguments.exclude("data", "server")
      try arguments.exclude("data", "connections")
      if arguments.has("map-size"), !arguments.has("data") {
        throw arguments.refusal(of: ["map-size"], "needs --data: a server has its own limit")
      }
      let isQuiet = arguments.has("quiet")
      let options = try ReadChoice.read(arguments)
      // While a server uses the directory, only that server can write to it.
      let served = arguments.value("data").flatMap { DataDirectoryLock.holder(ofDirectory: $0) == nil ? nil : $0 }
      let parts = try ExportParts.chosen(arguments)
      let sources = try ImportSources(
        arguments.operands, database: try DatabaseChoice.database(arguments, in: served), parts: parts, options: options
      )
      try checkOptions(arguments, sources)
      let others = try OtherPartsImport(checking: sources, isQuiet: isQuiet)
      var summary = ExportSummary()
      if !sources.documents.isEmpty {
        summary.documents = try sources.checkingDocuments {
          let files = options.infersTypes ? try sources.documents.repeatable() : sources.documents
          if let directory = arguments.value("data"), served == nil {
            let mapBytes = try arguments.bytes("map-size", in: 1 << 20...1 << 46) ?? 64 << 30
            return try DirectoryImport(directory: directory, mapBytes: mapBytes).run(files, isQuiet: isQuiet)
          }
          return try send(
            files, to: try ServerClient(ofServerOrDirectory: arguments),
            connections: try ConnectedWork.connections(arguments),
            isQuiet: isQuiet)
        }
      }
      if !others.isEmpty {
        do {
          let admin = try AdminServer(arguments)
          defer { admin.finish() }
          try others.send(to: admin, &summary)
        } catch {
          throw summary.documents == nil ? error : OtherPartsImport.failure(error, afterDocumentsOf: sources.parts)
        }
      }
      if !isQuiet {
        Terminal.output.write("\(summary.text("imported"))\n")
        for note in summary.notes + sources.notes + others.notes {
          Terminal.error.write("hearth: \(TerminalText.line(note))\n")
        }
      }
      for remark in ReadChoice.remarks(summary.documents?.tally ?? ReadTally(), options, sources.documents.database)
      where !isQuiet || remark.hasPrefix("warning") {
        Terminal.error.write("hearth import: \(remark)\n")
      }
      return summary.hasFailures ? ExitCode.data : 0
    })

  /// Refuses options that do not apply to any operand.
  private static func checkOptions(_ arguments: Arguments, _ sources: ImportSources) throws {
    if arguments.has("only"), let file = sources.plainFiles.first {
      throw arguments.refusal(
        of: ["only"], "chooses parts of Firebase exports, but \(file) is not an export; leave the option out")
    }
    guard sources.plainFiles.isEmpty else { return }
    for name in ReadChoice.options.map(\.name) where arguments.has(name) {
      throw arguments.refusal(of: [name], "does not apply to Firebase exports; leave the option out")
    }
  }

  private static func send(
    _ files: ImportFiles, to client: ServerClient, connections: Int, isQuiet: Bool
  ) throws -> ImportOutcome {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    // The files are read twice: everything is checked before anything is sent.
    let files = try files.repeatable { progress.show("\(ByteCount.text($0)) of the input read") }
    let total = try files.check { progress.show($0, "documents checked", fraction: files.fraction(after: $0)) }
    progress.restart()
    func show(_ count: Int) {
      progress.show(count, "documents imported", fraction: total > 0 ? Double(count) / Double(total) : nil)
    }
    var upload = ServerImport(to: client.place, connections: connections)
    let tally = try files.forEachBatch(
      documentsMax: ServerImport.documentsMax, bytesMax: ServerImport.bytesMax
    ) { batch in
      try upload.add(batch, show)
    }
    try upload.finish(show)
    var outcome = upload.outcome
    outcome.tally = tally
    return outcome
  }
}
