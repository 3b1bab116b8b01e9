import DocumentModel
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

extension Command {
  /// Gives the free space of databases back to the file system.
  static let compact = Command(
    name: "compact", summary: "Shrinks the files of a data directory that no server uses.",
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .flag("quiet", "show no progress and no summary"),
    ],
    details: """
      A database file does not shrink when documents are deleted: later writes use the free space. This verb writes each
      database, the accounts and the metadata of files to a new file without free space, and then replaces the old one.
      If it is interrupted, the old files remain. It needs space for a copy of the largest file.

      No server may use the directory meanwhile. `hearth stats --data DIR` compares the used bytes with the file bytes.
      """,
    examples: [("hearth compact --data ./hearth-data", "")],
    run: { arguments in
      let path = arguments.value("data") ?? "./hearth-data"
      let databases = try DirectoryReader(path).databases
      // The lock keeps servers out until the end.
      let directory = try DataDirectory(path)
      let databaseFiles = databases.map { DataDirectory.file(of: $0, in: path) }
      var files = databaseFiles
      files += DataDirectory.accountsProjects(in: path).map { DataDirectory.accountsFile(of: $0, in: path) }
      files += try DataDirectory.filesOwners(in: path).map { DataDirectory.filesFile(of: $0, in: path) }
      var progress = Progress(isQuiet: arguments.has("quiet"))
      defer { progress.clear() }
      var (before, after) = (0, 0)
      try withExtendedLifetime(directory) {
        for file in databaseFiles { try StoredDatabase.settle(LMDBOptions(path: file).withRoom()) }
        for file in files {
          progress.showNow("compacting \(file)")
          let sizes = try compact(file)
          before += sizes.before
          after += sizes.after
        }
      }
      progress.clear()
      if !arguments.has("quiet") {
        Terminal.output.write("compacted \(path) from \(ByteCount.text(before)) to \(ByteCount.text(after))\n")
      }
      return 0
    })

  /// Replaces the file of a store by a copy without free pages. Returns the sizes in bytes.
  private static func compact(_ file: String) throws -> (before: Int, after: Int) {
    let copy = "\(file).compact"
    // An interrupted run can leave it.
    unlink(copy)
    do {
      try LMDBStore.open(LMDBOptions(path: file, readOnly: true)).copy(toFile: copy)
      let sizes = (before: try size(of: file), after: try size(of: copy))
      try giveToOwner(of: file, copy)
      guard rename(copy, file) == 0 else { throw StorageError.system(operation: "rename", path: file, code: errno) }
      // It belongs to the former file. A process that still reads that would pass its state to those that open the new one.
      unlink("\(file)-lock")
      let lock = open("\(file)-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
      if lock >= 0 { close(lock) }
      try giveToOwner(of: file, "\(file)-lock")
      try LocalPath.sync(folder: LocalPath.folder(of: file))
      return sizes
    } catch {
      unlink(copy)
      throw error
    }
  }

  /// Gives what root created to the owner of a file, so that the server can open it.
  private static func giveToOwner(of file: String, _ created: String) throws {
    var status = stat()
    guard geteuid() == 0, stat(file, &status) == 0 else { return }
    guard lchown(created, status.st_uid, status.st_gid) == 0 || errno == ENOENT else {
      throw StorageError.system(operation: "chown", path: created, code: errno)
    }
  }

  private static func size(of file: String) throws -> Int {
    var status = stat()
    guard stat(file, &status) == 0 else { throw StorageError.system(operation: "stat", path: file, code: errno) }
    return Int(status.st_size)
  }
}
