import DatabaseService
import DocumentModel
import FixtureTree

extension Command {
  /// Imports documents from files.
  static let `import` = Command(
    name: "import", summary: "Imports documents from files.", operands: "FILE…", operandCount: 1...10_000,
    options: [.value("data", "DIR", "import into a data directory that no server uses")]
      + DatabaseChoice.serverOptions + ReadChoice.options + [
        .value("map-size", "BYTES", "with --data, the maximum size of the database (default: 64G)"),
        .flag("quiet", "show no progress and no summary"),
      ],
    details: """
      The verb reads these formats, also compressed with gzip or zstd:

      - Fixture trees: JSON objects of documents by path, whose `$collections` names the maps that are collections.
      - Trees with `__collections__`, as export tools write them.
      - NDJSON with `{"path": …, "fields": …}` or a document of the API on each line.
      - Arrays of objects, and NDJSON without paths, with --collection: each object becomes a document. In an object
        such as `{"users": [{…}]}` each key is a collection.
      - CSV with a header row, with --collection. A header such as `age:int` names the type of a column: string, int,
        double, number, bool, timestamp, bytes, ref, geo or json. An empty cell is a missing field.

      A fixture tree looks like this:

          {"$collections": ["users", "users/*/notes"],
           "users": {"ann": {"name": "Ann", "notes": {"n1": {"text": "hello"}}}}}

      Objects and rows without paths get their IDs from the member `__id__`, `_id` or `id`: the first of these that the
      first object has, and then every object must have it. If the first object has none, the IDs are random. The member
      is stored as a field too, except `__id__`.

      In objects without paths, maps such as `{"_seconds": 1, "_nanoseconds": 0}` are values of Firebase's SDKs that a
      program printed with `JSON.stringify`, and are imported as such. In other formats they stay maps. --sdk-values
      changes that.

      With --data, if the database is empty, Hearth builds the new one beside it and swaps it in when complete.
      Otherwise, and with --server, it adds to the existing documents: it checks all files first, then applies them in
      commits of up to 500 documents. An imported document replaces one with the same path. To continue after an
      interruption, run the same command again.

      `-` is standard input. Input that must be read twice is copied to a temporary file in TMPDIR or /tmp.
      """,
    examples: [
      ("hearth import fixtures/journeys.json", "into the server at http://127.0.0.1:8080"),
      ("hearth import a.json b.json --data ./hearth-data --project demo", "without a server"),
      ("hearth import users.json --collection users --id email", "an array of objects, or one object per line"),
      ("hearth import users.csv.gz --collection users --types infer", "a compressed table"),
      ("mongoexport -c users | hearth import - --collection users --generate-ids", "from another program"),
    ],
    run: { arguments in
      try arguments.exclude("data", "server")
      let isQuiet = arguments.has("quiet")
      let options = try ReadChoice.read(arguments)
      var files = ImportFiles(
        arguments.operands, database: try DatabaseChoice.database(arguments), options: options)
      if options.infersTypes { files = try files.repeatable() }
      let outcome: ImportOutcome
      if let directory = arguments.value("data") {
        let mapBytes = try arguments.bytes("map-size", in: 1 << 20...1 << 46) ?? 64 << 30
        outcome = try DirectoryImport(directory: directory, mapBytes: mapBytes).run(files, isQuiet: isQuiet)
      } else {
        outcome = try send(files, to: try ServerClient(arguments), isQuiet: isQuiet)
      }
      if !isQuiet { Terminal.output.write("\(ImportText.summary(outcome))\n") }
      for remark in ReadChoice.remarks(outcome.tally, options, files.database)
      where !isQuiet || remark.hasPrefix("warning") {
        Terminal.error.write("hearth import: \(remark)\n")
      }
      return 0
    })

  private static func send(_ files: ImportFiles, to client: ServerClient, isQuiet: Bool) throws -> ImportOutcome {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    // The files are read twice: everything is checked before anything is sent.
    let files = try files.repeatable { progress.show("\(ByteCount.text($0)) of the input read") }
    _ = try files.check { progress.show($0, "documents checked", fraction: files.fractionRead) }
    progress.restart()
    var outcome = ImportOutcome()
    // JSON is about three times as long as the stored form, and the server accepts requests of up to 10 MiB.
    outcome.tally = try files.forEachBatch(documentsMax: 500, bytesMax: 2 << 20) { batch in
      let changed = try client.commit(batch.documents.map { .set($0.key, $0.fields) })
      outcome.documents += batch.documents.count
      outcome.unchanged += changed.count { !$0 }
      progress.show(outcome.documents, "documents imported", fraction: files.fractionRead)
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
