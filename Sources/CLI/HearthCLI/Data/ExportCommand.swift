import DatabaseService
import DocumentModel
import FixtureTree
import Glibc
import WireFormat

extension Command {
  /// Writes documents as a fixture tree.
  static let export = Command(
    name: "export", summary: "Writes documents to a file or standard output.", operands: "[PATH]", operandCount: 0...1,
    options: [.value("data", "DIR", "export from a data directory, even while a server uses it")]
      + DatabaseChoice.serverOptions + [
        .value("output", "FILE", "write to this file, replacing it when the export is complete (default: stdout)"),
        .flag("quiet", "show no progress"),
      ] + ServerExport.options,
    details: """
      The output is a fixture tree: JSON that `hearth import` reads. PATH limits the export to a document or a
      collection and everything below it. Export, import, export yields identical files.

      The export shows all documents as of one moment, if the server can read the past. The official emulator and Cloud
      Firestore can, too: https://firestore.googleapis.com is a valid --server. Cloud Firestore keeps past states for an
      hour, or for seven days with point-in-time recovery if --read-time is a whole minute. Each exported document costs
      a read there. With --read-time none, the export shows each document as of the moment it is read.

      With --server, the documents are copied over several connections to the directory FILE.parts first, and without
      --output to a temporary directory. To continue an interrupted export, run the same command again. The directory is
      removed at the end.
      """,
    examples: [
      ("hearth export > backup.json", "everything, from the server at http://127.0.0.1:8080"),
      ("hearth export users/ann --output ann.json", "one document and everything below it"),
      ("hearth export --data ./hearth-data --project demo", "without a server"),
      (
        "hearth export --server https://firestore.googleapis.com --project my-app --key my-app.json --output all.json",
        "from Cloud Firestore"
      ),
    ],
    run: { arguments in
      try arguments.exclude("data", "server")
      let path = try arguments.operands.first.map(DatabaseChoice.path) ?? .root
      let output = try OutputFile(arguments.value("output"))
      var progress = Progress(isQuiet: arguments.has("quiet") || (output.path == nil && Terminal.output.isTerminal))
      defer { progress.clear() }
      if let directory = arguments.value("data") {
        let id = try DatabaseChoice.database(arguments)
        let store = try DirectoryReader(directory).open(id)
        _ = try ExportDocuments(store, database: id, below: path)
          .run(progress: { progress.show($0, "documents exported") }, output.write)
      } else {
        let isQuiet = arguments.has("quiet")
        let export = try ServerExport(arguments, below: path, output: output.path, isQuiet: isQuiet)
        try export.download { text in progress.show(text) }
        try write(export, to: output)
        try output.finish()
        export.finish()
        return 0
      }
      try output.finish()
      return 0
    })

  private static func write(_ export: ServerExport, to output: OutputFile) throws {
    var writer = try FixtureTreeWriter(database: export.database, patterns: try export.patterns())
    try export.forEach { key, fields in
      try writer.write(key, fields)
      if writer.output.count >= 256 << 10 { try output.write(writer.takeOutput()) }
    }
    try writer.finish()
    try output.write(writer.takeOutput())
  }
}

/// The output of an export: standard output, or a file that gets its name when it is complete and on disk.
final class OutputFile {
  /// The file's name; `nil` for standard output.
  let path: String?
  private let unfinished: String
  private let descriptor: Int32
  private var isFinished = false

  init(_ path: String?) throws {
    self.path = path
    unfinished = "\(path ?? "").\(getpid()).part"
    descriptor = path == nil ? STDOUT_FILENO : open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("cannot be written") }
  }

  deinit {
    guard path != nil, descriptor >= 0 else { return }
    close(descriptor)
    if !isFinished { unlink(unfinished) }
  }

  /// Appends bytes.
  /// - Throws: ``CommandFailure`` if the file cannot be written.
  func write(_ bytes: [UInt8]) throws {
    guard path != nil else { return Terminal.output.write(bytes) }
    do throws(Terminal.WriteFailure) {
      try Terminal(descriptor: descriptor).writeAll(bytes)
    } catch {
      errno = error.code
      throw failure("cannot be written")
    }
  }

  /// Syncs the file and gives it its name.
  /// - Throws: ``CommandFailure`` if that fails.
  func finish() throws {
    guard let path else { return }
    guard fsync(descriptor) == 0, rename(unfinished, path) == 0 else { throw failure("cannot be finished") }
    isFinished = true
  }

  private func failure(_ what: String) -> CommandFailure {
    .failed("\(path ?? "standard output") \(what): \(String(cString: strerror(errno)))")
  }
}
