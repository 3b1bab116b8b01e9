import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// Replaces one database of a data directory by that of a backup. Other databases, accounts and files do not change.
struct DatabaseRestore {
  /// The data directory.
  let directory: String
  let id: DatabaseID

  /// Chooses the database that `--database` and `--project` name. Without `--project`, exactly one project of the backup
  /// must have such a database.
  /// - Throws: ``CommandFailure`` if the directory does not exist, or the backup has no such database.
  init(_ arguments: Arguments, _ stored: [DatabaseID], of name: BackupName) throws {
    directory = LocalPath.withoutLastSlashes(arguments.operands[1])
    try DirectoryReader.require(directory)
    let database = arguments.value("database") ?? ""
    let found = stored.filter { id in
      id.database == database && (arguments.value("project").map { $0 == id.project } ?? true)
    }
    guard let first = found.first, found.count == 1 else {
      let all = stored.isEmpty ? "no database" : stored.map(\.name).joined(separator: ", ")
      throw CommandFailure.failed(
        "the backup \(name.text) has \(all); name one of them with --database and --project")
    }
    id = first
  }

  /// Restores the database. The former file stays beside the restored one until that can be read.
  /// - Throws: `StorageError/locked` if a server uses the directory; ``CommandFailure``, `StorageError` or the errors of
  ///   the place if the backup is damaged or a file cannot be written. The former database then remains.
  func run(_ name: BackupName, in place: any BackupPlace, progress: (String) -> Void) throws {
    // The lock keeps servers out until the end.
    let lock = try DataDirectory(directory)
    let file = try lock.makeFile(of: id)
    let restored = "\(file).restoring"
    try withExtendedLifetime(lock) {
      // An interrupted run can leave it.
      Self.remove(restored)
      defer { Self.remove(restored) }
      try place.copyDatabase(id, of: name, to: restored, progress: progress)
      let check = try ChildCheck.run(.checkFile, on: restored) { count, _ in
        progress("\(ProgressText.number(count)) rows of \(id) checked")
      }
      if let problem = check.problems.first {
        throw CommandFailure.data("\(id) of the backup \(name.text) is damaged: \(problem); restore another backup")
      }
      // ETags and resume tokens of later states do not match the restored database.
      try DocumentDatabase.renewIncarnation(LMDBStore.open(LMDBOptions(path: restored).withRoom()))
      try giveToOwner(restored)
      try replace(file, by: restored)
    }
  }

  private func replace(_ file: String, by restored: String) throws {
    let former = "\(file).former"
    unlink(former)
    let hadFormer = link(file, former) == 0
    guard hadFormer || errno == ENOENT else {
      throw StorageError.system(operation: "link", path: former, code: errno)
    }
    guard rename(restored, file) == 0 else { throw StorageError.system(operation: "rename", path: file, code: errno) }
    // It belongs to the former file.
    unlink("\(file)-lock")
    do {
      try LocalPath.sync(folder: LocalPath.folder(of: file))
      _ = try LMDBStore.open(LMDBOptions(path: file, readOnly: true)).statistics()
    } catch {
      if hadFormer { rename(former, file) } else { unlink(file) }
      throw error
    }
    unlink(former)
    // It has later commits to the former file. The restored one does not refer to it, so no server would read it.
    try StoredDatabase.removeLog(of: file)
    try giveToOwner("\(file)-lock")
  }

  private static func remove(_ file: String) {
    unlink(file)
    unlink("\(file)-lock")
  }

  /// Gives what root created to the owner of the directory, so that the server can open it.
  private func giveToOwner(_ file: String) throws {
    var status = stat()
    guard geteuid() == 0, stat(directory, &status) == 0, status.st_uid != 0 else { return }
    var path = file
    while path != directory, path.utf8.count > directory.utf8.count {
      guard lchown(path, status.st_uid, status.st_gid) == 0 || errno == ENOENT else {
        throw StorageError.system(operation: "chown", path: path, code: errno)
      }
      path = LocalPath.folder(of: path)
    }
  }
}
