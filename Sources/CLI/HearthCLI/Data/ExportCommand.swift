import Compression
import DatabaseService
import DocumentModel
import FixtureTree
import Glibc
import WireFormat

extension Command {
  /// Writes documents to a file or standard output.
  static let export = Command(
    name: "export", summary: "Writes documents to a file or standard output.", operands: "[PATH]", operandCount: 0...1,
    options: [.value("data", "DIR", "export from a data directory, even while a server uses it")]
      + DatabaseChoice.serverOptions + [
        .value("output", "FILE", "write to this file, replacing it when the export is complete (default: stdout)")
      ] + ExportChoice.options + [.flag("quiet", "show no progress")],
    details: """
      PATH limits the export to a document or a collection and everything below it. `hearth import` reads all formats:

      - `tree`: a fixture tree, one JSON object. Export, import, export yields identical files.
      - `ndjson`: one line `{"path": …, "fields": …}` per document.
      - `csv`: the documents of the collection PATH, without their subcollections. The column `__id__` has the IDs. A
        header such as `age:int` names the type of a column, and columns of several types, maps and arrays are JSON.

      With --data, the export shows all documents as of one moment. With --server, it shows each document as of the
      moment it is read.
      """,
    examples: [
      ("hearth export > backup.json", "everything, from the server at http://127.0.0.1:8080"),
      ("hearth export users/ann --output ann.json", "one document and everything below it"),
      ("hearth export --data ./hearth-data --project demo", "without a server"),
      ("hearth export --output backup.ndjson.gz", "one document per line, compressed"),
      ("hearth export users --format csv --output users.csv", "one collection, for a spreadsheet"),
    ],
    run: { arguments in
      try arguments.exclude("data", "server")
      let path = try arguments.operands.first.map(DatabaseChoice.path) ?? .root
      let format = try ExportChoice.format(arguments)
      if format == .csv, !path.isCollection {
        throw CommandFailure.usage("a CSV file has the documents of one collection; give its path, such as users")
      }
      let output = try OutputFile(arguments.value("output"), compression: try ExportChoice.compression(arguments))
      var progress = Progress(isQuiet: arguments.has("quiet") || (output.path == nil && Terminal.output.isTerminal))
      defer { progress.clear() }
      let outcome: (count: Int, skipped: Int)
      if let directory = arguments.value("data") {
        let id = try DatabaseChoice.database(arguments)
        let store = try DirectoryReader(directory).open(id)
        outcome = try ExportDocuments(store, database: id, below: path)
          .run(as: format, progress: { progress.show($0, "documents exported") }, output.write)
      } else {
        outcome = try receive(path, try ServerClient(arguments), format, output) {
          progress.show($0, "documents exported")
        }
      }
      guard outcome.count > 0 || path.isRoot else {
        throw CommandFailure.failed("no documents at or below \(path); `hearth get` lists the collections")
      }
      try output.finish()
      progress.clear()
      if outcome.skipped > 0, !arguments.has("quiet") {
        let many = outcome.skipped != 1
        Terminal.error.write(
          "hearth export: \(outcome.skipped) \(many ? "documents" : "document") below those of \(path) "
            + "\(many ? "are" : "is") not in the CSV file; export each collection, or use --format ndjson\n")
      }
      return 0
    })

  private static func receive(
    _ path: ResourcePath, _ client: ServerClient, _ format: DocumentFileWriter.Format, _ output: OutputFile,
    _ progress: (Int) -> Void
  ) throws -> (count: Int, skipped: Int) {
    let documents = ServerDocumentIterator(client)
    var collections: [[UInt8]: ResourcePath] = [:]
    func note(_ collection: ResourcePath) {
      var path = collection
      while true {
        collections[Array(CollectionShape.pattern(of: path).utf8)] = path
        guard path.segmentCount > 2 else { return }
        path = path.parent.parent
      }
    }
    if let key = DocumentKey(path) { note(key.collection) }
    if format == .tree { try documents.forEachCollection(below: path, note) }
    var writer = try DocumentFileWriter(
      format, database: client.database, below: path, patterns: CollectionShape.patterns(of: collections.values))
    try documents.forEach(below: path, withFields: true) { document in
      let pattern = Array(CollectionShape.pattern(of: document.key.collection).utf8)
      guard format != .tree || collections[pattern] != nil else {
        throw CommandFailure.failed("\(document.key.collection) appeared during the export; run it again")
      }
      try writer.add(document.key, document.fields, output.write)
      progress(writer.count)
    }
    if writer.count > 0 || path.isRoot { try writer.finish(output.write) }
    return (writer.count, writer.skipped)
  }
}

/// The output of an export: standard output, or a file that gets its name when it is complete and on disk.
final class OutputFile {
  /// The file's name; `nil` for standard output.
  let path: String?
  private let unfinished: String
  private let descriptor: Int32
  private let compressor: Compressor?
  private var isFinished = false

  init(_ path: String?, compression: CompressionFormat? = nil) throws {
    self.path = path
    compressor = try compression.map { try Compressor($0) }
    unfinished = "\(path ?? "").\(getpid()).part"
    descriptor = path == nil ? STDOUT_FILENO : open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("cannot be written") }
  }

  deinit {
    guard path != nil, descriptor >= 0 else { return }
    close(descriptor)
    if !isFinished { unlink(unfinished) }
  }

  /// Appends bytes, compressed if the file is.
  /// - Throws: ``CommandFailure`` if the file cannot be written.
  func write(_ bytes: [UInt8]) throws {
    try append(compressor?.encode(bytes) ?? bytes)
  }

  private func append(_ bytes: [UInt8]) throws {
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
    if let compressor { try append(compressor.encode([], isLast: true)) }
    guard let path else { return }
    guard fsync(descriptor) == 0, rename(unfinished, path) == 0 else { throw failure("cannot be finished") }
    isFinished = true
  }

  private func failure(_ what: String) -> CommandFailure {
    .failed("\(path ?? "standard output") \(what): \(String(cString: strerror(errno)))")
  }
}
