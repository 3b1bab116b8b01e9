import Files

/// The hourly work on files that the nodes of a cluster share.
struct SharedFilesMaintenance {
  private let store: FileStore
  private let configuration: HearthConfiguration

  /// Returns `nil` if the content of files is only in the data directory.
  init?(_ store: FileStore, _ configuration: HearthConfiguration) {
    guard configuration.sharedFiles != nil else { return nil }
    (self.store, self.configuration) = (store, configuration)
  }

  /// Shares what is only on this node, removes what no object needs, and trims the cache. It blocks.
  func run() {
    attempt("share files of this node") { () throws(FilesError) in
      let shared = try store.shareStored()
      if shared.refused > 0 {
        configuration.log(
          .warn, "files.shared",
          "\(shared.refused) files are only on this node, because they are too large for the shared files")
      }
    }
    attempt("remove unreferenced shared files") { () throws(FilesError) in _ = try store.sweepShared() }
    attempt("remove unfinished shared files") { () throws(FilesError) in try store.removeSharedLeftovers() }
    store.trimCache()
  }

  private func attempt(_ task: String, _ body: () throws(FilesError) -> Void) {
    do throws(FilesError) { try body() } catch {
      configuration.log(.warn, "files.shared", "could not \(task): \(error)")
    }
  }
}
