import DocumentModel
import Files
import Glibc
import KeyValue

/// A folder of backups. Each is a complete data directory; content of files that did not change is stored once, by hard
/// links.
struct BackupFolder: BackupPlace {
  private let path: String
  private static let removedSuffix = ".removed"

  var text: String { path }

  init(_ path: String) { self.path = LocalPath.withoutLastSlashes(path) }

  func backups() throws -> [StoredBackup] {
    var status = stat()
    guard stat(path, &status) == 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
    return ContentDirectory.names(in: path).compactMap { BackupName($0) }.sorted().map { name in
      var size = 0
      FolderTree.forEachFile(in: file(name)) { size += $1 }
      return StoredBackup(name: name, size: size)
    }
  }

  func make(_ name: BackupName, of source: DirectoryReader, progress: (String) -> Void) throws -> BackupOutcome {
    // Backups contain secrets.
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw StorageError.system(operation: "mkdir", path: path, code: errno)
    }
    FolderTree.removeAbandoned(in: path)
    for name in ContentDirectory.names(in: path) where name.hasSuffix(Self.removedSuffix) {
      try FolderTree.remove("\(path)/\(name)")
    }
    let newest = ContentDirectory.names(in: path).compactMap { BackupName($0) }.max()
    let earlier = try newest.map { try DirectoryReader(file($0)) }
    let (target, files) = try Backup(source, earlier: earlier).run(to: file(name), progress: progress)
    var outcome = BackupOutcome(size: 0)
    FolderTree.forEachFile(in: target) { outcome.size += $1 }
    (outcome.problems, outcome.problemCount) = (files?.problems ?? [], files?.problemCount ?? 0)
    return outcome
  }

  func restore(_ backup: StoredBackup, to path: String, progress: (String) -> Void) throws {
    let (target, files) = try Backup(try DirectoryReader(file(backup.name))).run(to: path, progress: progress)
    guard let files, files.problemCount > 0 else { return }
    throw CommandFailure.failed(
      "damaged contents of files: \(files.problemCount); everything else was restored. "
        + "Run `hearth check \(target)` to list the files")
  }

  func remove(_ backups: [StoredBackup]) throws {
    for backup in backups {
      // The renamed folder is not a backup, so an interrupted removal leaves no incomplete one.
      let removed = file(backup.name) + Self.removedSuffix
      guard rename(file(backup.name), removed) == 0 else {
        throw StorageError.system(operation: "rename", path: file(backup.name), code: errno)
      }
      try FolderTree.remove(removed)
    }
  }

  private func file(_ name: BackupName) -> String { "\(path)/\(name.text)" }
}
