import FirebaseExport

/// The accounts and files of Firebase exports, which are imported through a server. All of them are read and checked
/// before anything is stored.
struct OtherPartsImport {
  private let accounts: [ExportedAccounts]
  private let files: [ExportedFiles]
  private let sources: ImportSources
  private let isQuiet: Bool

  /// Whether nothing is to be imported.
  var isEmpty: Bool { accounts.isEmpty && files.isEmpty }

  /// Facts about the parts that a user should know.
  var notes: [String] { files.flatMap(\.notes).map(sources.named) }

  /// Reads and checks the accounts and files.
  /// - Throws: ``CommandFailure`` or `FixtureTreeError` if a part is damaged or incomplete.
  init(checking sources: ImportSources, isQuiet: Bool) throws {
    (self.sources, self.isQuiet) = (sources, isQuiet)
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    accounts = try Self.check(.accounts, of: sources) { try sources.accountFiles.map { try ExportedAccounts($0) } }
    files = try Self.check(.files, of: sources) {
      try sources.storageFolders.map { folder in
        try ExportedFiles(folder) { progress.show("\(ByteCount.text(ofFiles: $0.files, $0.bytes)) checked") }
      }
    }
  }

  /// Runs `body`, which checks a part, and adds to its errors what the user can do.
  /// - Throws: ``CommandFailure`` with the error of `body`.
  static func check<R>(_ part: ExportParts, of sources: ImportSources, _ body: () throws -> R) throws -> R {
    do { return try sources.named(body) } catch {
      var failure = CommandFailure(error)
      let rest = sources.parts.subtracting(part)
      failure.message += "\nexport or copy the \(noun(of: part)) again"
      if !rest.isEmpty { failure.message += ", or import the other parts: hearth import --only \(rest.text) …" }
      throw failure
    }
  }

  private static func noun(of part: ExportParts) -> String {
    part == .accounts ? "accounts" : part == .files ? "files" : "documents"
  }

  /// Imports the accounts and files, and adds the outcome to `summary`.
  /// - Throws: ``CommandFailure``, `FixtureTreeError` or `HTTPClientError` if a part cannot be sent.
  func send(to admin: AdminServer, _ summary: inout ExportSummary) throws {
    try sources.named { try sendAll(to: admin, &summary) }
  }

  private func sendAll(to admin: AdminServer, _ summary: inout ExportSummary) throws {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    for part in accounts {
      summary.add(
        try part.send(to: AccountsClient(admin), name: sources.named(part.path)) { done, count in
          progress.show(done, "accounts imported", fraction: count > 0 ? Double(done) / Double(count) : nil)
        })
      progress.clear()
    }
    for part in files {
      let client = FilesClient(admin)
      summary.add(
        try part.send(to: client) { outcome, more in
          progress.show("\(ByteCount.text(ofFiles: outcome.files, outcome.bytes + more)) imported")
        })
    }
  }

  /// Returns an error of a part after documents were stored, with the command that continues.
  /// - Parameter parts: the parts that the command line chose.
  static func failure(_ error: any Error, afterDocumentsOf parts: ExportParts) -> CommandFailure {
    var failure = CommandFailure(error)
    let rest = parts.subtracting(.documents).text
    failure.message += "\nthe documents are imported; to import the rest, run the same command with --only \(rest)"
    return failure
  }
}
