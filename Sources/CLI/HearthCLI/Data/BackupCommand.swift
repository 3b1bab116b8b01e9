import DocumentModel
import DocumentStore
import Files
import FixtureTree
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

extension Command {
  /// Copies a data directory that a server may be using.
  static let backup = Command(
    name: "backup", summary: "Copies a data directory, even while a server uses it.", operands: "DEST",
    operandCount: 1...1,
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .value("earlier", "DIR", "an earlier backup; file content that it contains is linked instead of copied"),
      .flag("quiet", "show no progress and no summary"),
    ],
    details: """
      Each database, and the accounts with their keys, is copied as of one moment. The files are copied afterwards,
      also as of one moment, so every file that a document refers to is in the copy.

      The content of files is verified while it is copied. If some is damaged, DEST contains everything that could be
      read, and the exit code is 1.

      DEST must be an empty directory or not exist. It appears when the copy is complete and on disk. Start a server
      on the copy with `hearth serve --data DEST`.
      """,
    examples: [
      ("hearth backup /backups/monday --data ./hearth-data", "a full copy"),
      ("hearth backup /backups/tuesday --earlier /backups/monday --data ./hearth-data", "copies only new files"),
    ],
    run: { arguments in
      let source = try DirectoryReader(arguments.value("data") ?? "./hearth-data")
      var progress = Progress(isQuiet: arguments.has("quiet"))
      defer { progress.clear() }
      let backup = Backup(source, earlier: try arguments.value("earlier").map(DirectoryReader.init))
      let (destination, files) = try backup.run(to: arguments.operands[0]) { progress.show($0) }
      progress.clear()
      if !arguments.has("quiet") {
        let more = files.map { ", \(ByteCount.text(ofFiles: $0.objects, $0.bytes))" } ?? ""
        let count = source.databases.count
        Terminal.output.write("copied \(CountText.of(count, "database"))\(more) to \(destination)\n")
      }
      guard let files, files.problemCount > 0 else { return 0 }
      for problem in files.problems { Terminal.error.write("hearth: \(TerminalText.line(problem))\n") }
      throw CommandFailure.failed(
        "damaged contents of files: \(files.problemCount); everything else was copied. "
          + "Run `hearth check \(destination)` to list the files")
    })
}

/// Makes a consistent copy of every database, of the accounts and of the files of a data directory.
struct Backup {
  private let source: DirectoryReader
  private let earlier: DirectoryReader?
  private let linksContent: Bool

  /// Prepares a copy of `source`. File content that `earlier`, a previous backup, contains is linked instead of copied.
  /// With `linksContent`, all of it is linked with that of `source`, for a temporary copy on the same file system.
  init(_ source: DirectoryReader, earlier: DirectoryReader? = nil, linksContent: Bool = false) {
    self.source = source
    self.earlier = earlier
    self.linksContent = linksContent
  }

  /// Copies to a directory that does not exist or is empty. Returns its path, and the outcome for files if the source
  /// has any. `progress` receives texts that describe the progress.
  /// - Throws: ``CommandFailure``, `StorageError` or `FilesError` if the copy fails; the unfinished copy is removed.
  func run(to path: String, progress: (String) -> Void) throws -> (path: String, files: FilesBackup?) {
    let target = LocalPath.withoutLastSlashes(path)
    guard try isFree(target) else {
      throw CommandFailure.failed("\(target) is not empty; name a directory that does not exist")
    }
    let output = UnfinishedOutput(of: target)
    let unfinished = output.path
    let files: FilesBackup?
    do {
      files = try copy(to: output, progress: progress)
      // The rename also replaces an empty directory, but nothing else.
      guard rename(unfinished, target) == 0 else {
        throw StorageError.system(operation: "rename", path: target, code: errno)
      }
    } catch {
      FolderEntries.removeAll(unfinished)
      throw error
    }
    try LocalPath.sync(folder: LocalPath.folder(of: target))
    return (target, files)
  }

  /// Copies to a directory that keeps its unfinished name.
  /// - Throws: ``CommandFailure``, `StorageError` or `FilesError` if the copy fails; the caller removes it.
  func copy(to output: UnfinishedOutput, progress: (String) -> Void) throws -> FilesBackup? {
    let directory = output.path
    let destination = try DataDirectory(directory)
    output.lock()
    for id in source.databases {
      let file = try destination.makeFile(of: id)
      try copy(try source.open(id), to: file, "\(id)", progress)
      // Assign a new incarnation, so that ETags and resume tokens of the original do not match the copy.
      try DocumentDatabase.renewIncarnation(LMDBStore.open(LMDBOptions(path: file)))
      unlink("\(file)-lock")
      try LocalPath.sync(folder: "\(directory)/databases/\(id.project)/\(id.database)")
      try LocalPath.sync(folder: "\(directory)/databases/\(id.project)")
    }
    if !source.databases.isEmpty { try LocalPath.sync(folder: "\(directory)/databases") }
    for project in DataDirectory.accountsProjects(in: source.path) {
      let file = try destination.makeAccountsFile(of: project)
      let options = LMDBOptions(path: DataDirectory.accountsFile(of: project, in: source.path), readOnly: true)
      try LMDBStore.open(options).copy(toFile: file)
      try LocalPath.sync(folder: "\(directory)/accounts/\(project)")
      try LocalPath.sync(folder: "\(directory)/accounts")
    }
    var files: FilesBackup?
    for owner in try DataDirectory.filesOwners(in: source.path) {
      guard let copied = try copyFiles(of: owner, to: destination, progress: progress) else { continue }
      files = files?.adding(copied) ?? copied
    }
    unlink("\(directory)/\(DataDirectoryLock.fileName)")
    try LocalPath.sync(folder: directory)
    return files
  }

  /// Copies a database and reports the bytes that were written. The copy has no free pages, so it is about as long as
  /// the pages in use.
  private func copy(_ store: LMDBStore, to file: String, _ name: String, _ progress: (String) -> Void) throws {
    let total = try store.statistics().usedBytes
    let started = Progress.now()
    func show() {
      var status = stat()
      let bytes = stat(file, &status) == 0 ? Int(status.st_size) : 0
      let passed = Int(Progress.now() - started)
      progress("\(name): \(ProgressText.bytes(bytes, of: total, "copied", milliseconds: passed))")
    }
    show()
    try ConnectedWork.run(1, connections: 1, connect: {}, show: { _ in show() }) { _, _, _, _ in
      try store.copy(toFile: file)
    }
  }

  private func copyFiles(
    of owner: String?, to directory: DataDirectory, progress: (String) -> Void
  ) throws -> FilesBackup? {
    guard let (metadata, contents, lock) = try source.openFiles(of: owner) else { return nil }
    let folder = try directory.makeFilesFolder(of: owner)
    let destination = try ContentDirectory(folder)
    let file = DataDirectory.filesFile(of: owner, in: directory.path)
    let earlier = try earlier?.openFiles(of: owner)
    let started = Progress.now()
    let files = try withExtendedLifetime((lock, earlier?.lock)) {
      try metadata.copy(toFile: file)
      return try FilesBackup(
        of: LMDBStore.open(LMDBOptions(path: file)), from: contents, to: destination,
        earlier: linksContent ? contents : earlier?.contents
      ) {
        let passed = Int(Progress.now() - started)
        progress(ProgressText.bytes($0, of: nil, "of files copied", milliseconds: passed))
      }
    }
    unlink("\(file)-lock")
    try LocalPath.sync(folder: "\(folder)/content")
    try LocalPath.sync(folder: folder)
    if owner != nil { try LocalPath.sync(folder: LocalPath.folder(of: folder)) }
    return files
  }

  private func isFree(_ path: String) throws -> Bool {
    guard let stream = opendir(path) else {
      if errno == ENOENT { return true }
      throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))")
    }
    defer { closedir(stream) }
    var count = 0
    while readdir(stream) != nil { count += 1 }
    return count <= 2
  }
}
