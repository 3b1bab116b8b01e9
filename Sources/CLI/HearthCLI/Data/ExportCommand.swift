import DatabaseService
import DocumentModel
import FirebaseExport
import FixtureTree
import HearthServer
import LogEngine
import WireFormat

extension Command {
  /// Writes documents to a file or standard output, or a project as a Firebase export.
  static let export = Command(
    name: "export", summary: "Writes documents to a file, or a project as a Firebase export.",
    operands: "[PATH | DIR]", operandCount: 0...1,
    options: [.value("data", "DIR", "export from a data directory, even while a server uses it")]
      + DatabaseChoice.serverOptions + [
        .value("output", "FILE", "write to this file, replacing it when the export is complete (default: stdout)")
      ] + ExportChoice.options + [
        ExportParts.option,
        .flag("force", "with --format firebase, replace an earlier export in DIR"),
        .flag("quiet", "show no progress"),
      ] + ServerExport.options,
    details: """
      PATH limits the export to a document or a collection and everything below it. `hearth import` reads all formats:

      - `tree`: a fixture tree, one JSON object. Export, import, export yields identical files.
      - `ndjson`: one line `{"path": …, "fields": …}` per document.
      - `csv`: the documents of the collection PATH, without their subcollections. The column `__id__` has the IDs. A
        header such as `age:int` names the type of a column, and columns of several types, maps and arrays are JSON.
      - `firebase`: the folder DIR, in the form of `firebase emulators:export`, with the documents, the accounts with
        their password hashes, and the files. The Emulator Suite reads it too.

      The export shows all documents as of one moment, if the server can read the past. The official emulator and Cloud
      Firestore can, too: https://firestore.googleapis.com is a valid --server. Cloud Firestore keeps past states for an
      hour, or for seven days with point-in-time recovery if --read-time is a whole minute. Each exported document costs
      a read there. With --read-time none, the export shows each document as of the moment it is read.

      FILE can be a device or a named pipe, which the export then writes. If FILE is a symbolic link, the export replaces
      its target.

      With --server, the documents are copied over several connections to the directory FILE.parts first, and without
      --output to a temporary directory. To continue an interrupted export, run the same command again. The directory is
      removed at the end.
      """,
    examples: [
      ("hearth export > backup.json", "everything, from the server at http://127.0.0.1:8080"),
      ("hearth export users/ann --output ann.json", "one document and everything below it"),
      ("hearth export --data ./hearth-data --project demo", "without a server"),
      ("hearth export --output backup.ndjson.gz", "one document per line, compressed"),
      ("hearth export users --format csv --output users.csv", "one collection, for a spreadsheet"),
      ("hearth export --format firebase ./export --data ./hearth-data --project my-app", "for the Emulator Suite"),
      (
        "hearth export --server https://firestore.googleapis.com --project my-app --key my-app.json --output all.json",
        "from Cloud Firestore"
      ),
    ],
    run: { arguments in
      for name in ["server", "read-time", "connections"] { try arguments.exclude("data", name) }
      return arguments.value("format") == "firebase" ? try exportFolder(arguments) : try exportFile(arguments)
    })

  private static func exportFile(_ arguments: Arguments) throws -> Int32 {
    for name in ["only", "force"] where arguments.has(name) {
      throw arguments.refusal(of: [name], "needs --format firebase")
    }
    let path = try arguments.operands.first.map(DatabaseChoice.path) ?? .root
    let format = try ExportChoice.format(arguments)
    if format == .csv, !path.isCollection {
      throw CommandFailure.usage("a CSV file has the documents of one collection; give its path, such as users")
    }
    let isQuiet = arguments.has("quiet")
    let output = try OutputFile(arguments.value("output"), compression: try ExportChoice.compression(arguments))
    var progress = Progress(isQuiet: isQuiet || (output.path == nil && Terminal.output.isTerminal))
    defer { progress.clear() }
    let outcome: (count: Int, skipped: Int)
    var download: ServerExport?
    if let directory = arguments.value("data") {
      let id = try DatabaseChoice.database(arguments)
      let store = try DirectoryReader(directory).open(id)
      let documents = ExportDocuments(store, database: id, below: path)
      // Counting costs time, so it is only for a person.
      let total = progress.isShown ? try documents.documentCount() : nil
      outcome = try documents.run(
        as: format, progress: { progress.show($0, "documents exported", fraction: fraction($0, of: total)) },
        output.write)
    } else {
      let export = try ServerExport(arguments, below: path, output: output.path, isQuiet: isQuiet)
      try export.download { text in progress.show(text) }
      outcome = try write(export, as: format, below: path, to: output)
      download = export
    }
    guard outcome.count > 0 || path.isRoot else {
      download?.finish()
      throw CommandFailure.failed("no documents at or below \(path); `hearth get` lists the collections")
    }
    try output.finish()
    download?.finish()
    progress.clear()
    if outcome.count == 0, !isQuiet { remark("no documents in \(try DatabaseChoice.database(arguments))") }
    if outcome.skipped > 0, !isQuiet {
      Terminal.error.write(
        "hearth export: \(CountText.of(outcome.skipped, "document")) below those of \(path) "
          + "\(CountText.noun(outcome.skipped, "is", "are")) not in the CSV file; export each collection, "
          + "or use --format ndjson\n")
    }
    return 0
  }

  /// Returns the part of the work that is done, or `nil` if the total is not known.
  private static func fraction(_ count: Int, of total: Int?) -> Double? {
    total.map { $0 > 0 ? min(1, Double(count) / Double($0)) : 1 }
  }

  private static func write(
    _ export: ServerExport, as format: DocumentFileWriter.Format, below path: ResourcePath, to output: OutputFile
  ) throws -> (count: Int, skipped: Int) {
    var writer = try DocumentFileWriter(
      format, database: export.database, below: path, patterns: format == .tree ? try export.patterns() : [])
    try export.forEach { try writer.add($0, $1, output.write) }
    if writer.count > 0 || path.isRoot { try writer.finish(output.write) }
    return (writer.count, writer.skipped)
  }

  private static func exportFolder(_ arguments: Arguments) throws -> Int32 {
    guard let folder = arguments.operands.first, !arguments.has("output"), !arguments.has("compress") else {
      throw CommandFailure.usage(
        "with --format firebase, name the folder to write as operand, without --output and --compress")
    }
    let id = try DatabaseChoice.database(arguments, in: arguments.value("data"))
    var parts = try ExportParts.chosen(arguments)
    if let directory = arguments.value("data"), parts.contains(.documents) {
      if parts != .documents, try hasOtherPartsOnly(directory, id) {
        parts.remove(.documents)
      } else {
        // The server below would store keys for a misspelled project.
        _ = try DirectoryReader(directory).open(id)
      }
    }
    let export = try FirebaseFolderExport(folder, database: id, replaces: arguments.has("force"))
    let isQuiet = arguments.has("quiet")
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    // An export of documents from a directory needs no server, and the directory may be read-only.
    let admin = parts == .documents && arguments.has("data") ? nil : try AdminServer(arguments)
    defer { admin?.finish() }
    let summary = try export.run(
      parts,
      documents: !parts.contains(.documents)
        ? nil
        : { writer in
          if let directory = arguments.value("data") {
            let documents = ExportDocuments(try DirectoryReader(directory).open(id), database: id)
            let total = progress.isShown ? try documents.documentCount() : nil
            _ = try documents.forEach(
              progress: { progress.show($0, "documents exported", fraction: fraction($0, of: total)) }
            ) { try writer.write($0, $1) }
          } else {
            let documents = try ServerExport(arguments, below: .root, output: folder, isQuiet: isQuiet)
            try documents.download { text in progress.show(text) }
            try documents.forEach { try writer.write($0, $1) }
            documents.finish()
          }
        },
      accounts: parts.contains(.accounts) ? admin.map { AccountsClient($0) } : nil,
      files: parts.contains(.files) ? admin.map { FilesClient($0) } : nil)
    progress.clear()
    if !isQuiet { Terminal.output.write("\(summary.text("exported"))\n") }
    return 0
  }
}

extension Command {
  /// Returns whether a data directory has accounts or files of a project, but no database of it.
  private static func hasOtherPartsOnly(_ directory: String, _ id: DatabaseID) throws -> Bool {
    let databases = try DirectoryReader(directory).databases
    guard !databases.contains(where: { $0.project == id.project }) else { return false }
    return try DataDirectory.accountsProjects(in: directory).contains(id.project)
      || DataDirectory.filesOwners(in: directory).contains(id.project)
  }
}
