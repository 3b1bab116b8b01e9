import DatabaseService
import DocumentModel
import FirebaseExport
import FixtureTree
import Glibc
import WireFormat

extension Command {
  /// Writes documents as a fixture tree, or a project as a Firebase export.
  static let export = Command(
    name: "export", summary: "Writes documents to a file, or a project as a Firebase export.",
    operands: "[PATH | DIR]", operandCount: 0...1,
    options: [.value("data", "DIR", "export from a data directory, even while a server uses it")]
      + DatabaseChoice.serverOptions + [
        .value("format", "FORMAT", "tree or firebase (default: tree)"),
        .value("output", "FILE", "write to this file, replacing it when the export is complete (default: stdout)"),
        ExportParts.option,
        .flag("force", "with --format firebase, replace an earlier export in DIR"),
        .flag("quiet", "show no progress"),
      ],
    details: """
      The output is a fixture tree: JSON that `hearth import` reads. PATH limits the export to a document or a
      collection and everything below it. Export, import, export yields identical files.

      With --format firebase, the output is the folder DIR, in the form of `firebase emulators:export`: the documents,
      accounts with their password hashes, and files. The emulators and `hearth import` read it.

      With --data, the export shows all documents as of one moment. With --server, it shows each document as of the
      moment it is read.
      """,
    examples: [
      ("hearth export > backup.json", "everything, from the server at http://127.0.0.1:8080"),
      ("hearth export users/ann --output ann.json", "one document and everything below it"),
      ("hearth export --data ./hearth-data --project demo", "without a server"),
      ("hearth export --format firebase ./export --data ./hearth-data --project my-app", "for the Emulator Suite"),
    ],
    run: { arguments in
      try arguments.exclude("data", "server")
      switch arguments.value("format") ?? "tree" {
      case "tree": return try exportTree(arguments)
      case "firebase": return try exportFolder(arguments)
      case let other: throw arguments.refusal(of: "format", other, "must be tree or firebase")
      }
    })

  private static func exportTree(_ arguments: Arguments) throws -> Int32 {
    for name in ["only", "force"] where arguments.has(name) {
      throw arguments.refusal(of: [name], "needs --format firebase")
    }
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
      try receive(path, try ServerClient(arguments), output) { progress.show($0, "documents exported") }
    }
    try output.finish()
    return 0
  }

  private static func exportFolder(_ arguments: Arguments) throws -> Int32 {
    guard let folder = arguments.operands.first, !arguments.has("output") else {
      throw CommandFailure.usage("with --format firebase, name the folder to write as operand, without --output")
    }
    let id = try DatabaseChoice.database(arguments)
    let parts = try ExportParts.chosen(arguments)
    let export = try FirebaseFolderExport(folder, database: id, replaces: arguments.has("force"))
    var progress = Progress(isQuiet: arguments.has("quiet"))
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
            _ = try ExportDocuments(try DirectoryReader(directory).open(id), database: id)
              .forEach(progress: { progress.show($0, "documents exported") }) { try writer.write($0, $1) }
          } else {
            try ServerDocumentIterator(try ServerClient(arguments)).forEach(below: .root, withFields: true) {
              try writer.write($0.key, $0.fields)
              progress.show(writer.documents, "documents exported")
            }
          }
        },
      accounts: parts.contains(.accounts) ? admin.map { AccountsClient($0) } : nil,
      files: parts.contains(.files) ? try admin.map { try FilesClient($0) } : nil)
    progress.clear()
    if !arguments.has("quiet") { Terminal.output.write("\(summary.text("exported"))\n") }
    return 0
  }

  private static func receive(
    _ path: ResourcePath, _ client: ServerClient, _ output: OutputFile, _ progress: (Int) -> Void
  ) throws {
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
    try documents.forEachCollection(below: path, note)
    var writer = try FixtureTreeWriter(
      database: client.database, patterns: CollectionShape.patterns(of: collections.values))
    var count = 0
    try documents.forEach(below: path, withFields: true) { document in
      let pattern = Array(CollectionShape.pattern(of: document.key.collection).utf8)
      guard collections[pattern] != nil else {
        throw CommandFailure.failed("\(document.key.collection) appeared during the export; run it again")
      }
      try writer.write(document.key, document.fields)
      count += 1
      progress(count)
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
