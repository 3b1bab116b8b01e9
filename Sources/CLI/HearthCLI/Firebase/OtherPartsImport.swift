/// The import of accounts and files of Firebase exports through a server.
enum OtherPartsImport {
  /// Imports the accounts and files, and adds the outcome to `summary`.
  /// - Throws: ``CommandFailure``, `FixtureTreeError` or `HTTPClientError` if a part cannot be read or sent.
  static func run(_ sources: ImportSources, to admin: AdminServer, _ summary: inout ExportSummary, isQuiet: Bool) throws
  {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    for file in sources.accountFiles {
      let accounts = try ExportedAccounts(file)
      summary.add(
        try accounts.send(to: AccountsClient(admin)) { done, count in
          progress.show(Progress.share(done, of: count, "accounts imported"))
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

extension Progress {
  /// Returns a text such as `45% · 450000 of 1000000 documents imported`.
  static func share(_ count: Int, of total: Int, _ what: String) -> String {
    let percent = total > 0 ? min(100, count * 100 / total) : 100
    return "\(percent)% · \(count) of \(total) \(what)"
  }
}
