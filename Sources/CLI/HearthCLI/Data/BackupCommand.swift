import DocumentModel
import DocumentStore
import Files
import FixtureTree
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine

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
      let earlier = try arguments.value("earlier").map { try DirectoryReader($0) }
      let backup = Backup(source) { owner in try earlier?.openFiles(of: owner).map { ($0.contents, $0.lock) } }
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
  /// A copy of a data directory, and its outcome.
  struct Copy {
    /// The outcome for files if the source has any.
    var files: FilesBackup?
    var state = BackupState()
    /// The reasons why stores were copied as a whole although a parent was given.
    var notes: [String] = []
    /// The positions in the commit logs that the copy shows, by the paths of the databases' files.
    var logOrigins: [String: LogOrigin] = [:]
  }

  /// Returns a directory with earlier content of the files of an owner, which is linked instead of copied, and a lock
  /// that keeps the content.
  typealias EarlierContents = (_ owner: String?) throws -> (ContentDirectory, ContentLock)?

  private let source: DirectoryReader
  private let earlier: EarlierContents
  private let linksContent: Bool
  private let parent: BackupParent?

  /// Prepares a copy of `source`.
  ///
  /// With `linksContent`, all content of files is linked with that of `source`, for a temporary copy on the same file
  /// system. With a parent, the copy contains only what changed since; linked content is then not read.
  init(
    _ source: DirectoryReader, linksContent: Bool = false, since parent: BackupParent? = nil,
    earlier: @escaping EarlierContents = { _ in nil }
  ) {
    self.source = source
    self.earlier = earlier
    self.linksContent = linksContent
    self.parent = parent
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
      files = try copy(to: output, progress: progress).files
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
  func copy(to output: UnfinishedOutput, progress: (String) -> Void) throws -> Copy {
    let directory = output.path
    let destination = try DataDirectory(directory)
    output.lock()
    var copy = Copy()
    for id in source.databases {
      let file = try destination.makeFile(of: id)
      try add(id, as: file, to: &copy, progress)
      try LocalPath.sync(folder: "\(directory)/databases/\(id.project)/\(id.database)")
      try LocalPath.sync(folder: "\(directory)/databases/\(id.project)")
    }
    if !source.databases.isEmpty { try LocalPath.sync(folder: "\(directory)/databases") }
    for project in DataDirectory.accountsProjects(in: source.path) {
      let file = try destination.makeAccountsFile(of: project)
      let options = LMDBOptions(path: DataDirectory.accountsFile(of: project, in: source.path), readOnly: true)
      try LMDBStore.open(options).copy(toFile: file)
      _ = try isChanged(file, Self.path(of: file, in: directory), &copy)
      try LocalPath.sync(folder: "\(directory)/accounts/\(project)")
      try LocalPath.sync(folder: "\(directory)/accounts")
    }
    for owner in try DataDirectory.filesOwners(in: source.path) {
      try addFiles(of: owner, to: destination, &copy, progress)
    }
    if copy.state.stores.contains(where: { $0.form != .whole }) { copy.state.parent = parent?.name }
    unlink("\(directory)/\(DataDirectoryLock.fileName)")
    try LocalPath.sync(folder: directory)
    return copy
  }

  private static func path(of file: String, in directory: String) -> String {
    String(file.dropFirst(directory.count + 1))
  }

  /// Adds a store whose file was copied. If the parent has the same file, removes it and returns `false`.
  private func isChanged(_ file: String, _ path: String, _ copy: inout Copy) throws -> Bool {
    let digest = try DigestedFile.digest(of: file)
    let isSame = parent?.state.store(path)?.digest == digest
    if isSame { unlink(file) }
    copy.state.stores.append(BackupState.Store(path: path, form: isSame ? .same : .whole, digest: digest))
    return !isSame
  }

  /// Copies a database, or its changes since the parent.
  private func add(_ id: DatabaseID, as file: String, to copy: inout Copy, _ progress: (String) -> Void) throws {
    let store = try source.open(id)
    var entry = BackupState.Store(path: String(DataDirectory.file(of: id, in: "").dropFirst()), form: .changes)
    if let since = parent?.state.store(entry.path)?.position {
      progress("\(id): looking for changes")
      let file = "\(LocalPath.folder(of: file))/\(FileLocation.lastPart(entry.file))"
      if let note = try writeChanges(of: store, since, to: file, &entry, &copy.logOrigins) {
        unlink(file)
        copy.notes.append("\(id) is in the backup as a whole: \(note)")
      } else {
        return copy.state.stores.append(entry)
      }
    }
    try self.copy(store, to: file, "\(id)", progress)
    let copied = try LMDBStore.open(LMDBOptions(path: file).withRoom())
    copy.logOrigins[entry.path] = try copied.logMark().flatMap { LogOrigin($0.position) }
    let snapshot = try copied.snapshot()
    let position = try DatabasePosition(snapshot)
    snapshot.end()
    copy.state.stores.append(BackupState.Store(path: entry.path, form: .whole, position: position))
    // Assign a new incarnation, so that ETags and resume tokens of the original do not match the copy.
    try DocumentDatabase.renewIncarnation(copied)
    unlink("\(file)-lock")
  }

  /// Writes the changes of a database to a new file. Returns `nil`, or the reason why they are not known.
  private func writeChanges(
    of store: ReadOnlyStore, _ since: DatabasePosition, to file: String, _ entry: inout BackupState.Store,
    _ logOrigins: inout [String: LogOrigin]
  ) throws -> String? {
    let (snapshot, mark) = try store.snapshotAndMark()
    defer { snapshot.end() }
    do {
      switch try ChangedRows.obstacle(snapshot, since: since) {
      case .replaced: return "it was created, cleared or replaced since the last backup"
      case .trimmed: return "its change log does not reach back to the last backup"
      case .reindexed: return "its indexes changed since the last backup"
      case nil: break
      }
      let output = try DigestedFile(file)
      try ChangedRows.write(snapshot, since: since) { try output.write($0) }
      entry.position = try DatabasePosition(snapshot)
      entry.digest = try output.finish()
      logOrigins[entry.path] = mark.flatMap { LogOrigin($0.position) }
      return nil
    } catch StorageError.corruption(let table, let detail) {
      return "\(table) is damaged: \(detail); run `hearth check`"
    }
  }

  /// Copies a database and reports the bytes that were written. The copy has no free pages, so it is about as long as
  /// the pages in use.
  private func copy(_ store: any KeyValueStore, to file: String, _ name: String, _ progress: (String) -> Void) throws {
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

  private func addFiles(
    of owner: String?, to directory: DataDirectory, _ copy: inout Copy, _ progress: (String) -> Void
  ) throws {
    guard let (metadata, contents, lock) = try source.openFiles(of: owner) else { return }
    let folder = try directory.makeFilesFolder(of: owner)
    let destination = try ContentDirectory(folder)
    let file = DataDirectory.filesFile(of: owner, in: directory.path)
    let earlier = linksContent ? (contents, lock) : try earlier(owner)
    let started = Progress.now()
    let files: FilesBackup? = try withExtendedLifetime((lock, earlier?.1)) {
      try metadata.copy(toFile: file)
      guard try isChanged(file, Self.path(of: file, in: directory.path), &copy) else { return nil }
      return try FilesBackup(
        of: LMDBStore.open(LMDBOptions(path: file)), from: contents, to: destination, earlier: earlier?.0,
        verifiesEarlier: parent == nil
      ) {
        let passed = Int(Progress.now() - started)
        progress(ProgressText.bytes($0, of: nil, "of files copied", milliseconds: passed))
      }
    }
    unlink("\(file)-lock")
    try LocalPath.sync(folder: "\(folder)/content")
    try LocalPath.sync(folder: folder)
    if owner != nil { try LocalPath.sync(folder: LocalPath.folder(of: folder)) }
    if let files { copy.files = copy.files?.adding(files) ?? files }
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
