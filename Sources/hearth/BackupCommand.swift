import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValueStore
import LMDBStore

extension Command {
  /// Copies a data directory while a server may write to it.
  static let backup = Command(
    name: "backup", summary: "Copies a data directory, also while a server uses it.", operands: "DEST",
    operandCount: 1...1,
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .flag("quiet", "no progress and no summary"),
    ],
    details: """
      Each database, and the accounts with their keys, is copied as of one moment. DEST must not exist, or be an empty
      directory; it appears when the copy is whole and on disk. Serve the copy with `hearth serve --data DEST`.
      """,
    examples: [("hearth backup /backups/monday --data ./hearth-data", "")],
    run: { arguments in
      let source = try DirectoryReader(arguments.value("data") ?? "./hearth-data")
      let destination = try Backup(source).run(to: arguments.operands[0]) { id in
        if !arguments.has("quiet"), Terminal.error.isTerminal { Terminal.error.write("copying \(id)\n") }
      }
      if !arguments.has("quiet") {
        Terminal.output.write("copied \(source.databases.count) databases to \(destination)\n")
      }
      return 0
    })
}

/// Makes a consistent copy of every database of a data directory, and of its accounts.
struct Backup {
  private let source: DirectoryReader

  init(_ source: DirectoryReader) { self.source = source }

  /// Copies to a directory that does not exist or is empty; returns its path.
  /// - Throws: ``CommandFailure`` or `StorageError`; nothing is left behind then.
  func run(to path: String, progress: (DatabaseID) -> Void) throws -> String {
    var destination = path[...]
    while destination.count > 1, destination.hasSuffix("/") { destination = destination.dropLast() }
    let target = String(destination)
    guard try isFree(target) else {
      throw CommandFailure.failed("\(target) is not empty; name a directory that does not exist")
    }
    let unfinished = "\(target).\(getpid()).part"
    do {
      try copy(to: unfinished, progress: progress)
      // Takes the place of an empty directory too, but of nothing else.
      guard rename(unfinished, target) == 0 else {
        throw StorageError.system(operation: "rename", path: target, code: errno)
      }
    } catch {
      removeCopy(unfinished)
      throw error
    }
    try sync(String(target.contains("/") ? target[..<(target.lastIndex(of: "/") ?? target.endIndex)] : "."))
    return target
  }

  private func copy(to directory: String, progress: (DatabaseID) -> Void) throws {
    let destination = try DataDirectory(directory)
    for id in source.databases {
      progress(id)
      let file = try destination.makeFile(of: id)
      try source.open(id).copy(toFile: file)
      // What clients remember of the original, such as tags of lists, must mean nothing to the copy.
      try DocumentDatabase.renewIncarnation(LMDBStore.open(LMDBOptions(path: file)))
      unlink("\(file)-lock")
      try sync("\(directory)/databases/\(id.project)/\(id.database)")
      try sync("\(directory)/databases/\(id.project)")
    }
    if !source.databases.isEmpty { try sync("\(directory)/databases") }
    for project in DataDirectory.accountsProjects(in: source.path) {
      let file = try destination.makeAccountsFile(of: project)
      let options = LMDBOptions(path: DataDirectory.accountsFile(of: project, in: source.path), readOnly: true)
      try LMDBStore.open(options).copy(toFile: file)
      try sync("\(directory)/accounts/\(project)")
      try sync("\(directory)/accounts")
    }
    unlink("\(directory)/\(DataDirectoryLock.fileName)")
    try sync(directory)
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

  private func sync(_ directory: String) throws {
    let descriptor = open(directory.isEmpty ? "/" : directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: directory, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw StorageError.system(operation: "fsync", path: directory, code: errno) }
  }

  /// Removes what ``copy(to:progress:)`` made.
  private func removeCopy(_ directory: String) {
    for id in source.databases {
      let file = DataDirectory.file(of: id, in: directory)
      unlink(file)
      unlink("\(file)-lock")
      rmdir("\(directory)/databases/\(id.project)/\(id.database)")
      rmdir("\(directory)/databases/\(id.project)")
    }
    rmdir("\(directory)/databases")
    for project in DataDirectory.accountsProjects(in: source.path) {
      unlink(DataDirectory.accountsFile(of: project, in: directory))
      rmdir("\(directory)/accounts/\(project)")
    }
    rmdir("\(directory)/accounts")
    for name in ["FORMAT", DataDirectoryLock.fileName] { unlink("\(directory)/\(name)") }
    rmdir(directory)
  }
}
