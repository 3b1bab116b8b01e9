/// The import of accounts and files of Firebase exports through a server.
enum OtherPartsImport {
  /// Imports the accounts and files, and adds the outcome to `summary`.
  /// - Throws: ``CommandFailure``, `FixtureTreeError` or `HTTPClientError` if a part cannot be read or sent.
  static func run(_ sources: ImportSources, to admin: AdminServer, _ summary: inout ExportSummary, isQuiet: Bool) throws
  {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    for file in sources.accountFiles {
      progress.restart()
      let accounts = try ExportedAccounts(file)
      summary.add(
        try accounts.send(to: AccountsClient(admin)) { done, count in
          progress.show(done, "accounts imported", fraction: count > 0 ? Double(done) / Double(count) : nil)
        })
      progress.clear()
    }
    for folder in sources.storageFolders {
      let client = FilesClient(admin)
      summary.add(
        try ExportedFiles(folder).send(to: client) { outcome, more in
          progress.show("\(ByteCount.text(ofFiles: outcome.files, outcome.bytes + more)) imported")
        })
    }
  }
}
